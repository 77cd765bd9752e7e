"""Partitions that an owner adds to a topic while links and statements read it."""
