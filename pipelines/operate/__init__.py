"""What operators do to a running system: rebuild an index, audit it, settle dead letters, read the status."""
