"""Questions over HTTP, their answers as server-sent events or whole, and search."""
