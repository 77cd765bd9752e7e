"""One worker: its life, its leadership, its metrics, and the keepers that it runs."""
