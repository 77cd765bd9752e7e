"""Schemas of topics: registry, languages, compatibility, sizes and patterns."""
