"""MirrorMaker's connectors over Kafka Connect in memory."""
