"""A statement with its keeper, over clusters and an engine in memory."""
