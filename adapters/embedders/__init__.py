"""Embedders: models that make vectors of texts, in this process or behind an HTTP API."""
