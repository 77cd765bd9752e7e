"""The config of a sink that writes topics into tables of a database, by Debezium's JDBC sink."""

from enum import StrEnum

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from projections.connectors.config import DEAD_LETTERS, JDBC_SINK
from self_service.cli.connect.databases import Database

TYPE = "jdbc-sink"
_POSITION = {part: f"__connect_{part}" for part in ("topic", "partition", "offset")}
"""Columns of a row that is found by its position."""


class Key(StrEnum):
    """What makes a row."""

    POSITION = "position"
    """Each record is a row, found again by its topic, partition and offset."""
    RECORD = "record"
    """The latest value of each record key is a row; a deleted key has none."""


def config(connector: str, topics: list[str], target: Database, key: Key) -> dict[str, str]:
    """The connector's config: each topic becomes the table of its name, dots as _.

    Written twice, a record is the same row: what comes again after a crash changes nothing. What
    cannot be read or written goes to `<connector>.dead`, with its reason in headers.

    Args:
        connector: its id.
        topics: what is read.
        target: where the tables are; they are made, and get new columns, as schemas ask.
        key: what makes a row.
    """
    # the sink's own mode "kafka" never sees a new column (3.6.0): the position is put into the row
    by_position = {
        "transforms": "row,position",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.position.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        **{f"transforms.position.{part}.field": f"{column}!" for part, column in _POSITION.items()},
        "primary.key.mode": "record_value",
        "primary.key.fields": ",".join(_POSITION.values()),
        "delete.enabled": "false",
        # whatever a key is, it is not looked at
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    by_key = {"primary.key.mode": "record_key", "delete.enabled": "true"}
    return {
        "connector.class": JDBC_SINK,
        "tasks.max": "1",
        "topics": ",".join(topics),
        "connection.url": f"jdbc:postgresql://{target.host}:{target.port}/{target.name}",
        "connection.username": target.user,
        "connection.password": SHARED_SECRET if target.is_shared else OWN_SECRET,
        "insert.mode": "upsert",
        "schema.evolution": "basic",
        # a column may be called order
        "quote.identifiers": "true",
        **(by_position if key is Key.POSITION else by_key),
        "errors.tolerance": "all",
        DEAD_LETTERS: f"{connector}.dead",
        "errors.deadletterqueue.context.headers.enable": "true",
        "errors.deadletterqueue.topic.replication.factor": "-1",
    }
