"""A table whose topic has a transaction that is open while a statement starts."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import fastavro
import pytest
from confluent_kafka import KafkaException, Producer

from self_service.cli.mesh import brokers
from tests.integration.sql.records import bare
from tests.integration.statements.conftest import CLICK, ROW, USER_KEY, Stage, framed
from tests.integration.test_cli import Sdm, Told, sdm
from tests.kafka_client import eventually, registrar, seen_within

__all__ = ["sdm"]
pytestmark = [pytest.mark.platform, pytest.mark.slow]


def test_no_row_is_found_before_the_table_has_what_was_acknowledged_before_the_start(
    stage: Stage,
) -> None:
    stage.know({1: "old"})
    row = framed(stage.ids["user"], bare(ROW, {"userid": 2, "name": "undecided"}))
    key = framed(stage.ids["key"], bare(USER_KEY, {"userid": 2}))
    with opened(stage, stage.users, row, key):
        stage.know({1: "new"})
        stage.click(range(4), [1])
        stage.add(
            "SELECT c.number, u.name FROM clicks c JOIN users u ON c.userid = u.userid",
            tables=[stage.users],
            names={"clicks": stage.clicks, "users": stage.users},
        )
        assert not seen_within(10, lambda: sum(stage.ends(stage.out).values()) > 0)
    stage.until_landed(4)
    assert names(stage) == ["new"] * 4


def test_an_open_transaction_is_told_where_records_behind_it_wait(stage: Stage, sdm: Sdm) -> None:
    stage.click(range(4), [1])
    assert brokers.open_transactions(stage.login, stage.clicks) == {}
    value = framed(stage.ids["click"], bare(CLICK, {"number": 4, "userid": 1}))
    told = f"{stage.clicks}: a transaction is open in partition 1 since offset 2: records from"
    consume = ("topic", "consume", stage.clicks, "-d", stage.domain.name)
    with opened(stage, stage.clicks, value, partition=1) as writer:
        stage.offsets[4], stage._next[1] = 2, 3
        stage.click(range(5, 8), [1])
        assert brokers.open_transactions(stage.login, stage.clicks) == {1: (2, 5)}
        stage.add("SELECT number FROM clicks", names={"clicks": stage.clicks})
        stage.until_landed(5)

        consumed = sdm(*consume)
        assert len(consumed.lines) == 5
        assert told in consumed.err
        assert told not in sdm(*consume, "--partition", "0").err
        shown = sdm("streaming", "sql", "describe", stage.statement)
        assert told in shown.err
        assert shown.document["open_transactions"] == {stage.clicks: {"1": 2}}
        listed = sdm("streaming", "sql", "ps", "--of", stage.domain.name)
        assert told in listed.err
        lag = {one["statement"]: one["lag"] for one in listed.document}
        assert lag[stage.statement] == 3
        writer.commit_transaction(20)
    stage.until_landed(8)
    assert told not in sdm("streaming", "sql", "describe", stage.statement).err


def test_a_link_tells_of_the_transaction_that_its_copy_waits_for(stage: Stage, sdm: Sdm) -> None:
    product = f"{stage.name}-clicks"
    stage.click(range(4), [1])
    stage.kit.accepted(stage.domain.publish(product, stage.clicks))
    reader = stage.kit.register_domain("far", "west").application()
    request = reader.domain.request(product, reader.name)
    stage.domain.grant(product, request)
    value = framed(stage.ids["click"], bare(CLICK, {"number": 4, "userid": 1}))

    def told() -> Told:
        return sdm("link", "describe", f"{product}@west")

    with opened(stage, stage.clicks, value) as writer:
        eventually(
            lambda: told().document["lag"] == {"0": 1, "1": 0},
            "all but the open transaction is copied",
        )
        shown = told()
        assert shown.document["open_transactions"] == {stage.clicks: {"0": 2}}
        assert f"{stage.clicks}: a transaction is open in partition 0 since offset 2" in shown.err
        writer.commit_transaction(20)
    eventually(lambda: told().document["lag"] == {"0": 0, "1": 0}, "all is copied")
    assert told().document["open_transactions"] == {}
    stage.domain.revoke(product, request)


@contextmanager
def opened(
    stage: Stage, topic: str, value: bytes, key: bytes | None = None, partition: int = 0
) -> Iterator[Producer]:
    """A writer with a transaction in which it has written one record; open until the block ends."""
    writer = Producer(
        stage.login.config(
            transactional_id=f"{stage.name}-open",
            # longer than a test may take: Kafka would end it
            transaction_timeout_ms=600_000,
        )
    )
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, value, key, partition)
    assert writer.flush(20) == 0
    try:
        yield writer
    finally:
        # refused where the block has ended it
        with suppress(KafkaException):
            writer.abort_transaction(20)


def names(stage: Stage) -> list[str]:
    """The second column of all that came out."""
    latest = registrar(stage.kit.endpoints).get_latest_version(f"{stage.out}-value")
    schema = fastavro.parse_schema(json.loads(latest.schema.schema_str))
    return [
        fastavro.schemaless_reader(io.BytesIO(one.value[5:]), schema)["name"]
        for one in stage.landed(stage.out)
    ]
