"""Connectors: Kafka Connect runs what the log says."""
