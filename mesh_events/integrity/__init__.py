"""Records as leaves of a tree, and its signed checkpoints."""
