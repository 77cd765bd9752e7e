"""The Spark servers of domains, and the full texts of errors."""
