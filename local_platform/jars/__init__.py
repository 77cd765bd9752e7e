"""Jars of the servers: fetched, unpacked, patched, and archives of their classes."""
