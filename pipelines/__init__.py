"""Pipelines: what the system does, stage by stage. Only worker/ knows a server."""
