"""The log as the worker reads it: its end, its fold, its checkpoints, its schemas."""
