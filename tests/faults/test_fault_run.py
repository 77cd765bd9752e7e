"""The fault run can fail: each verdict and each check says so when its input is broken."""

import argparse
import http.server
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events import intents
from mesh_events.codec import decode
from tests import sample_history as story
from tests.faults.oracle import DECISIONS, entitled, history, not_taken_once, unsettled
from tests.faults.run import judge, report
from tests.faults.run.__main__ import Soak, duration
from tests.faults.run.catalogue import ALONE, SHARED
from tests.faults.run.fault import Fault, Outcome, SkippedError, Verdict, judged
from tests.faults.run.prober import Probing
from tests.faults.run.proxy import Proxy
from tests.memory_log import MemoryLog, key
from tests.oracle.oracle import tell

Record = dict[str, Any]


def verdict_on(
    inject: Callable[[None], float | None],
    checks: Callable[[None], list[str]] = lambda _: [],
    bound_s: float = 10,
) -> Verdict:
    return judged(Fault("a-fault", "something is broken", inject, checks, bound_s), lambda: None)


def test_a_fault_passes_with_its_recovery_time_when_nothing_is_wrong() -> None:
    found = verdict_on(lambda _: 1.5)
    assert (found.outcome, found.recovery_s) == (Outcome.PASS, 1.5)
    assert report.succeeded([found])


def test_a_fault_fails_when_a_check_finds_something() -> None:
    found = verdict_on(lambda _: 1.5, lambda _: ["a row is missing", "one read"])
    assert found.outcome is Outcome.FAIL
    assert found.reason == "a row is missing; one read"
    assert not report.succeeded([verdict_on(lambda _: None), found])


def test_a_fault_fails_when_the_mesh_does_not_recover() -> None:
    def never(_: None) -> float:
        raise AssertionError("not within 60 s: a decision")

    found = verdict_on(never)
    assert found.outcome is Outcome.FAIL
    assert "not within 60 s: a decision" in found.reason


def test_a_fault_fails_when_it_takes_longer_than_its_bound() -> None:
    recovered, ended = threading.Event(), threading.Event()

    def hangs(_: None) -> None:
        recovered.wait(30)
        ended.set()

    found = verdict_on(hangs, bound_s=0.1)
    assert found.outcome is Outcome.FAIL
    assert found.reason == "not done within 0.1 s"
    assert not ended.is_set()
    recovered.set()


def test_a_fault_that_cannot_be_made_here_is_skipped_with_its_reason() -> None:
    def without_root(_: None) -> float:
        raise SkippedError("needs root")

    found = verdict_on(without_root)
    assert (found.outcome, found.reason) == (Outcome.SKIPPED, "needs root")
    assert report.succeeded([found])
    assert "1 SKIPPED" in report.table([found])


def test_every_fault_has_a_name_of_its_own() -> None:
    faults: list[Any] = [*SHARED, *ALONE]
    names = [each.name for each in faults]
    assert len(names) == len(set(names)) > 30


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    story.granted(found)
    return found


def records(log: MemoryLog) -> list[Record]:
    found, image = [], {}
    for record in log.records:
        entry = decode(record, image, key("root").public)
        event = entry.event
        if event is not None and event.type_name() == "SchemaIntroduced":
            image[event.schema_id] = event.schema_text  # type: ignore[attr-defined]
        found.append(
            {
                "offset": record.offset,
                "time": record.time,
                "signer": entry.signer,
                "type": event.type_name() if event else None,
                "fields": event.model_dump(mode="json") if event else {},
            }
        )
    return found


def acknowledged(told: list[Record]) -> dict[int, str]:
    """Every intent of the log, as those who said them noted it."""
    kinds = {each.__name__ for each in intents.Intent.__subclasses__()}
    return {each["offset"]: each["fields"]["meta"]["id"] for each in told if each["type"] in kinds}


def decision_on(told: list[Record], offset: int) -> Record:
    return next(
        each for each in told if each["type"] in DECISIONS and each["fields"]["offset"] == offset
    )


def wrong(told: list[Record], said: dict[int, str]) -> list[str]:
    return not_taken_once(history(told, key("governor").public), said)


def test_the_oracle_finds_nothing_wrong_with_an_honest_log(log: MemoryLog) -> None:
    told = records(log)
    said = acknowledged(told)
    assert len(said) > 3
    assert wrong(told, said) == []


def test_the_oracle_sees_an_acknowledged_intent_that_is_not_there(log: MemoryLog) -> None:
    told = records(log)
    said = acknowledged(told)
    offset = max(said)
    assert any("there stands" in each for each in wrong(told, {**said, offset: "another"}))
    assert any("there stands None" in each for each in wrong(told, {**said, 10**9: "lost"}))


def test_the_oracle_sees_an_intent_that_nobody_decided(log: MemoryLog) -> None:
    told = records(log)
    said = acknowledged(told)
    last = max(said)
    left = [each for each in told if each["fields"].get("offset") != last]
    assert wrong(left, said) == [f"{said[last]} at {last} is undecided"]


def test_the_oracle_counts_no_decision_under_an_old_epoch_or_another_key(log: MemoryLog) -> None:
    told = records(log)
    said = acknowledged(told)
    last = max(said)
    decision = decision_on(told, last)
    stale = {**decision, "fields": {**decision["fields"], "epoch": -5}}
    forged = {**decision, "signer": key("east").public}
    for instead in (stale, forged):
        changed = [instead if each is decision else each for each in told]
        assert wrong(changed, said) == [f"{said[last]} at {last} is undecided"]


def test_the_oracle_sees_an_intent_that_took_effect_twice(log: MemoryLog) -> None:
    told = records(log)
    said = acknowledged(told)
    last = max(said)
    intent = next(each for each in told if each["offset"] == last)
    decision = decision_on(told, last)
    end = told[-1]["offset"]
    again = {**intent, "offset": end + 1}
    twice = {**decision, "offset": end + 2, "fields": {**decision["fields"], "offset": end + 1}}
    assert wrong([*told, again, twice], said) == [f"{said[last]} was accepted 2 times"]


def test_rights_are_those_of_the_grants_in_force(log: MemoryLog) -> None:
    said = tell(records(log))
    (request,) = said["accesses"].values()
    topic = said["products"][request["product"]]["topic"]
    assert entitled(said) == {(request["cluster"], request["application"], topic)}
    assert unsettled(said) == [f"{request['meta']['id']} is GRANTED"]
    request["state"] = "REVOKED"
    assert entitled(said) == set()
    assert unsettled(said) == []


def test_rows_that_say_something_else_than_the_oracle_are_seen(log: MemoryLog) -> None:
    said = tell(records(log))
    rows: dict[str, dict[str, Any]] = {
        "mesh.access": {name: {"state": one["state"]} for name, one in said["accesses"].items()},
        "mesh.links": {name: {"state": one["state"]} for name, one in said["links"].items()},
        "mesh.catalog": {
            name: {"description": one["description"]} for name, one in said["products"].items()
        },
    }
    assert judge.unlike_oracle(said, rows) == []
    (request,) = rows["mesh.access"]
    rows["mesh.access"][request] = {"state": "REVOKED"}
    assert [text.split(" ")[0] for text in judge.unlike_oracle(said, rows)] == ["mesh.access"]
    rows["mesh.access"] = {}
    assert judge.unlike_oracle(said, rows) != []


class Answer(SimpleNamespace):
    """An attempt with one outcome after the other; the last one for ever."""

    def make(self) -> str:
        return str(self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0])


def test_who_reads_without_a_right_is_told_and_who_is_not_refused_again_proves_nothing() -> None:
    stage: Any = SimpleNamespace(probing=Probing())
    one: Any = Answer(topic="east.users", why="one", outcomes=["refused"])
    other: Any = Answer(topic="east.users", why="other", outcomes=["no answer", "refused"])
    stage.probing.add(one)
    stage.probing.add(other)
    assert judge.nobody_read(stage) == []
    stage.probing.once()
    one.outcomes = ["no answer"]
    assert judge.nobody_read(stage, 0.1) == ["was not refused behind the fault: one at east.users"]
    one.outcomes, other.outcomes = ["refused"], ["the end of the partition", "refused"]
    stage.probing.once()
    stage.probing.once()
    assert judge.nobody_read(stage) == [
        "read without a right: other read east.users: the end of the partition"
    ]


def test_records_that_kafka_acknowledged_and_the_source_lost_are_told() -> None:
    noted = SimpleNamespace(acknowledged=SimpleNamespace(records={(0, 0): b"a", (0, 1): b"b"}))
    stage: Any = SimpleNamespace(writing=noted)
    source = {0: [(0, None, b"a", []), (1, None, b"b", [])]}
    assert judge.unwritten(stage, source) == []
    source[0].pop()
    assert judge.unwritten(stage, source) == ["the source lost 1 acknowledged records: [(0, 1)]"]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def page() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(10)


def connect_and_read(port: int) -> None:
    """The reset may come before the connection stands, or after."""
    with closing(socket.socket()) as connection:
        connection.settimeout(10)
        connection.connect(("127.0.0.1", port))
        connection.recv(1)


def test_the_proxy_passes_on_answers_late_and_resets(page: int) -> None:
    with Proxy(page) as proxy:
        address = f"http://127.0.0.1:{proxy.port}/"
        with urllib.request.urlopen(address, timeout=10) as answer:
            assert answer.read() == b"here"
        proxy.delay_s, began = 0.3, time.monotonic()
        with urllib.request.urlopen(address, timeout=10) as answer:
            answer.read()
        assert time.monotonic() - began >= 0.3
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connect_and_read(proxy.port)
        assert proxy.connections == 3


def test_a_soak_takes_each_fault_once_before_one_comes_twice_until_time_is_over() -> None:
    among: list[Any] = [Fault(name, "", lambda _: None, lambda _: []) for name in "abcd"]

    def names(seed: int) -> list[str]:
        return [each.name for each in islice(Soak(60, seed).faults(among), 12)]

    rounds = [names(1)[start : start + 4] for start in (0, 4, 8)]
    assert [sorted(one) for one in rounds] == [list("abcd")] * 3
    assert names(1) == names(1) != names(2)
    assert not list(Soak(0, 1).faults(among))


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("45m", 2700), ("8h", 28800)])
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "m", "0s", "1.5h", "-1m", "1d", "٣m", "1m\n"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no duration: 90s, 45m, 8h"):
        duration(text)
