"""Prompts for models and sentences for visitors, as data, and their strict loader."""
