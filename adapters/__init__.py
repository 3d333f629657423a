"""Adapters: with connectors/ the only code that talks to servers: Kafka, Elasticsearch, embedders, models."""
