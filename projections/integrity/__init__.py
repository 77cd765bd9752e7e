"""Whether a log is the one that was signed: its tree and its checkpoints. Pure."""
