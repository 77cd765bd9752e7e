"""Domains, their applications and keys, and what an operator may do with a domain."""
