"""Checks are made for every domain alike, and a server that starts is given time to know."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from structlog.testing import capture_logs

from mesh_events import intents
from mesh_events.connectors import ConnectorAdded, ConnectorUpdated
from mesh_events.errors import InfrastructureError, RefusedError
from mesh_events.facts import CheckFailed, CheckPassed, Fact
from mesh_events.schema.definition import Version
from mesh_events.statements import StatementAdded, StatementUpdated
from processors.controllers.checks import checks, findings
from processors.controllers.checks.checks import CHECKED, ChecksController, missing
from processors.controllers.checks.findings import CERTAIN_S
from processors.controllers.flows.partition_limit import OF_STATEMENTS, Most, PartitionLimit
from processors.controllers.lanes import ThreadedLanes
from processors.controllers.statements import planning
from processors.governor.waiting import Awaited
from projections.deciding.decide import decide
from projections.deciding.verdict import Waiting
from projections.replay import fold
from spark_streams.sql.errors import SqlError
from tests import sample_history as story
from tests.kafka_client import eventually
from tests.links.memory import MemoryCluster, MemoryLink
from tests.memory_log import MemoryLog, Never, key, meta, sign
from tests.unit.mesh_events.schema.test_registry import registry

STATEMENT_CHECKS = ("statement_sound", "destination_free")


def publications(log: MemoryLog, domain: str, count: int) -> None:
    for number in range(count):
        name = f"{domain}.p{number}"
        log.say(
            intents.ProductPublished,
            domain,
            **{**story.product(), "product": name, "topic": name},
        )


def waiting(log: MemoryLog) -> dict[int, Awaited]:
    """What a governor finds waiting, now."""
    found = {
        offset: decide(log.image, entry, log.image.clock)
        for offset, entry in log.image.intents.undecided.items()
    }
    return {
        offset: Awaited(verdict.checks, log.image.offset)
        for offset, verdict in found.items()
        if isinstance(verdict, Waiting)
    }


def test_missing_checks_are_named_oldest_intent_first() -> None:
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 2)
    publications(log, "west", 1)
    found = list(missing(log.image, waiting(log)))
    assert [task.offset for task in found] == sorted(task.offset for task in found)
    assert {task.check for task in found} == {"topic_exists", "schema_registered"}
    assert len(found) == 6


def test_a_round_looks_at_the_oldest_records_of_each_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "MOST", 2)
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 5)
    publications(log, "west", 3)
    offsets = sorted(log.image.intents.undecided)
    found = {task.offset for task in missing(log.image, waiting(log))}
    assert found == {*offsets[:2], *offsets[5:7]}


def test_a_round_looks_at_those_alone_that_wait() -> None:
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 3)
    _, second, _ = sorted(log.image.intents.undecided)
    known = waiting(log)
    some = {second: known[second], 9999: known[second]}
    assert {task.offset for task in missing(log.image, some)} == {second}


def test_a_check_that_came_out_is_missing_no_more() -> None:
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    known = waiting(log)
    log.report(CheckPassed, offset=next(iter(known)), check="topic_exists", evidence={})
    assert [task.check for task in missing(log.image, known)] == ["schema_registered"]


def test_what_was_found_on_a_later_state_waits_for_its_image() -> None:
    """A step may find an intent waiting for a domain that the same step registers."""
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    later = {offset: Awaited(one.checks, one.behind + 1) for offset, one in waiting(log).items()}
    assert later
    assert list(missing(log.image, later)) == []


def test_no_check_is_made_for_what_is_refused_whatever_the_time() -> None:
    log = MemoryLog()
    story.domains(log)
    log.append(log.make(intents.ProductPublished, "west", **story.product()), by="east")
    log.say(intents.ProductPublished, "west", **story.product())
    log.operator(intents.DomainQuarantined, domain="east", reason="it leaks")
    log.govern()
    log.say(intents.ProductPublished, "east", **story.product())
    assert list(missing(log.image, waiting(log))) == []


class Hanging(MemoryCluster):
    """A cluster on which the look at a topic of east's never ends."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__("shared")
        self._gate = gate

    def topic(self, name: str) -> Any:
        if name.startswith("east."):
            self._gate.wait()
        return super().topic(name)


class Reports:
    """A leadership that keeps whose checks came out."""

    last_report = -1

    def __init__(self, log: MemoryLog) -> None:
        self._undecided = log.image.intents.undecided
        self.told: set[tuple[str, str]] = set()

    def meta(self, *_: object, **__: object) -> Any:
        return meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0)

    def report(self, fact: Fact) -> None:
        assert isinstance(fact, CheckPassed | CheckFailed)
        event = self._undecided[fact.offset].event
        assert event is not None
        self.told.add((event.meta.domain, fact.check))


@pytest.mark.parametrize("check", ["topic_exists", "schema_registered"])
def test_a_check_of_one_domain_that_hangs_delays_no_other_domains(check: str) -> None:
    """Both ask the same cluster and the same registry, and one says very much."""
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 50)
    publications(log, "north", 2)
    gate = threading.Event()
    cluster = Hanging(gate if check == "topic_exists" else _open())
    registry = Slow(gate if check == "schema_registered" else _open())
    leadership, lanes = Reports(log), ThreadedLanes("checks")
    controller = ChecksController(lambda *_: cluster, registry, lambda: waiting(log), lanes)  # type: ignore[arg-type,return-value]
    try:
        controller.reconcile(log.image, leadership)  # type: ignore[arg-type]
        eventually(lambda: ("north", check) in leadership.told, "north's check comes out", 20)
    finally:
        gate.set()


def test_a_text_that_is_parsed_for_long_delays_no_other_domains_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog(checks={check: Never() for check in STATEMENT_CHECKS})
    story.domains(log)
    for domain in ("east", "north"):
        names = {"statement": f"{domain}.s", "stream": f"{domain}.t", "destination": f"{domain}.o"}
        sql = f"SELECT a FROM `{domain}.t`"
        log.say(StatementAdded, domain, **story.statement(**names, sql=sql))
    gate = threading.Event()

    def parsing(sql: str) -> Any:
        if "east." in sql:
            gate.wait()
        raise SqlError("sql_syntax", "no statement")

    monkeypatch.setattr(planning, "parse", parsing)
    cluster = MemoryCluster("east")
    for domain in ("east", "north"):
        cluster.create_topic(f"{domain}.t", 1, {})
    leadership, lanes = Reports(log), ThreadedLanes("checks")
    controller = ChecksController(lambda *_: cluster, Slow(_open()), lambda: waiting(log), lanes)  # type: ignore[arg-type,return-value]
    try:
        controller.reconcile(log.image, leadership)  # type: ignore[arg-type]
        eventually(lambda: ("north", "statement_sound") in leadership.told, "north's is parsed", 20)
        assert ("east", "statement_sound") not in leadership.told
    finally:
        gate.set()


class Outcomes:
    """A leadership that keeps what is reported."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def meta(self, *_: object, **__: object) -> Any:
        return meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0)

    def report(self, fact: Fact) -> None:
        self.facts.append(fact)


@pytest.mark.parametrize(("partitions", "code"), [(3, None), (4, "too_many_partitions")])
def test_a_grant_whose_link_could_not_start_is_refused_as_the_link_would_fail(
    partitions: int, code: str | None
) -> None:
    log = MemoryLog(checks={"target_free": Never()})
    story.published(log)
    story.granted(log)
    clusters = {name: MemoryCluster(name) for name in ("east", "west")}
    clusters["east"].create_topic("east.users", partitions, {})
    outcomes = Outcomes()
    controller = ChecksController(
        lambda _, name: clusters[name],
        Slow(_open()),  # type: ignore[arg-type]  # it is not asked
        lambda: waiting(log),
        most=Most(links=3),
    )
    controller.reconcile(log.image, outcomes)  # type: ignore[arg-type]
    (fact,) = outcomes.facts
    if code is None:
        assert isinstance(fact, CheckPassed)
        return
    assert isinstance(fact, CheckFailed)
    link = MemoryLink(partitions=partitions, most=3)
    link.settle()
    assert (fact.code, fact.reason) == (code, link.harness.link.failure)


class Narrow(Outcomes):
    """A leadership whose log takes no fact with so much evidence."""

    def report(self, fact: Fact) -> None:
        assert isinstance(fact, CheckPassed | CheckFailed)
        if fact.evidence:
            raise RefusedError("too_large", "at most 524288 bytes are read")
        super().report(fact)


def test_a_check_whose_outcome_is_too_large_fails() -> None:
    """Without an outcome it would be made again and again."""
    log = MemoryLog(checks={"target_free": Never()})
    story.published(log)
    story.granted(log)
    clusters = {name: MemoryCluster(name) for name in ("east", "west")}
    clusters["east"].create_topic("east.users", 1, {})
    outcomes, registry = Narrow(), Slow(_open())
    controller = ChecksController(lambda _, name: clusters[name], registry, lambda: waiting(log))  # type: ignore[arg-type]
    controller.reconcile(log.image, outcomes)  # type: ignore[arg-type]
    (fact,) = outcomes.facts
    assert isinstance(fact, CheckFailed)
    assert (fact.code, fact.reason) == ("check_too_large", "at most 524288 bytes are read")


@pytest.mark.parametrize("large", ["east.t", "east.table"])
def test_a_statement_over_a_topic_above_the_limit_is_refused(
    large: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(intent: Any, _: str, __: str, topic: Any, *___: Any) -> Any:
        for name in (intent.stream, *intent.tables):
            topic(name)
        return SimpleNamespace(query=SimpleNamespace(out=[]))

    monkeypatch.setattr(findings, "plan_statement", plan)
    cluster = MemoryCluster("east")
    for name in ("east.t", "east.table"):
        cluster.create_topic(name, 4 if name == large else 3, {})
    names = {"statement": "east.s", "stream": "east.t", "destination": "east.o"}
    intent = StatementAdded(
        meta=meta("east", "01a0c451-0000-7000-8000-000000000000", 0),
        sql="",
        tables=("east.table",),
        **names,
    )
    limit = PartitionLimit(3, OF_STATEMENTS)
    found = findings.statement_sound(intent, "east.o", cluster, Slow(_open()), limit=limit)  # type: ignore[arg-type]
    assert found.code == "too_many_partitions"
    for part in (large, "4 partitions", "at most 3", OF_STATEMENTS):
        assert part in found.reason


UNION = '{"type":"record","name":"R","fields":[{"name":"a","type":%s}]}'
HALF_NAMED = r'{"type":"string","logicalType":"\ud800"}'


@pytest.mark.parametrize(
    ("kind", "texts", "code"),
    [
        ("JSON", [r'{"properties":{"\ud800":{"pattern":"(?=a)"}}}'], "unsupported_pattern"),
        (
            "AVRO",
            [UNION % f'["null",{HALF_NAMED},"long"]', UNION % f'["null","long",{HALF_NAMED}]'],
            "incompatible_schema",
        ),
    ],
)
def test_a_schema_with_half_of_a_surrogate_pair_is_refused(
    kind: str, texts: list[str], code: str
) -> None:
    """It is pure ASCII in the registry, and was the end of each worker in turn."""
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    known = registry(**{"east.p0-value": [Schema(text, kind) for text in texts]})
    outcomes = Written()
    controller = ChecksController(lambda *_: MemoryCluster("shared"), known, lambda: waiting(log))  # type: ignore[arg-type,return-value]
    controller.reconcile(log.image, outcomes)  # type: ignore[arg-type]
    (fact,) = [one for one in outcomes.facts if isinstance(one, CheckFailed)]
    assert fact.code == code
    assert r"\ud800" in fact.reason


class Written(Outcomes):
    """A leadership that encodes what is reported, as for the log."""

    def report(self, fact: Fact) -> None:
        fact = fact.shortened()
        sign(fact, key("controller"))
        if isinstance(fact, CheckPassed | CheckFailed) and fact.check == "schema_registered":
            super().report(fact)


class Broken(Outcomes):
    """A leadership that has no way to report what was found for one check."""

    def report(self, fact: Fact) -> None:
        if type(fact) is CheckFailed:
            raise ValueError("nobody has thought of this")
        super().report(fact)


def test_a_finding_that_cannot_be_reported_holds_up_no_other() -> None:
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    outcomes = Broken()
    controller = ChecksController(
        lambda *_: MemoryCluster("shared"), Slow(_open()), lambda: waiting(log)
    )  # type: ignore[arg-type,return-value]
    with capture_logs() as lines:
        controller.reconcile(log.image, outcomes)  # type: ignore[arg-type]
    assert [type(one) for one in outcomes.facts] == [CheckPassed]
    assert [line["check"] for line in lines if line["event"] == "check_broken"] == ["topic_exists"]


def _open() -> threading.Event:
    gate = threading.Event()
    gate.set()
    return gate


class Slow:
    """A registry that never answers for a subject of east's."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate

    def latest(self, subject: str) -> tuple[int, int]:
        if subject.startswith("east."):
            self._gate.wait()
        return FOUND

    def history(self, subject: str) -> list[Version]:
        """One version, whatever is asked: nothing is compared."""
        del subject
        return []


class Starting:
    """A registry that answers as told, one answer after the other; None means down."""

    def __init__(self, *answers: tuple[int, int] | bool | None) -> None:
        self._answers = list(answers)

    def latest(self, subject: str) -> tuple[int, int] | None:
        answer = self._answers.pop(0)
        if answer is None:
            raise InfrastructureError(f"{subject}: no answer", retriable=True)
        return None if isinstance(answer, bool) else answer

    def history(self, subject: str) -> list[Version]:
        """One version, whatever is asked: nothing is compared."""
        del subject
        return []


class Listening:
    """A leadership that keeps what is reported on the schema."""

    def __init__(self) -> None:
        self.said: list[Fact] = []

    def meta(self, *_: object, **__: object) -> Any:
        return meta("mesh", "01a0c451-0000-7000-8000-000000000000", 0)

    def report(self, fact: Fact) -> None:
        if isinstance(fact, CheckPassed | CheckFailed) and fact.check == "schema_registered":
            self.said.append(fact)


MISSING = False
FOUND = (7, 1)


@pytest.mark.parametrize(
    ("answers", "seconds", "expected"),
    [
        ([MISSING, FOUND], [0.1], [CheckPassed]),
        ([MISSING, MISSING], [CERTAIN_S + 0.1], [CheckFailed]),
        ([MISSING, None, MISSING, FOUND], [1, CERTAIN_S, 0.1], [CheckPassed]),
        ([MISSING, MISSING, MISSING], [CERTAIN_S / 2, CERTAIN_S], [CheckFailed]),
    ],
)
def test_a_registry_must_lack_a_schema_for_a_while(
    answers: list[Any],
    seconds: list[float],
    expected: list[type[Fact]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was killed once refused a publication: it answered before it knew its schemas."""
    now = 100.0
    monkeypatch.setattr(checks.time, "monotonic", lambda: now)
    log = MemoryLog(checks={"topic_exists": Never(), "schema_registered": Never()})
    story.domains(log)
    publications(log, "east", 1)
    cluster, registry, leadership = MemoryCluster("east"), Starting(*answers), Listening()
    controller = ChecksController(lambda *_: cluster, registry, lambda: waiting(log))  # type: ignore[arg-type,return-value]
    for wait in (*seconds, 0.0):
        assert leadership.said == []
        controller.reconcile(log.image, leadership)  # type: ignore[arg-type]
        now += wait
    assert [type(one) for one in leadership.said] == expected


def test_only_what_is_looked_at_ever_waits() -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    log.say(StatementAdded, "east", **story.statement())
    story.settle(log)
    text = {"sql": "SELECT 1 AS one FROM east.users", "stream": "east.users"}
    log.say(StatementUpdated, "east", statement=story.STATEMENT, **text)
    log.say(intents.ProductUpdated, "east", product=story.PRODUCT, topic_replaced=True)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    log.say(ConnectorUpdated, "east", **story.connector())
    story.settle(log)
    waited = {
        type(entry.event)
        for image in fold(log.records)
        for entry in image.intents.undecided.values()
        if isinstance(decide(image, entry, entry.time), Waiting)
    }
    assert waited == set(CHECKED)
