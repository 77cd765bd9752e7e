"""Kafka as the mesh uses it: connections, batches byte by byte, what its clients lack."""
