"""The snapshots."""
