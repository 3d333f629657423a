"""Connectors: where a site's pages come from."""
