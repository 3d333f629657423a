"""Pagewire's wire contract: the messages on topics and over HTTP. Imports pydantic and numpy only."""
