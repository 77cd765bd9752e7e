"""Statements of streaming SQL, from their intent to their records, on the run's mesh."""
