"""The rephrase stage: a question becomes one that needs no conversation."""
