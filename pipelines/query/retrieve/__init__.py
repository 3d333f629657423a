"""The retrieve stage: what is found, and whether it answers."""
