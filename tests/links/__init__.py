"""What tests of links share: a harness in place of the log, ends in memory or on real servers."""
