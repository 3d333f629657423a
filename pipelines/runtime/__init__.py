"""Shared by all pipelines: stages, records, errors, lanes and the bus."""
