"""Operators' routes: health, status, dead letters, rebuilds, audits."""
