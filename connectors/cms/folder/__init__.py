"""Pages that are files in a folder."""
