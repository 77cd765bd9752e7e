"""Streaming SQL: statements from their text to their state, and trials of a new text."""
