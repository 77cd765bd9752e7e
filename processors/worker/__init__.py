"""One worker: its life, its leadership, its metrics, and the controllers that it runs."""
