"""A second, naive reading of the log, to compare the folds with on random and hostile logs."""
