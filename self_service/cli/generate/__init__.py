"""Made-up records, written once or by a generator that the mesh keeps running."""
