"""Names of the mesh's own topics, and what each of them is for."""

GOVERNANCE = "mesh.governance"
"""The log: 1 partition, kept for ever, never compacted."""
CATALOG = "mesh.catalog"
"""Product rows: 1 partition, compacted."""
ACCESS = "mesh.access"
"""Access rows: 1 partition, compacted."""
LINKS = "mesh.links"
"""Link rows: 1 partition, compacted."""
STATEMENTS = "mesh.statements"
"""Rows of streaming SQL statements: 1 partition, compacted."""
CONNECTORS = "mesh.connectors"
"""Rows of connectors: 1 partition, compacted."""
LINEAGE = "mesh.lineage"
"""OpenLineage events as JSON, 30 days."""
QUARANTINE = "mesh.quarantine"
"""A copy of what was set aside, for people, 30 days; the log's decision is what counts."""
CHECKPOINTS = "mesh.checkpoints"
"""Signed heads of the tree over the log: 1 partition, kept for ever, never compacted."""

ROW_TOPICS = (CATALOG, ACCESS, LINKS, STATEMENTS, CONNECTORS)
INTERNAL_PREFIXES = ("mesh.", "_", "connect-", "kafkasql-", "registry-")
"""Topics with these prefixes belong to the platform and can never be products."""

MAX_RECORD_BYTES = 512 * 1024
"""A larger record on the log is set aside, unread."""
MAX_INTENT_BYTES = 128 * 1024
"""A larger intent is set aside, unread: whoever has a key could keep each reader decoding."""
MAX_LOG_BYTES = 1024 * 1024
"""A larger record or batch is refused by Kafka itself (`max.message.bytes` of the log).

What one request can append: Kafka appends the first request of a connection whatever the quota.
"""
