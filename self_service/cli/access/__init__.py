"""Access to products: requests, decisions, and who may read and why."""
