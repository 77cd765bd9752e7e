"""Data products, and the catalog that finds them."""
