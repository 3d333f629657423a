"""Conversations: send a question to the log, read its answer from the log, and keep both."""
