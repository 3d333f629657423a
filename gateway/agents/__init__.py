"""Whole pages for assistants: as Markdown, and lists of them (llms.txt)."""
