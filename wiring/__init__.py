"""The only place that puts settings, adapters and stages together."""
