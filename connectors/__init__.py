"""Connectors: the sources of a site's pages."""
