"""Where the clusters are not as the log says."""
