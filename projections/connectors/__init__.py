"""Connectors: their state, and what their configs may say and mean. Pure."""
