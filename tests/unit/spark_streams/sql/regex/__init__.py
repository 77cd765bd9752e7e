"""Tests of Spark's regular expressions as RE2 matches them."""
