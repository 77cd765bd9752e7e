"""The config of a Debezium connector that captures tables of PostgreSQL for a domain."""

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from mesh_events.errors import InvalidValueError
from projections.connectors.config import POSTGRES
from projections.connectors.tables import route, slot_of
from projections.connectors.values import TABLE
from self_service.cli.connect.databases import Database

TYPE, OUTBOX = "debezium-postgres", "debezium-outbox"


def config(connector: str, tables: list[str], source: Database) -> dict[str, str]:
    """The connector's config: each table becomes the topic `<domain>.<table>`.

    Args:
        connector: its id; also names its slot and publication in the database.
        tables: `schema.table`, or `table` in schema public.
        source: where they are.
    """
    domain, slot = connector.partition(".")[0], slot_of(connector)
    return {
        "connector.class": POSTGRES,
        "tasks.max": "1",
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.user": source.user,
        "database.password": SHARED_SECRET if source.is_shared else OWN_SECRET,
        "database.dbname": source.name,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": slot,
        # only the captured tables, so that no other right is needed in the database
        "publication.autocreate.mode": "filtered",
        "table.include.list": ",".join(_qualified(table) for table in tables),
        # months and days are no fixed number of microseconds
        "interval.handling.mode": "string",
        # one name per connector: two with the same prefix in one worker wait for each other's
        # metrics for a minute before they capture anything
        "topic.prefix": connector,
        # a table or a column may be called what Avro does not allow
        "schema.name.adjustment.mode": "avro",
        "field.name.adjustment.mode": "avro",
        # Debezium names topics prefix.schema.table; a product's topic is <domain>.<table>
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": route(connector),
        "transforms.route.replacement": f"{domain}.$1",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.partitions": "1",
        "exactly.once.support": "required",
        "poll.interval.ms": "50",
        # the database keeps its log for a quiet table until something is confirmed
        "heartbeat.interval.ms": "10000",
    }


def outbox(connector: str, table: str, source: Database) -> dict[str, str]:
    """The config of a connector that makes events of the rows of an outbox table.

    A row (id, aggregatetype, aggregateid, type, payload) becomes a record of the topic
    `<domain>.<aggregatetype>`, keyed by aggregateid, with `id` and `eventType` as headers and the
    JSON of the payload as its value.

    Args:
        connector: its id.
        table: `schema.table`, or `table` in schema public.
        source: where it is.
    """
    base, domain = config(connector, [table], source), connector.partition(".")[0]
    kept = {name: value for name, value in base.items() if not name.startswith("transforms")}
    return {
        **kept,
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.route.topic.replacement": f"{domain}.${{routedByValue}}",
        "transforms.outbox.table.expand.json.payload": "true",
        "transforms.outbox.table.fields.additional.placement": "type:header:eventType",
        # rows may be deleted in the transaction that wrote them: their events have left by then
        "tombstones.on.delete": "false",
    }


def _qualified(table: str) -> str:
    found = table if "." in table else f"public.{table}"
    if not TABLE.fits(found):
        raise InvalidValueError(f"{table!r} is not a table: write it as {TABLE.words}")
    return found
