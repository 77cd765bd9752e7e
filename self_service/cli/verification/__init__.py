"""Verifying a whole log: tree, checkpoints, signatures, decisions and rows. Pure."""
