"""Runs that several people look at: what is published of one, and two of them side by side."""
