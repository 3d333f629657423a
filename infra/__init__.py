"""What Pagewire runs on: the local Kafka and Elasticsearch, child processes, Docker, dashboards."""
