"""Lineage on its way to a receiver: a real one on this machine, over a topic on paper."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import RunState
from openlineage.client.serde import Serde
from structlog.testing import capture_logs

from mesh_events.errors import ConfigurationError, InfrastructureError
from processors.controllers.controller import NotLeaderError
from processors.controllers.forwarding import (
    DOUBT,
    RETRY_MOST_S,
    ROUND_S,
    TRIES,
    ForwardingController,
    Written,
)
from processors.lineage.events import JobRun, event
from processors.lineage.receiver import Answer, HttpReceiver, Outcome
from processors.settings import WorkerSettings
from projections.image import EMPTY
from tests.openlineage_receiver import LETTER_BY_LETTER, SLOW, LocalReceiver, receiving

SENT = 5
ENDPOINT = "api/v1/lineage"
WORKER = {
    "governance_cluster": "east",
    "clusters": {},
    "registry_url": "",
    "registry_user": "",
    "registry_password": "",
    "spark_remote": "",
}


def run_id(number: int) -> str:
    return f"0190163d-8694-739b-aea5-{number:012d}"


def written(number: int) -> bytes:
    run = JobRun("mesh.links", "east.users@west", run_id(number), "LINK", (), (), {})
    return Serde.to_json(event(RunState.RUNNING, run, datetime.now(UTC))).encode()


@dataclass
class PaperTopic:
    """The topic, and the place that outlives who reads; `down` refuses every call."""

    values: list[bytes | None] = field(default_factory=lambda: [written(n) for n in range(SENT)])
    saved: int = 0
    opened: int = 0
    down: bool = False
    saving_fails: bool = False

    def open(self) -> "PaperEvents":
        self.answer()
        self.opened += 1
        return PaperEvents(self, self.saved)

    def answer(self) -> None:
        if self.down:
            raise InfrastructureError("east does not answer", retriable=True)


@dataclass
class PaperEvents:
    topic: PaperTopic
    position: int

    def first(self) -> Written | None:
        self.topic.answer()
        if self.position >= len(self.topic.values):
            return None
        return Written(self.position, self.topic.values[self.position])

    def dealt_with(self) -> None:
        self.position += 1

    def save(self) -> None:
        if self.topic.saving_fails:
            raise InfrastructureError("no coordinator", retriable=True)
        self.topic.saved = self.position

    def close(self) -> None:
        return


class MemoryLeadership:
    """A leadership that can end; nothing is reported under it."""

    last_report = -1

    def __init__(self, epoch: int = 7) -> None:
        self.epoch, self.left = epoch, 10_000

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotLeaderError("another governor has started")

    def report(self, fact: object) -> None:
        raise NotImplementedError(fact)

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Any:
        raise NotImplementedError(cause, step, generation, correlation)


@dataclass
class Forwarded:
    """A controller at work, and its clock."""

    url: str
    topic: PaperTopic = field(default_factory=PaperTopic)
    key: str | None = None
    leadership: MemoryLeadership = field(default_factory=MemoryLeadership)
    time: float = 100.0
    answer_s: float = 30.0

    def __post_init__(self) -> None:
        self.receiver = HttpReceiver(self.url, ENDPOINT, self.key, answer_s=self.answer_s)
        self.controller = self.restart()

    def restart(self) -> ForwardingController:
        """A worker that begins anew; what the one before did not save is forgotten."""
        self.controller = ForwardingController(self.topic.open, self.receiver, lambda: self.time)
        return self.controller

    def look(self, seconds: float = 2.0) -> None:
        self.time += seconds
        self.controller.reconcile(EMPTY, self.leadership)


@pytest.fixture
def receiver() -> Iterator[LocalReceiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def made(receiver: LocalReceiver) -> Iterator[Forwarded]:
    found = Forwarded(receiver.url)
    yield found
    found.receiver.close()


def runs(*numbers: int) -> list[str]:
    return [run_id(number) for number in numbers]


def test_every_event_comes_in_its_order_and_as_it_was_written(receiver: LocalReceiver) -> None:
    made = Forwarded(f"{receiver.url}/behind/", key="s3cret")
    made.look()
    path, headers, _ = receiver.got[0]
    assert path == "/behind/api/v1/lineage"
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["Content-Type"] == "application/json"
    assert [got for _, _, got in receiver.got] == [json.loads(one) for one in made.topic.values]
    made.topic.values.append(written(SENT))
    made.look()
    made.look()
    assert receiver.runs() == runs(*range(SENT + 1))


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 422])
def test_what_is_refused_is_told_with_job_and_run_and_passed_over(
    made: Forwarded, receiver: LocalReceiver, status: int
) -> None:
    receiver.judge = lambda found: status if found["run"]["runId"] == run_id(1) else 201
    with capture_logs() as logs:
        made.look()
    assert receiver.runs() == runs(*range(SENT))
    (told,) = logs
    assert told["event"] == "lineage_event_passed_over"
    assert (told["job"], told["run"]) == ("mesh.links/east.users@west", run_id(1))
    assert told["reason"] == f"answered {status}"


@pytest.mark.parametrize("status", [502, 503, 504, 408, 429, 301, 307])
def test_what_is_not_taken_is_sent_again_ever_less_often_before_anything_else(
    made: Forwarded, receiver: LocalReceiver, status: int
) -> None:
    receiver.judge = lambda found: status if found["run"]["runId"] == run_id(1) else 201
    times = []
    for _ in range(120):
        before = len(receiver.got)
        made.look(1.0)
        times += [made.time] * (len(receiver.got) - before)
    assert set(receiver.runs()[1:]) == {run_id(1)}
    pauses = [after - before for before, after in pairwise(times[1:])]
    assert pauses == [1, 2, 4, 8, 16, 32]
    receiver.judge = lambda _: 201
    made.look(RETRY_MOST_S)
    assert receiver.runs()[-SENT + 1 :] == runs(*range(1, SENT))
    receiver.judge = lambda _: status
    made.topic.values.append(written(SENT))
    with capture_logs() as logs:
        made.look()
    assert [one["again_in_s"] for one in logs] == [1]


def test_a_receiver_that_is_down_is_waited_for_and_misses_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    made = Forwarded(f"http://127.0.0.1:{port}")
    with capture_logs() as logs:
        for _ in range(5 * TRIES):
            made.look(RETRY_MOST_S)
    assert {one["event"] for one in logs} == {"lineage_not_taken"}
    assert logs[-1]["reason"] == "cannot be reached"
    assert logs[-1]["again_in_s"] == RETRY_MOST_S
    with receiving(port) as receiver:
        made.look(RETRY_MOST_S)
        assert receiver.runs() == runs(*range(SENT))


def test_an_event_that_the_receiver_fails_over_is_passed_over_if_it_takes_others(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    receiver.judge = lambda found: 500 if found["run"]["runId"] in runs(1, 2) else 201
    began = made.time
    while len(receiver.got) < SENT + DOUBT + 3:
        made.look()
    assert made.time - began < 60
    # the one that it took before shows that it takes others; the job's next one is tried once
    expected = [*runs(0), *DOUBT * runs(1), *runs(0, 1), *runs(2, 0, 2, 3, 4)]
    assert receiver.runs() == expected


def test_jobs_whose_events_the_receiver_fails_over_have_half_of_the_time(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    count = 40
    made.topic.values = [written(one) for one in range(count)]

    def slowly(found: dict[str, Any]) -> int:
        bad = found["run"]["runId"] != runs(0)[0]
        made.time += 10 if bad else 0
        return 500 if bad else 201

    receiver.judge = slowly
    while made.topic.saved < count:
        made.look(1)
    # the first one is doubted, then tried together with one that is taken; each other one costs
    # two tries, and as long a rest in which those behind it are passed over
    assert receiver.runs()[: DOUBT + 3] == [*runs(0), *DOUBT * runs(1), *runs(0, 1)]
    assert len(receiver.got) < count


def test_an_event_is_not_passed_over_where_the_receiver_comes_back_meanwhile(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    made.look()
    made.topic.values.append(written(SENT))
    answers = iter([500] * DOUBT)
    receiver.judge = lambda _: next(answers, 201)
    while len(receiver.got) < SENT + DOUBT + 2:
        made.look()
    made.look(RETRY_MOST_S)
    assert receiver.runs()[SENT:] == [*DOUBT * runs(SENT), *runs(SENT - 1, SENT, SENT)]


def test_an_event_that_nothing_shows_to_be_at_fault_is_passed_over_in_the_end(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    receiver.judge = lambda found: 500 if found["run"]["runId"] in runs(0, 1) else 201
    began = made.time
    while len(receiver.got) < TRIES:
        made.look()
    assert 40 * 60 < made.time - began < 80 * 60
    # the next one has as many tries, and its pauses begin anew
    while len(receiver.got) < 2 * TRIES:
        made.look()
    assert 80 * 60 < made.time - began < 160 * 60
    made.look()
    assert receiver.runs() == [*TRIES * runs(0), *TRIES * runs(1), *runs(2, 3, 4)]


def test_an_answer_that_does_not_come_in_time_is_not_waited_for(receiver: LocalReceiver) -> None:
    made = Forwarded(receiver.url, answer_s=1.0)
    receiver.judge = lambda _: SLOW
    with capture_logs() as logs:
        made.look()
    assert [one["reason"] for one in logs] == ["no answer in time"]


def test_an_answer_that_comes_letter_by_letter_is_not_waited_for(receiver: LocalReceiver) -> None:
    made = Forwarded(receiver.url, answer_s=0.3)
    receiver.judge = lambda _: LETTER_BY_LETTER
    with capture_logs() as logs:
        made.look()
    assert [one["reason"] for one in logs] == ["no answer in time"]
    # nothing of it stays in the connections' way
    receiver.judge = lambda _: 201
    made.look(RETRY_MOST_S)
    assert receiver.runs() == runs(0, *range(SENT))
    receiver.judge = lambda _: 201
    made.look()
    assert receiver.runs() == [*runs(0), *runs(*range(SENT))]


def test_a_worker_that_begins_anew_goes_on_where_the_last_one_saved(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    made.look()
    made.topic.values.append(written(SENT))
    made.restart()
    made.look()
    assert receiver.runs() == runs(*range(SENT + 1))


def test_what_was_sent_and_not_saved_is_sent_twice_and_only_after_a_restart(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    made.topic.saving_fails = True
    with capture_logs() as logs:
        made.look()
        made.look()
    assert logs[0]["event"] == "lineage_place_not_saved"
    assert receiver.runs() == runs(*range(SENT))
    made.restart()
    made.look()
    assert receiver.runs() == 2 * runs(*range(SENT))


def test_nothing_is_sent_after_the_leadership_and_the_next_one_reads_the_saved_place(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    made.leadership.left = 2
    with pytest.raises(NotLeaderError):
        made.look()
    assert receiver.runs() == runs(0, 1)
    # meanwhile another worker has forwarded
    made.topic.saved = 4
    made.leadership = MemoryLeadership(epoch=8)
    made.look()
    assert receiver.runs() == runs(0, 1, 4)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b'{"job": 1}', b"[" * 100_000])
def test_what_is_no_event_is_told_and_passed_over(
    made: Forwarded, receiver: LocalReceiver, value: bytes | None
) -> None:
    made.topic.values[1] = value
    with capture_logs() as logs:
        made.look()
    assert receiver.runs() == runs(0, 2, 3, 4)
    assert [(one["event"], one["offset"]) for one in logs] == [("lineage_event_unreadable", 1)]


def test_kafka_that_does_not_answer_is_asked_again(
    made: Forwarded, receiver: LocalReceiver
) -> None:
    made.topic.down = True
    with capture_logs() as logs:
        for _ in range(10):
            made.look()
    assert {one["event"] for one in logs} == {"lineage_not_read"}
    assert len(logs) < 6
    made.topic.down = False
    made.look(RETRY_MOST_S)
    assert receiver.runs() == runs(*range(SENT))


def test_a_round_ends_while_there_is_more_to_send() -> None:
    made = Forwarded("http://127.0.0.1:1")
    sent = []

    class Unhurried:
        def send(self, found: bytes) -> Answer:
            made.time += ROUND_S / 2
            sent.append(found)
            return Answer(Outcome.TAKEN, "")

    made.controller = ForwardingController(made.topic.open, Unhurried(), lambda: made.time)
    made.look()
    assert len(sent) == made.topic.saved == 2
    made.look()
    assert len(sent) == 4


def test_the_environment_gives_no_login(
    receiver: LocalReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("OPENLINEAGE_URL", "http://elsewhere.invalid")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "other")
    for key in (None, "s3cret"):
        Forwarded(receiver.url, key=key).look()
        assert receiver.got[-1][1]["Authorization"] == (f"Bearer {key}" if key else None)


def test_one_connection_serves_for_all_events(receiver: LocalReceiver) -> None:
    made = Forwarded(receiver.url)
    made.look()
    adapter: Any = made.receiver._session.get_adapter(receiver.url)
    (pool,) = adapter.poolmanager.pools._container.values()
    assert (pool.num_requests, pool.num_connections) == (SENT, 1)
    # and is not cut while nothing is asked
    (kept,) = [one for one in pool.pool.queue if one is not None]
    kept._timer.join(20)
    assert kept._timer.finished.is_set()
    made.topic.values.append(written(SENT))
    made.look()
    assert (pool.num_requests, pool.num_connections) == (SENT + 1, 1)


@pytest.mark.parametrize("key", ["s3\ncret", " s3cret", "s3cr\u00e9t"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HttpReceiver("http://127.0.0.1:1", ENDPOINT, key)
    assert "SDM_LINEAGE_API_KEY" in str(caught.value)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "marquez:5000",
        "ftp://marquez",
        "http://",
        "http://me:s3cret@marquez",
        "http://marquez?key=s3cret",
        "http://marquez:x",
        "http://[",
    ],
)
def test_an_address_of_no_use_is_refused_and_its_secrets_are_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="SDM_LINEAGE_URL") as caught:
        HttpReceiver(url, ENDPOINT, None)
    assert "s3cret" not in str(caught.value)


def test_nothing_is_forwarded_unless_an_address_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WorkerSettings(**WORKER).lineage_receiver() is None
    monkeypatch.setenv("SDM_LINEAGE_URL", "")
    assert WorkerSettings(**WORKER).lineage_receiver() is None


def test_the_settings_name_address_endpoint_and_a_reference_to_the_key(
    receiver: LocalReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_LINEAGE_URL", receiver.url)
    monkeypatch.setenv("SDM_LINEAGE_ENDPOINT", "/lineage")
    monkeypatch.setenv("SDM_LINEAGE_API_KEY", "env:RECEIVER_KEY")
    with pytest.raises(ConfigurationError, match="RECEIVER_KEY"):
        WorkerSettings(**WORKER).lineage_receiver()
    monkeypatch.setenv("RECEIVER_KEY", "s3cret")
    found = WorkerSettings(**WORKER).lineage_receiver()
    assert found is not None
    assert found.send(written(1)).outcome is Outcome.TAKEN
    path, headers, _ = receiver.got[0]
    assert (path, headers["Authorization"]) == ("/lineage", "Bearer s3cret")
