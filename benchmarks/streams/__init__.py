"""Kafka Streams as the peer of a statement: the same join, in the most usual way.

What lives here: one small program, the jars that it needs beside the platform's own, and how it is
compiled and started. What does not: what is measured (`benchmarks.click_users`).
"""
