"""Schemas keep their ids in a registry of a cluster's own, and nobody else's links wait for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.facts import EffectFailed, LinkActivated, LinkFailed
from mesh_events.intents import ClusterRegistered, ProductPublished
from mesh_events.schema.definition import Definition, Reference, Version
from processors.controllers.controller import Leadership
from processors.controllers.flows.ends import Reach
from processors.controllers.lanes import Job
from processors.controllers.links.links import LinksController
from processors.controllers.topics import registries
from processors.controllers.topics.registries import LOOK_S, RegistriesController
from processors.registries.replication import ANEW_S, CARRY_S, SchemaReplication
from projections.identity import Cluster
from projections.image import Image
from projections.links import State
from spark_streams.errors import CopyError
from tests import sample_history as story
from tests.connectors.memory import MemoryLeadership
from tests.links.memory import QUICK, MemoryLink, MemoryLogs
from tests.memory_log import MemoryLog

OWN = {
    "registry_url": "http://west.invalid/apis/ccompat/v7",
    "registry_user": "admin",
    "registry_password": "file:/secrets/west-registry",
}
WEST = Cluster("west", "west.invalid:9092", "admin", "env:NONE", 0, **OWN)


@dataclass
class Source:
    """The mesh's registry in memory."""

    found: dict[str, list[Version]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    time: float = 100.0

    def add(self, subject: str, schema_id: int, *references: Reference) -> Version:
        versions = self.found.setdefault(subject, [])
        schema = Definition("AVRO", f'"{subject}.{schema_id}"', references)
        versions.append(Version(subject, len(versions) + 1, schema_id, schema))
        return versions[-1]

    def numbers(self, subject: str) -> tuple[int, ...]:
        self.asked.append(subject)
        return tuple(one.number for one in self.found.get(subject, ()))

    def version(self, subject: str, number: int) -> Version:
        return self.found[subject][number - 1]


@dataclass
class Own:
    """A cluster's own registry in memory; `fault` is what it says to everything."""

    has: list[Version] = field(default_factory=list)
    fault: Exception | None = None

    def bring(self, wanted: Version) -> None:
        if self.fault is not None:
            raise self.fault
        for one in wanted.schema.references:
            assert [v for v in self.has if (v.subject, v.number) == (one.subject, one.version)]
        self.has.append(wanted)


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def own() -> Own:
    return Own()


@pytest.fixture
def ids(source: Source, own: Own) -> SchemaReplication:
    return SchemaReplication(lambda: source, lambda _: own, clock=lambda: source.time)  # type: ignore[arg-type,return-value]


def test_what_a_schema_refers_to_comes_first_however_deep(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("inner", 1)
    source.add("outer", 2, Reference("i", "inner", 1))
    source.add("t-value", 3, Reference("o", "outer", 1), Reference("i", "inner", 1))
    ids.carry(WEST, "t", "copy")
    assert [(one.subject, one.schema_id) for one in own.has] == [
        ("inner", 1),
        ("outer", 2),
        ("copy-value", 3),
    ]


def test_keys_and_values_are_carried_once_and_later_versions_alone(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("t-key", 1)
    source.add("t-value", 2)
    ids.carry(WEST, "t", "t")
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == [1, 2]
    source.add("t-value", 5)
    ids.carry(WEST, "t", "t")
    assert [(one.subject, one.number, one.schema_id) for one in own.has[2:]] == [("t-value", 2, 5)]
    ids.carry(WEST, "t", "t", anew=True)
    assert [one.schema_id for one in own.has[3:]] == [1, 2, 5]


def test_what_was_carried_is_looked_at_again_from_time_to_time(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("t-value", 2)
    ids.carry(WEST, "t", "t")
    source.time += ANEW_S / 2
    source.add("t-value", 3)
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == [2, 3]
    source.time += ANEW_S / 2
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == [2, 3, 2, 3]


def test_versions_before_the_one_that_is_meant_come_too_in_their_order(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    for schema_id in (1, 2, 3):
        source.add("money", schema_id)
    source.add("t-value", 9, Reference("m", "money", 2))
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == [1, 2, 9]


def test_what_failed_is_carried_the_next_time(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("t-value", 2)
    own.fault = InfrastructureError("no answer", retriable=True)
    with pytest.raises(InfrastructureError):
        ids.carry(WEST, "t", "t")
    own.fault = None
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == [2]


def test_what_many_versions_refer_to_is_carried_once(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    last = [source.add("money", schema_id) for schema_id in range(1, 51)][-1]
    for schema_id in range(51, 101):
        source.add("t-value", schema_id, Reference("m", "money", last.number))
    ids.carry(WEST, "t", "t")
    assert [one.schema_id for one in own.has] == list(range(1, 101))


@dataclass
class Slow(Own):
    """A registry that takes its time for each version, and is told when that is."""

    seconds: float = 2.0
    source: Source = field(default_factory=Source)

    def bring(self, wanted: Version) -> None:
        super().bring(wanted)
        self.source.time += self.seconds


@pytest.mark.parametrize("anew", [False, True])
def test_a_registry_that_is_slow_is_given_more_the_next_time(source: Source, anew: bool) -> None:
    own = Slow(source=source)
    last = [source.add("money", schema_id) for schema_id in range(1, 51)][-1]
    for schema_id in range(51, 101):
        source.add("t-value", schema_id, Reference("m", "money", last.number))
    ids = SchemaReplication(lambda: source, lambda _: own, clock=lambda: source.time)  # type: ignore[arg-type,return-value]
    most = round(CARRY_S / own.seconds) + 1
    for _ in range(3):
        before = len(own.has)
        with pytest.raises(InfrastructureError, match="takes longer than 60 s") as told:
            ids.carry(WEST, "t", "t", anew=anew)
        assert told.value.retriable
        assert 0 < len(own.has) - before <= most
    ids.carry(WEST, "t", "t", anew=anew)
    assert [one.schema_id for one in own.has] == list(range(1, 101))


def test_a_slow_registry_that_has_all_is_looked_at_again_without_a_word(source: Source) -> None:
    own = Slow(source=source)
    for schema_id in range(1, 51):
        source.add("t-value", schema_id)
    ids = SchemaReplication(lambda: source, lambda _: own, clock=lambda: source.time)  # type: ignore[arg-type,return-value]
    with pytest.raises(InfrastructureError):
        ids.carry(WEST, "t", "t")
    for _ in range(4):
        source.time += ANEW_S
        ids.carry(WEST, "t", "t", anew=True)
    assert [one.schema_id for one in own.has] == [*range(1, 51)] * 2 + [*range(1, 32)]
    source.add("t-value", 51)
    ids.carry(WEST, "t", "t")
    assert own.has[-1].schema_id == 51


def test_a_schema_that_refers_too_deep_is_refused(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("s0", 1)
    for depth in range(1, 2000):
        source.add(f"s{depth}", depth + 1, Reference("r", f"s{depth - 1}", 1))
    source.add("t-value", 2001, Reference("r", "s1999", 1))
    with pytest.raises(CopyError, match="refer to fewer") as told:
        ids.carry(WEST, "t", "t")
    assert told.value.code == "schema_too_deep"
    source.add("u-value", 2002, Reference("r", "s99", 1))
    ids.carry(WEST, "u", "u")
    assert len(own.has) == 101


def test_a_registry_that_was_registered_anew_is_filled_anew(
    source: Source, own: Own, ids: SchemaReplication
) -> None:
    source.add("t-value", 2)
    ids.carry(WEST, "t", "t")
    ids.carry(replace(WEST, generation=9), "t", "t")
    assert len(own.has) == 2


def test_nobody_is_asked_for_a_cluster_without_a_registry_of_its_own(
    source: Source, ids: SchemaReplication
) -> None:
    source.add("t-value", 2)
    ids.carry(replace(WEST, registry_url=None), "t", "t")
    assert source.asked == []


class Told:
    """Stands for the carrying: says what it was asked, and fails as told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bool]] = []
        self.fault: Exception | None = None

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        assert topic
        self.asked.append((cluster.name, copy, anew))
        if self.fault is not None:
            raise self.fault


DIFFERS = CopyError("registry_differs", "the cluster's own registry has another schema")


def linked(told: Told) -> MemoryLink:
    link = MemoryLink()
    link.controller = LinksController(
        Reach(lambda _, name: link.clusters[name], MemoryLogs(link.clusters), told),
        lambda _: link.engine,
        link.lineage,
        lambda _: link.schema,
        replace(QUICK, clock=lambda: link.time),
    )
    link.produce(10)
    return link


def test_a_copy_whose_ids_mean_something_else_there_never_starts() -> None:
    told = Told()
    told.fault = DIFFERS
    link = linked(told)
    link.settle()
    [failed] = link.harness.said(LinkFailed)
    assert (failed.code, failed.retriable) == ("registry_differs", False)
    assert link.harness.said(LinkActivated) == []
    assert told.asked == [("west", link.topic, True)]


def test_a_running_copy_stops_when_a_later_id_is_taken_there() -> None:
    told = Told()
    link = linked(told)
    link.settle()
    assert link.harness.link.state is State.ACTIVE
    told.fault = DIFFERS
    link.settle()
    assert [one.code for one in link.harness.said(LinkFailed)] == ["registry_differs"]
    assert link.engine.states() == {}


def test_a_running_copy_goes_on_while_the_registry_is_away() -> None:
    told = Told()
    link = linked(told)
    link.settle()
    told.fault = InfrastructureError("no answer", retriable=True)
    link.settle()
    assert link.harness.said(LinkFailed) == []
    assert link.harness.link.state is State.ACTIVE


class World:
    """A published product on a cluster with a registry of its own."""

    def __init__(self) -> None:
        self.log, self.told, self.time = MemoryLog(), Told(), 100.0
        story.published(self.log)
        self.topic = self.log.image.catalog[story.PRODUCT].topic
        self.log.operator(ClusterRegistered, **{**story.cluster("east"), **OWN})
        self.log.govern()
        self.leadership = MemoryLeadership(self.log)
        self.controller = RegistriesController(self.told, clock=lambda: self.time)

    def look(self, seconds: float) -> int:
        """How often this look led to a carrying."""
        before = len(self.told.asked)
        self.time += seconds
        self.controller.reconcile(self.log.image, self.leadership)
        return len(self.told.asked) - before


def test_a_product_is_looked_at_again_and_again() -> None:
    world = World()
    assert world.look(0) == 1
    assert world.told.asked == [("east", world.topic, False)]
    assert world.look(LOOK_S / 2) == 0
    assert world.look(LOOK_S) == 1


def test_schemas_that_cannot_be_carried_are_told_once_and_tried_again() -> None:
    world = World()
    world.told.fault = DIFFERS
    assert world.look(0) == 1
    assert world.look(LOOK_S) == 1
    [fact] = [one for one in world.leadership.facts if isinstance(one, EffectFailed)]
    assert (fact.effect, fact.subject, fact.cluster) == ("carry_schemas", world.topic, "east")
    assert fact.reason == DIFFERS.reason


def test_an_answer_that_breaks_the_carrying_is_told_and_ends_no_round() -> None:
    world = World()
    world.told.fault = AttributeError("'list' object has no attribute 'get'")
    assert world.look(0) == 1
    assert world.look(LOOK_S) == 1
    [fact] = [one for one in world.leadership.facts if isinstance(one, EffectFailed)]
    assert "the registry of cluster east answers what cannot be read (Attr" in fact.reason


class FewAtOnce:
    """Lanes that are over after the first thing that each begins."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def run(self, jobs: Mapping[str, Job], image: Image, leadership: Leadership) -> None:
        del image, leadership
        self.names = sorted(jobs)
        for name in self.names:
            jobs[name]()


def test_each_topic_has_its_turn_however_many_come_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    lanes = FewAtOnce()
    world.controller = RegistriesController(world.told, lanes, clock=lambda: world.time)
    monkeypatch.setattr(registries, "for_a_while", lambda items: items[:1])
    for number in range(3):
        name = f"east.a{number}"
        fields = story.product(product=name, topic=name)
        world.log.say(ProductPublished, "east", **fields)
    world.log.govern()
    topics = sorted(one.topic for one in world.log.image.catalog.values())
    assert len(topics) == 4
    for _ in topics:
        assert world.look(LOOK_S) == 1
    assert sorted(topic for _, topic, _ in world.told.asked) == topics
    assert lanes.names == ["east/east"]
