"""Copies of products in other clusters, and how far they are behind."""
