"""Pagewire's wire contract: what travels on the topics and over HTTP. Imports pydantic and numpy only."""
