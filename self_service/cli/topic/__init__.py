"""Topics, and the records in them."""
