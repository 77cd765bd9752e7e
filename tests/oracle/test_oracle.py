"""Fold and oracle agree after every record of random logs, honest and hostile."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from immutables import Map

from mesh_events import connectors, facts, intents, statements
from mesh_events.errors import StateFaultError
from mesh_events.facts import Fact
from mesh_events.meta import Event
from mesh_events.record import Fault, FaultCode, Record
from projections.connectors.tables import route
from projections.deciding.unusable import Run
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict
from projections.image import Image
from projections.replay import entry_of
from tests import sample_history as story
from tests.fixtures import recording
from tests.memory_log import MemoryLog, open_offsets
from tests.oracle.oracle import ImpossibleError, Plain, tell

CLUSTERS = st.sampled_from(["west", "west", "west", "east"])
PRODUCTS = st.sampled_from(["east.users", "east.users", "east.orders", "west.notes"])
APPLICATIONS = st.sampled_from(["west.app", "west.app", "west.two", "north.app", "nobody.app"])
CONNECTORS = st.sampled_from(["east.shop", "east.shop", "east.other", "west.shop"])
CONNECTOR_DIRECTIONS: list[type[Event]] = [
    connectors.ConnectorStopped,
    connectors.ConnectorStarted,
    connectors.ConnectorDeleted,
]
CONNECTOR = (
    "desired", "state", "generation", "cluster", "config", "application", "tasks", "restarts",
    "failure", "run", "principal",
)  # fmt: skip
STATEMENTS = st.sampled_from(["east.copied", "east.copied", "east.other", "west.copied"])
DOMAINS = st.sampled_from(["east", "west", "north", "stranger"])
ANY = st.integers(0, 10_000)
SLIPS = st.sampled_from([0, 0, -1, 1])
"""By how much a fact misses the present generation or incarnation."""
VERDICTS: list[Verdict] = [Accepted(), Accepted(), Rejected("no", "no"), Quarantined("odd", "odd")]
SCENES: list[list[Callable[[MemoryLog], object]]] = [
    [],
    [story.domains],
    [story.published],
    [story.published, story.granted],
    [story.published, story.granted],
    [story.published, story.granted, story.settle],
    [story.published, story.statement_added, story.connector_added],
]
LINK_FACTS: list[type[facts.LinkFact]] = [
    facts.LinkActivated,
    facts.LinkActivated,
    facts.LinkAdvanced,
    facts.LinkStopped,
    facts.LinkFailed,
    facts.CopyPurged,
    facts.CopyRetained,
]


STATEMENT_FACTS: list[type[Fact]] = [
    statements.StatementActivated,
    statements.StatementActivated,
    statements.StatementAdvanced,
    statements.StatementHalted,
    statements.StatementFailed,
]
DIRECTIONS = [
    statements.StatementStopped,
    statements.StatementStarted,
    statements.StatementDeleted,
]
STATUS = ("desired", "state", "generation", "incarnation", "failure")
TEXT = ("sql", "stream", "tables", "destination", "cluster")


def plain(record: Record, image: Image) -> Plain:
    """A record as the oracle takes it; `image` is the state in front of it."""
    entry = entry_of(record, image)
    event = entry.event
    return {
        "offset": record.offset,
        "time": record.time,
        "signer": entry.signer,
        "type": event.type_name() if event else None,
        "fields": event.model_dump(mode="json") if event else {},
    }


def told_by_fold(image: Image) -> Plain:
    """The image in the words of the oracle."""
    return {
        "domains": {name: found.cluster for name, found in image.identity.domains.items()},
        "products": {
            name: (*_described(vars_of(found)), found.cluster, found.topic, found.generation)
            for name, found in image.catalog.items()
        },
        "accesses": {
            name: (found.state, found.product, found.cluster, found.link, found.generation)
            for name, found in image.access.requests.items()
        },
        "links": {
            name: (
                (found.desired, found.state, found.copy, found.generation, found.incarnation),
                (found.source_cluster, found.source_topic),
                (dict(found.positions), dict(found.source_ends)),
            )
            for name, found in image.links.items()
        },
        "statements": {
            name: (
                (found.desired, found.state, found.generation, found.incarnation, found.failure),
                (found.sql, found.stream, list(found.tables), found.destination, found.cluster),
                (dict(found.positions), dict(found.written), dict(found.dead)),
            )
            for name, found in image.statements.items()
        },
        "connectors": {
            name: {k: getattr(found, k) for k in CONNECTOR}
            | {"config": dict(found.config), "topic_ids": dict(found.topic_ids)}
            for name, found in image.connectors.items()
        },
        "undecided": open_offsets(image),
        "epoch": image.epoch,
        "uncounted": image.ignored,
    }


def vars_of(value: Any) -> Plain:
    return {name: getattr(value, name) for name in value.__slots__}


def _described(fields: Plain) -> tuple[Any, ...]:
    names = ("description", "owner", "quality", "sla", "version")
    return (*(fields[name] for name in names), tuple(fields["tags"]))


def told_by_oracle(records: list[Plain]) -> Plain:
    """The oracle's answer in the same shape."""
    told = tell(records)
    return {
        **told,
        "products": {
            name: (*_described(found), found["cluster"], found["topic"], found["generation"])
            for name, found in told["products"].items()
        },
        "accesses": {
            name: tuple(found[k] for k in ("state", "product", "cluster", "link", "generation"))
            for name, found in told["accesses"].items()
        },
        "links": {
            name: (
                tuple(found[k] for k in ("desired", "state", "copy", "generation", "incarnation")),
                found["source"],
                (found["positions"], found["source_ends"]),
            )
            for name, found in told["links"].items()
        },
        "statements": {
            name: (
                tuple(found[k] for k in STATUS),
                tuple(found[k] for k in TEXT),
                tuple(found.get(k, {}) for k in ("positions", "written", "dead")),
            )
            for name, found in told["statements"].items()
        },
        "connectors": {
            name: {k: found.get(k) for k in (*CONNECTOR, "topic_ids")} | {"config": found["config"]}
            for name, found in told["connectors"].items()
        },
    }


class AnyLog(RuleBasedStateMachine):
    """A log to which domains, governors, controllers, zombies and strangers append as they like."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog()
        self.plain: list[Plain] = []
        self.epochs: list[int] = [-1]

    @initialize(scenes=st.sampled_from(SCENES))
    def begin(self, scenes: list[Callable[[MemoryLog], object]]) -> None:
        for scene in scenes:
            scene(self.log)
        self.epochs.append(self.log.epoch)

    @invariant()
    def agree(self) -> None:
        """Both read the log the same way, or both call it impossible; then it is undone."""
        try:
            after = self._folded()
        except StateFaultError:
            self.plain.append(plain(self.log.records[-1], self.log._folded[1]))
            with pytest.raises(ImpossibleError):
                tell(self.plain)
            self.log.records.pop()
            self.plain.pop()
        else:
            assert told_by_fold(after) == told_by_oracle(self.plain)

    def _folded(self) -> Image:
        """The image at the end; every record in front of it is told to the oracle."""
        after = self.log.image
        for record in self.log.records[len(self.plain) :]:
            self.plain.append(plain(record, after))
        return after

    @rule(kind=st.sampled_from([intents.ProductPublished, intents.ProductUpdated]),
          product=PRODUCTS, sender=DOMAINS, sla=st.integers(0, 4))  # fmt: skip
    def offer(self, kind: type[Event], product: str, sender: str, sla: int) -> None:
        full = story.product(product=product, topic=product, sla=sla)
        changed = {"product": product, "sla": sla, "tags": [f"sla{sla}"]}
        fields = full if kind is intents.ProductPublished else changed
        self.log.say(kind, sender, **fields)

    @rule(product=PRODUCTS, application=APPLICATIONS, sender=DOMAINS)
    def ask(self, product: str, application: str, sender: str) -> None:
        fields = {"product": product, "application": application, "reason": "r"}
        self.log.say(intents.AccessRequested, sender, **fields)

    @rule(kind=st.sampled_from(
              [intents.AccessGranted, intents.AccessDenied, intents.AccessRevoked]),
          which=ANY, sender=DOMAINS)  # fmt: skip
    def answer(self, kind: type[Event], which: int, sender: str) -> None:
        asked = self._any(sorted(self.log.image.access.requests), which) or "nobody"
        fields = {"product": story.PRODUCT, "request": asked, "reason": "r"}
        self.log.say(kind, sender, **fields)

    @rule(kind=st.sampled_from(
              [intents.LinkCreated, intents.LinkPaused, intents.LinkResumed, intents.LinkDeleted]),
          product=PRODUCTS, cluster=CLUSTERS, sender=DOMAINS)  # fmt: skip
    def steer(self, kind: type[Event], product: str, cluster: str, sender: str) -> None:
        self.log.say(kind, sender, product=product, cluster=cluster)

    @rule(name=STATEMENTS, sender=DOMAINS, stream=st.sampled_from(["east.users", "east.orders"]),
          begin=st.sampled_from(list(statements.Begin)))  # fmt: skip
    def state(self, name: str, sender: str, stream: str, begin: statements.Begin) -> None:
        fields = story.statement(statement=name, stream=stream, begin=begin)
        self.log.say(statements.StatementAdded, sender, **fields)

    @rule(name=STATEMENTS, sender=DOMAINS, sql=st.sampled_from(["SELECT 1", "SELECT 2"]))
    def reword(self, name: str, sender: str, sql: str) -> None:
        fields = {"statement": name, "sql": sql, "stream": "east.users"}
        self.log.say(statements.StatementUpdated, sender, **fields)

    @rule(kind=st.sampled_from(DIRECTIONS), name=STATEMENTS, sender=DOMAINS)
    def direct(self, kind: type[Event], name: str, sender: str) -> None:
        self.log.say(kind, sender, statement=name)

    @precondition(lambda self: self.log.image.statements)
    @rule(kind=st.sampled_from(STATEMENT_FACTS), which=ANY, slip=SLIPS, step=SLIPS,
          positions=st.dictionaries(st.sampled_from("01"), st.integers(0, 9), max_size=2),
          signer=st.sampled_from(["controller", "controller", "controller", "east"]))  # fmt: skip
    def report_on_statement(
        self,
        kind: type[Fact],
        which: int,
        slip: int,
        step: int,
        positions: dict[str, int],
        signer: str,
    ) -> None:
        found = self._any(sorted(self.log.image.statements.items()), which)[1]
        every = {
            **story.running(found), "generation": found.generation + slip,
            "incarnation": found.incarnation + step, "positions": positions,
            "code": "c", "reason": "r", "retriable": True, "written": positions, "dead": {},
        }  # fmt: skip
        fields = {name: every[name] for name in kind.model_fields if name != "meta"}
        self.log.append(self.log.make(kind, "mesh", **fields), by=signer)

    @rule()
    def govern(self) -> None:
        self.log.govern()

    @rule()
    def keep(self) -> None:
        story.keep(self.log)

    @rule()
    def start(self) -> None:
        self.epochs.append(self.log.start_governor())

    @precondition(lambda self: self.log.image.intents.open_count)
    @rule(which=ANY, verdict=st.sampled_from(VERDICTS), signer=st.sampled_from(
              ["governor", "governor", "governor", "controller", "east", "stranger"]))  # fmt: skip
    def decide_as_one_likes(self, which: int, verdict: Verdict, signer: str) -> None:
        offset = self._any(open_offsets(self.log.image), which)
        self.log.rule(offset, verdict, by=signer)

    @rule(which=ANY, length=st.integers(1, 12), spared=st.sets(st.integers(0, 12)),
          signer=st.sampled_from(["governor", "governor", "controller", "east"]))  # fmt: skip
    def set_aside_as_one_likes(
        self, which: int, length: int, spared: set[int], signer: str
    ) -> None:
        end = len(self.log.records)
        first = self._any(open_offsets(self.log.image), which) or end - 1
        exceptions = tuple(sorted(first + one for one in spared if one <= length))
        run = Run(first, first + length, exceptions, Map(garbage=1), Fault(FaultCode.GARBAGE, "?"))
        self.log.set_aside(run, by=signer)

    @rule(which=ANY, verdict=st.sampled_from(VERDICTS), epoch=ANY, behind=st.integers(0, 12))
    def decide_as_a_zombie(self, which: int, verdict: Verdict, epoch: int, behind: int) -> None:
        undecided = open_offsets(self.log.image)
        offset = self._any(undecided, which) or len(self.log.records) - behind
        self.log.rule(offset, verdict, epoch=self._any(self.epochs, epoch))

    @precondition(lambda self: self.log.image.access.requests)
    @rule(kind=st.sampled_from([facts.AclApplied, facts.AclRemoved]), which=ANY, slip=SLIPS,
          elsewhere=st.sampled_from([False, False, True]),
          signer=st.sampled_from(["controller", "controller", "governor", "west"]))  # fmt: skip
    def report_rights(
        self, kind: type[Fact], which: int, slip: int, elsewhere: bool, signer: str
    ) -> None:
        access = self._any(sorted(self.log.image.access.requests.items()), which)[1]
        fields = {
            "subject": access.request,
            "cluster": "elsewhere" if elsewhere else access.cluster,
            "generation": access.generation + slip,
            "bindings": [],
        }
        self.log.append(self.log.make(kind, "mesh", **fields), by=signer)

    @precondition(lambda self: self.log.image.links)
    @rule(kind=st.sampled_from(LINK_FACTS), which=ANY, slip=SLIPS, step=SLIPS,
          positions=st.dictionaries(st.sampled_from("01"), st.integers(0, 9), max_size=2),
          ends=st.dictionaries(st.sampled_from("01"), st.integers(0, 9), max_size=2),
          signer=st.sampled_from(["controller", "controller", "controller", "east"]))  # fmt: skip
    def report_on_link(
        self,
        kind: type[Fact],
        which: int,
        slip: int,
        step: int,
        positions: dict[str, int],
        ends: dict[str, int],
        signer: str,
    ) -> None:
        link = self._any(sorted(self.log.image.links.items()), which)[1]
        incarnation = link.incarnation + step
        every = {
            "link": link.id, "generation": link.generation + slip, "incarnation": incarnation,
            "principal": f"link-{incarnation}", "run": "run", "source_topic": link.source_topic,
            "source_topic_id": "S", "destination_topic": link.topic, "destination_topic_id": "D",
            "positions": positions, "source_ends": ends, "code": "c", "reason": "r",
            "retriable": True, "topic": link.topic, "topic_id": "D", "unexpected_readers": [],
        }  # fmt: skip
        fields = {name: every[name] for name in kind.model_fields if name != "meta"}
        self.log.append(self.log.make(kind, "mesh", **fields), by=signer)

    @rule(kind=st.sampled_from([connectors.ConnectorAdded, connectors.ConnectorUpdated]),
          name=CONNECTORS, sender=DOMAINS, table=st.sampled_from(["orders", "bills"]))  # fmt: skip
    def connect(self, kind: type[Event], name: str, sender: str, table: str) -> None:
        more = {"table.include.list": f"public.{table}", "topic.prefix": name}
        more["transforms.route.regex"] = route(name)
        self.log.say(kind, sender, **story.connector(connector=name, more=more))

    @rule(kind=st.sampled_from(CONNECTOR_DIRECTIONS), name=CONNECTORS, sender=DOMAINS)
    def direct_connector(self, kind: type[Event], name: str, sender: str) -> None:
        self.log.say(kind, sender, connector=name)

    @precondition(lambda self: self.log.image.connectors)
    @rule(kind=st.sampled_from(connectors.CONNECTOR_FACTS), which=ANY, slip=SLIPS, restarts=SLIPS,
          signer=st.sampled_from(["controller", "controller", "controller", "east"]))  # fmt: skip
    def report_on_connector(
        self, kind: type[Fact], which: int, slip: int, restarts: int, signer: str
    ) -> None:
        found = self._any(sorted(self.log.image.connectors.items()), which)[1]
        every = {
            "connector": found.id, "generation": found.generation + slip, "principal": "p",
            "run": "run", "tasks": [0] if kind is connectors.ConnectorFailed else 1,
            "restarts": restarts, "code": "c", "reason": "r", "topic_ids": {"east.users": "T"},
            "partitions": {"east.users": 2},
        }  # fmt: skip
        fields = {name: every[name] for name in kind.model_fields if name != "meta"}
        self.log.append(self.log.make(kind, "mesh", **fields), by=signer)

    @rule(which=ANY, back=st.sampled_from([0, 0, 100_000]))
    def copy(self, which: int, back: int) -> None:
        """Anyone can append the bytes of an old record again; clocks may go back, too."""
        self.log.put(self._any(self.log.records[-15:], which), time=self.log.now - back)

    @rule(which=ANY, value=st.none() | st.binary(max_size=9))
    def spoil(self, which: int, value: bytes | None) -> None:
        self.log.put(replace(self._any(self.log.records, which), value=value))

    @staticmethod
    def _any(things: list[Any], which: int) -> Any:
        return things[which % len(things)] if things else None


TestAnyLog = AnyLog.TestCase
# a failure is told as it was found: making it smaller takes minutes (`deep` has the time)
_FAST = (Phase.explicit, Phase.reuse, Phase.generate)
_DEEP = settings.get_current_profile_name() == "deep"
TestAnyLog.settings = settings(
    stateful_step_count=30,
    max_examples=500 if _DEEP else 100,
    phases=tuple(Phase) if _DEEP else _FAST,
)


def test_reports_of_every_kind_have_every_field() -> None:
    """Random logs reach some kinds once in several runs."""
    machine = AnyLog()
    machine.begin([story.published, story.granted, story.statement_added, story.connector_added])
    steer = {"product": story.PRODUCT, "cluster": "west", "sender": "west"}
    machine.steer(kind=intents.LinkCreated, **steer)
    machine.govern()
    one = {"which": 0, "slip": 0, "signer": "controller"}
    for kind in LINK_FACTS:
        machine.report_on_link(kind=kind, step=0, positions={}, ends={}, **one)
    for kind in STATEMENT_FACTS:
        machine.report_on_statement(kind=kind, step=0, positions={}, **one)
    for kind in connectors.CONNECTOR_FACTS:
        machine.report_on_connector(kind=kind, restarts=0, **one)


@pytest.mark.parametrize("name", recording.names())
def test_fold_and_oracle_agree_on_every_prefix_of_a_recorded_log(name: str) -> None:
    log, told = MemoryLog(founded=False), []
    for record in recording.load(name):
        told.append(plain(record, log.image))
        log.records.append(record)
        assert told_by_fold(log.image) == told_by_oracle(told)


def test_the_oracle_knows_nothing_of_the_code_that_it_checks() -> None:
    source = (Path(__file__).parent / "oracle.py").read_text("utf-8")
    modules = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert modules == ["typing"]
