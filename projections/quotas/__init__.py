"""Quotas: how many things of each kind a domain may have, and counting those that it has."""
