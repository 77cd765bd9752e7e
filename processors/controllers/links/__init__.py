"""Links: each copies, stands still or is gone, as the log says."""
