"""Operators' acts on a running system: rebuild an index, audit it, settle dead letters, read the status."""
