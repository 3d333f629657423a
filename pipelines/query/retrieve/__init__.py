"""The retrieve stage: search, gate, and the passages that an answer may read."""
