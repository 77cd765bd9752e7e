"""Schemas of topics: registered, compared, and replaced by a major version."""
