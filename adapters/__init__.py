"""Adapters to Kafka, Elasticsearch, embedders and models. Only they and connectors/ open connections to servers."""
