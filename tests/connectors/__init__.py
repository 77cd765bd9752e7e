"""Connectors under test: Kafka Connect in memory, and what it has in common with the real one."""
