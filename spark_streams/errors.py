"""What can go wrong with one link or statement, as codes that a person can look up.

| code | retriable | what happened |
|---|---|---|
| `source_missing` | yes | the source topic does not exist |
| `source_recreated` | no | the source topic was deleted and made again |
| `source_unclean` | no | a replica without all records may become the source's leader |
| `source_gap` | no | the source no longer has the records that come next |
| `source_truncated` | no | the source ends before what was copied already |
| `destination_foreign` | no | the destination, or a record in it, is not this link's |
| `destination_unreadable` | no | a tail that unpacks to too much, or is not found in time |
| `destination_lost` | no | the destination was deleted, emptied or cut off |
| `too_much_again` | no | a statement would have to look through too many of its records |
| `partitions_differ` | no | source and destination have another number of partitions |
| `readers_remain` | yes | a grant's reader still may read a copy that is to be removed |
| `engine_unavailable` | yes | the Spark Connect server, or Kafka Connect, does not answer |
| `engine_starting` | yes | the domain's Spark Connect server is being started |
| `too_many_partitions` | no | the source has more partitions than a link or a statement may read |
| `engine_full` | yes | the server has fewer free task slots than the source has partitions |
| `query_failed` | yes | the query ended with an error, or is gone with its engine |
| `query_stalled` | yes | the query lives, but a partition that has more to copy does not move |
| `starts_exhausted` | no | many queries in a row ended before they had got on |
| `table_recreated` | yes | a table of a statement was deleted and made again |
| `table_partitions_added` | no | a table of a statement has more partitions than at first |
| `table_gap` | no | records of a table of a statement were deleted, rows of it among them |
| `keys_moved` | no | a table's keys have two schemas, so that a row's latest state is not known |
| `rows_differ` | no | rows of `TABLE(...)` would be others under the stream's new schema |
| `source_not_granted` | with the grant | a statement's source is not granted any more |
| `table_filling` | with the copy | a statement's table is a copy that its link has not filled yet |
| `domain_quarantined` | with the release | a statement's domain is cut off |
| `no_schema` | yes | a topic that a statement reads has no schema |
| `registry_differs` | no | the cluster's own registry has something else under a schema's id |
| `schema_too_deep` | no | a schema refers to others, and they to others, more than 100 times |
| `incompatible_schema` | no | the result's schema does not go with those before it |
| `unexpected_error` | yes | something that nobody thought of; the worker's log has it |
| `cluster_unavailable` | yes | one of the clusters, or a registry, does not answer, or refuses |

A statement can also fail with the codes of `spark_streams.sql.errors`; those are for a person.
"""

from mesh_events.errors import MeshError

ENGINE_FULL, STARTS_EXHAUSTED = "engine_full", "starts_exhausted"
ENGINE_STARTING, ENGINE_UNAVAILABLE = "engine_starting", "engine_unavailable"
TABLE_FILLING = "table_filling"
WITHHELD = frozenset({"source_not_granted", "domain_quarantined", TABLE_FILLING})
"""What ends by itself once the log says so: a grant, a release, a copy that is filled."""
RETRIABLE = frozenset(
    {
        "source_missing",
        "readers_remain",
        ENGINE_STARTING,
        ENGINE_UNAVAILABLE,
        ENGINE_FULL,
        "query_failed",
        "query_stalled",
        "table_recreated",
        "no_schema",
        "unexpected_error",
        "cluster_unavailable",
    }
)


class CopyError(MeshError):
    """A copy cannot run; `code` is one of this module's table, `reason` names the next step.

    `text` is what a server said of it, in full, for a local file.
    """

    def __init__(self, code: str, reason: str, text: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.text = text

    @property
    def retriable(self) -> bool:
        """Whether trying again can help without a person's doing."""
        return self.code in RETRIABLE


class EngineError(CopyError):
    """The engine cannot do it, or did not: one of the `engine_` and `query_` codes."""
