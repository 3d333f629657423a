"""The retrieve stage: searches for a question, and decides whether the hits contain an answer."""
