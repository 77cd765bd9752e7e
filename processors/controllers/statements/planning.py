"""The plan of a statement, or why there is none: one function for its check and for dry runs."""

from collections.abc import Callable

from mesh_events.errors import RefusedError
from mesh_events.statements import Begin, StatementAdded, Wording
from processors.clusters.kafka import Topic
from spark_streams.sql.errors import SqlError
from spark_streams.sql.plan import (
    Plan,
    Schemas,
    planned,
    require_keys_in_place,
    require_no_table,
    require_same,
)
from spark_streams.sql.text.parse import parse
from spark_streams.sql.types.nulls import require_no_null


def plan_statement(
    intent: Wording,
    destination: str,
    cluster: str,
    topic: Callable[[str], Topic | None],
    schemas: Schemas,
    before: str | None = None,
) -> Plan:
    """What a statement does over its topics as they are now.

    Args:
        intent: its text, and the topics that this is submitted to read.
        destination: topic that it fills.
        cluster: where it reads.
        topic: looks a topic up there.
        schemas: of the topics.
        before: the text that is to be replaced, if one is.

    Raises:
        RefusedError: `unknown_topic`, a SqlError with the place, or what `planned` raises.
        MeshError: a server does not answer.
    """
    mixed = {}
    for name in (intent.stream, *intent.tables):
        found = topic(name)
        if found is None:
            raise RefusedError(
                "unknown_topic",
                f"there is no topic {name} on cluster {cluster}: create it, then submit the "
                "statement again",
            )
        mixed[name] = found.mixes_keys
    parsed = parse(intent.sql)
    require_no_null(parsed)
    require_same(parsed, intent.names, intent.stream, intent.tables, destination)
    if before is not None:
        require_no_table(parse(before), parsed)
    if parsed.of_rows and isinstance(intent, StatementAdded) and intent.begin is Begin.LATEST:
        raise SqlError(
            "sql_not_supported",
            "TABLE(...) from the latest record on would be a table without its earlier rows",
            parsed.stream.place,
        )
    plan = planned(parsed, intent.names, schemas)
    require_keys_in_place(plan, mixed)
    return plan
