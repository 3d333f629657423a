"""Conversations: a question goes into the log, its answer comes out of it, and both are kept."""
