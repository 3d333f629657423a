"""Pages of any website, found by its sitemap or by following its links."""
