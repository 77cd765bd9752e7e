"""What is done to each record, as functions on DataFrames of Spark."""
