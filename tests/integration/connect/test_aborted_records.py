"""A sink's table has what is committed: nothing of an aborted or an open transaction."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from local_platform import Endpoints
from tests.integration.connect.test_sink_values import Sinking, rows, sink, table
from tests.integration.connect_owner import owner
from tests.integration.sql.records import record, wire
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, register_schema

__all__ = ["owner", "sdm", "sink", "table"]
pytestmark = pytest.mark.slow


class Writer:
    """Writes a topic by transactions; a row is a number and an amount, its key the number."""

    def __init__(self, mesh: Endpoints, topic: str) -> None:
        self._topic = topic
        self._schemas = {
            "key": self._schema(mesh, "key", "id"),
            "value": self._schema(mesh, "value", "id", "amount"),
        }
        config = mesh.administration("east").config() | {"transactional.id": topic}
        self.producer = Producer(config)
        self.producer.init_transactions()

    def _schema(self, mesh: Endpoints, side: str, *names: str) -> tuple[int, dict[str, Any]]:
        schema = record(side.title(), **dict.fromkeys(names, "int"))
        return register_schema(mesh, f"{self._topic}-{side}", json.dumps(schema)), schema

    def write(self, id_: int, amount: int | None) -> None:
        """A row, or that it is deleted."""
        key = wire(*self._schemas["key"], {"id": id_})
        row = {"id": id_, "amount": amount}
        value = None if amount is None else wire(*self._schemas["value"], row)
        self.producer.produce(self._topic, value, key)
        assert self.producer.flush(30) == 0


def test_no_record_of_an_aborted_or_an_open_transaction_is_in_a_sinks_table(
    sdm: Sdm, owner: Party, mesh: Endpoints, table: tuple[str, Any], sink: Sinking
) -> None:
    name, database = table
    sdm("topic", "create", f"{owner.name}.{name}", "--partitions", "1", "-d", owner.name)
    writer = Writer(mesh, f"{owner.name}.{name}")
    writer.producer.begin_transaction()
    for id_ in (1, 2, 3):
        writer.write(id_, 100)
    writer.producer.commit_transaction()
    writer.producer.begin_transaction()
    writer.write(1, 666)
    writer.write(2, None)
    writer.write(4, 666)
    writer.producer.abort_transaction()

    sink("record", "--key", "record")
    sink("position")
    committed = [(1, 100), (2, 100), (3, 100)]

    def shown() -> list[list[Any]]:
        return [rows(database, f"{name}_{key}", "id, amount") for key in ("record", "position")]

    eventually(lambda: shown() == [committed, committed], "both tables have what is committed")
    writer.producer.begin_transaction()
    writer.write(3, 777)
    writer.write(5, 777)
    writer.producer.abort_transaction()
    writer.producer.begin_transaction()
    writer.write(3, 200)
    writer.write(6, 100)
    writer.producer.commit_transaction()
    eventually(lambda: (6, 100) in shown()[0] and (6, 100) in shown()[1], "sinks go on")
    record, position = shown()
    assert record == [(1, 100), (2, 100), (3, 200), (6, 100)]
    # by position rows of an aborted transaction would stay
    assert position == [(1, 100), (2, 100), (3, 100), (3, 200), (6, 100)]
