"""Statements: each runs, stands still or is gone, as the log says."""
