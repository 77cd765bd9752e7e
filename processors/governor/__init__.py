"""The governor: folds the log, decides what is undecided, and writes the rows."""
