"""What tests of links share: a desk that plays the log, and ends in memory or on real servers."""
