"""A statement with its controller, over clusters and an engine in memory."""
