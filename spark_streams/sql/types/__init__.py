"""Columns of a statement: whose each is, its type, and what may be done with it. Pure."""
