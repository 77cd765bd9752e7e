import json
import socket
from contextlib import nullcontext
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest

from mesh_events.kafka.connection import Connection
from spark_streams import session, spark
from spark_streams.engine import CopySpec, Failed
from spark_streams.errors import ENGINE_UNAVAILABLE, EngineError
from spark_streams.jvm import CONFIG
from spark_streams.provenance import Origin
from spark_streams.session import bounded
from spark_streams.spark import (
    BATCH_BYTES,
    SparkEngine,
    require_slots,
    sink_options,
    source_options,
)

SPEC = CopySpec(
    link="east.users@west",
    writer="mesh.link.east.users@west.0a1b2c3d",
    source=Connection("east.test:9092", "reader", "pass-east"),
    source_topic="east.users",
    origin=Origin("east", "id/1"),
    destination=Connection("west.test:9092", "writer", 'pass"\\west'),
    destination_topic="east.users",
    start={0: 5, 1: 0},
    max_record_bytes=2_000_000,
)


def test_the_source_is_read_committed_from_the_given_offsets_and_loses_nothing() -> None:
    options = source_options(SPEC)
    assert json.loads(options["startingOffsets"]) == {"east.users": {"0": 5, "1": 0}}
    assert json.loads(options["assign"]) == {"east.users": [0, 1]}
    assert not options.keys() & {"subscribe", "subscribePattern"}
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["failOnDataLoss"] == "true"
    assert options["includeHeaders"] == "true"
    # measured: less costs CPU and gains nothing
    assert "kafka.fetch.max.wait.ms" not in options


def test_the_sink_keeps_the_idempotent_producer_and_says_how_long_it_tries() -> None:
    options = sink_options(SPEC)
    assert "kafka.enable.idempotence" not in options
    assert "kafka.acks" not in options
    assert int(options["kafka.delivery.timeout.ms"]) > 0
    assert options["kafka.max.request.size"] == "2000000"
    # a record behind one that was refused would pass for all before it
    assert options["kafka.max.in.flight.requests.per.connection"] == "1"


@pytest.mark.parametrize(("most", "batch"), [(5_000, 5_000), (2_000_000, BATCH_BYTES)])
def test_a_batch_is_no_larger_than_a_record_may_be(most: int, batch: int) -> None:
    options = sink_options(replace(SPEC, max_record_bytes=most))
    assert options["kafka.batch.size"] == str(batch)


def test_a_password_with_quotes_stays_one_word_of_the_login() -> None:
    assert sink_options(SPEC)["kafka.sasl.jaas.config"].endswith(
        'username="writer" password="pass\\"\\\\west";'
    )


def test_a_spec_does_not_show_its_passwords() -> None:
    assert "pass-east" not in repr(SPEC)


@pytest.mark.parametrize(("master", "used"), [("local[3]", 2), ("local[2,4]", 1), ("local[1]", 0)])
def test_a_copy_that_would_wait_for_slots_for_ever_is_refused(master: str, used: int) -> None:
    active = {f"other{n}|writer|1": None for n in range(used)}
    with pytest.raises(EngineError) as caught:
        require_slots(master, active, SPEC.link, 2)
    assert caught.value.code == "engine_full"
    assert caught.value.retriable
    assert "stop another link there" in str(caught.value)


def test_a_statement_without_slots_is_told_that_statements_have_theirs() -> None:
    with pytest.raises(EngineError, match=r"0 of the 4 that statements have .* another statement"):
        require_slots("local[8]", {}, "west.totals", 5, share=2)


def test_a_copy_with_enough_slots_is_let_in() -> None:
    require_slots("local[4]", {"other|writer|2": None}, SPEC.link, 2)
    require_slots("spark://elsewhere:7077", {f"o{n}|w|9": None for n in range(99)}, SPEC.link, 2)
    require_slots("local[*]", {}, SPEC.link, 0)


def test_a_call_that_hangs_is_left_behind() -> None:
    answered, left = Event(), Event()

    def hangs() -> None:
        answered.wait(30)
        left.set()

    with pytest.raises(TimeoutError):
        bounded(hangs, 0.05)
    assert not left.is_set()
    answered.set()
    assert left.wait(30)
    assert bounded(lambda: 7, 5) == 7
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 / 0, 5)


def test_a_server_that_is_not_there_is_named_within_seconds() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        remote = f"sc://localhost:{free.getsockname()[1]}"
        engine = SparkEngine(remote, "token", "test")
        with pytest.raises(EngineError, match=remote) as caught:
            engine.states()
    assert caught.value.code == "engine_unavailable"


def test_a_server_that_takes_calls_and_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "CALL_TIMEOUT_S", 1.0)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        engine = SparkEngine(f"sc://localhost:{silent.getsockname()[1]}", "token", "test")
        with pytest.raises(EngineError) as caught:
            engine.states()
    assert caught.value.code == "engine_unavailable"


class Settings(dict[str, str]):
    """A session's settings, as Spark's client gives them."""

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        return dict(self)

    unset = dict.__delitem__


@pytest.mark.parametrize("fails", [False, True])
def test_a_session_keeps_nothing_of_the_tables_of_a_start(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """It never ends, and each task of it would carry all of them."""
    others = {f"{CONFIG}mesh.sql.east.others.1/u": "its own", "spark.sql.ansi.enabled": "false"}
    settings = Settings({**others, f"{CONFIG}mesh.sql.east.other.1/u": "of one that died"})

    def started(*_: object) -> str:
        assert settings == others, "what an earlier start left is gone before"
        settings[f"{CONFIG}mesh.sql.east.other.2/u"] = "of this one"
        if fails:
            raise EngineError("query_failed", "no")
        return "a query"

    monkeypatch.setattr(spark, "_started", started)
    found = SimpleNamespace(conf=settings)
    spec = replace(SPEC, writer="mesh.sql.east.other.2", work=SimpleNamespace())
    with pytest.raises(EngineError) if fails else nullcontext():
        assert spark._start(found, spec, "name") == "a query"
    assert settings == others


class Ended:
    """A query of which only the server knows why it ended."""

    def __init__(self, asked: list[str], name: str) -> None:
        self.asked, self.name = asked, name

    def exception(self) -> object:
        self.asked.append(self.name)
        raise EngineError(ENGINE_UNAVAILABLE, "no answer in 20 s")


def test_a_server_that_hangs_is_not_asked_for_each_query_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = SparkEngine("sc://localhost:1", None, "mesh")
    asked: list[str] = []
    names = [f"east.p{number}@west|writer|1" for number in range(3)]
    engine._known = {name: Ended(asked, name) for name in names}
    monkeypatch.setattr(spark, "_active", lambda _: {})
    monkeypatch.setattr(engine._session, "call", lambda _, act: act(None))
    assert engine.states() == {
        f"east.p{number}@west": (Failed("writer", spark.GONE, ""),) for number in range(3)
    }
    assert asked == names[:1]
