"""Connectors of domains, from their options to their state."""
