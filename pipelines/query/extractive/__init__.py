"""Answers without a model: ranks the units of the hits, and quotes the pages."""
