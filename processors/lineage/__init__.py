"""Lineage as OpenLineage events: made, read, and sent to a receiver."""
