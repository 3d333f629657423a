"""Infrastructure: the local Kafka and Elasticsearch, child processes, Docker, dashboards."""
