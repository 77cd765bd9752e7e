"""Links between the same two clusters are kept side by side: one that waits delays no other."""

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mesh_events.facts import LinkActivated, LinkFailed
from mesh_events.intents import LinkCreated
from processors.controllers import lanes as module
from processors.controllers.flows.ends import Reach
from processors.controllers.lanes import Claims, ThreadedLanes
from processors.controllers.links.links import LANES, Engines, LinksController, Mirrors
from projections import links
from projections.image import EMPTY, Image
from projections.links import Desired, State, link_id
from spark_streams.engine import FlowEngine, States
from tests.kafka_client import eventually
from tests.links.harness import meta
from tests.links.memory import QUICK, MemoryEngine, MemoryLink, MemoryLogs

PRODUCTS = [f"east.p{number}" for number in range(12)]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> MemoryLink:
    """Links of many products between the same clusters, in lanes of their own threads."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.02)
    made = MemoryLink()
    made.controller = controller(made, lambda _: made.engine)
    for product in PRODUCTS:
        add(made, product)
    return made


def controller(
    made: MemoryLink, engines: Engines, mirrors: Engines | None = None
) -> LinksController:
    """One whose engines are these, in lanes of their own threads."""
    return LinksController(
        Reach(lambda _, name: made.clusters[name], MemoryLogs(made.clusters)),
        engines,
        made.lineage,
        lambda _: made.schema,
        replace(QUICK, clock=lambda: made.time),
        ThreadedLanes,
        mirrors and Mirrors(mirrors, lambda domain: f"connect.{domain}"),
    )


def add(made: MemoryLink, product: str) -> None:
    """One more product, with a link to the other cluster."""
    made.east.create_topic(product, 2, {})
    event = LinkCreated(meta=meta("create"), product=product, cluster="west")

    def create(image: Image, at: int) -> Image:
        found = replace(image.catalog[made.topic], id=product, topic=product)
        return image._replace(
            catalog=image.catalog.set(product, found),
            links=links.created(image.links, event, found, at, at * 1000),
        )

    made.harness.change(create)


def pause(made: MemoryLink, link: str) -> None:
    def redirect(image: Image, at: int) -> Image:
        after = links.redirected(image.links, link, Desired.PAUSED, at, at * 1000)
        return image._replace(links=after)

    made.harness.change(redirect)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Delays whoever waits for it until the end of the test."""
    found = threading.Event()
    yield found
    found.set()


def all_are(many: MemoryLink, state: State, products: list[str]) -> bool:
    many.reconcile()
    many.engine.move()
    return all(many.harness.image.links[link_id(one, "west")].state is state for one in products)


def test_a_link_whose_copy_gets_partitions_delays_no_other_link(
    many: MemoryLink, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, others = PRODUCTS[0], PRODUCTS[1:]
    eventually(lambda: all_are(many, State.ACTIVE, PRODUCTS), "all are active")
    add_partitions = many.west.add_partitions

    def add_slowly(name: str, partitions: int) -> None:
        if name == slow:
            gate.wait()
        add_partitions(name, partitions)

    monkeypatch.setattr(many.west, "add_partitions", add_slowly)
    for product in PRODUCTS:
        many.east.topics[product].grow(3)
    eventually(
        lambda: (
            all_are(many, State.ACTIVE, others)
            and all(many.west.topics[one].described.partitions == 3 for one in others)
        ),
        "the copies of the others have grown",
    )
    for product in others:
        pause(many, link_id(product, "west"))
    eventually(lambda: all_are(many, State.PAUSED, others), "the others are paused")
    assert many.west.topics[slow].described.partitions == 2
    gate.set()
    eventually(lambda: many.west.topics[slow].described.partitions == 3, "it goes on")
    eventually(lambda: all_are(many, State.ACTIVE, [slow]), "it is active")
    assert many.harness.said(LinkFailed) == []
    activated = [fact.link for fact in many.harness.said(LinkActivated)]
    assert {activated.count(link_id(one, "west")) for one in PRODUCTS} == {2}


def test_a_domain_whose_topics_are_slow_to_look_at_delays_no_other_domains_link(
    many: MemoryLink, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, waits = "shop.orders", Counter[str]()
    add(many, other)
    look = many.east.topic

    def look_slowly(name: str) -> object:
        if name in PRODUCTS:
            waits[name] += 1
            gate.wait()
        return look(name)

    monkeypatch.setattr(many.east, "topic", look_slowly)
    eventually(lambda: all_are(many, State.ACTIVE, [other]), "the other domain's link is active")
    assert len(waits) == LANES


class Hanging:
    """An engine whose server is just being started, for as long as the gate is closed."""

    is_stopped = False

    def __init__(self, engine: MemoryEngine, gate: threading.Event) -> None:
        self._engine, self._gate = engine, gate

    def states(self) -> States:
        self._gate.wait()
        return self._engine.states()

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def test_a_domain_whose_server_does_not_answer_delays_no_other_domains_link(
    many: MemoryLink, gate: threading.Event
) -> None:
    asked: list[str] = []

    def engine_of(domain: str) -> FlowEngine:
        asked.append(domain)
        return Hanging(many.engine, gate) if domain == "east" else many.engine

    many.controller = controller(many, engine_of)
    other = "shop.orders"
    add(many, other)
    eventually(lambda: all_are(many, State.ACTIVE, [other]), "the other domain's link is active")
    assert sorted(asked) == ["east", "shop"]
    assert not all_are(many, State.ACTIVE, PRODUCTS[:1])
    gate.set()
    eventually(lambda: all_are(many, State.ACTIVE, PRODUCTS), "and then those of the first")


def test_a_server_of_several_domains_is_asked_once_for_all_their_links(
    many: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        add(many, f"d{number}.orders")
    looks: list[int] = []
    states = many.engine.states
    monkeypatch.setattr(many.engine, "states", lambda: (looks.append(1), states())[1])
    many.reconcile()
    assert len(looks) == 1


def test_no_server_is_started_for_links_that_rest(many: MemoryLink) -> None:
    for link in (*many.harness.image.links,):
        pause(many, link)
    everything = [many.topic, *PRODUCTS]
    eventually(lambda: all_are(many, State.PAUSED, everything), "all are paused")
    asked: list[str] = []

    def engine_of(domain: str) -> FlowEngine:
        asked.append(domain)
        return many.engine

    many.controller = controller(many, engine_of, engine_of)
    many.reconcile()
    assert asked == []


class MemoryLeadership:
    """As much of a leadership as claims look at."""

    last_report = -1


def test_an_item_is_claimed_once_and_never_on_an_older_image() -> None:
    claims, leadership = Claims(), MemoryLeadership()
    at = [EMPTY._replace(offset=offset) for offset in range(10)]

    def claim(image: object) -> bool:
        with claims.claim("link", image, leadership) as mine:  # type: ignore[arg-type]
            with claims.claim("link", image, leadership) as again:  # type: ignore[arg-type]
                assert not again
            return mine

    assert claim(at[5])
    assert claim(at[5])
    assert not claim(at[4])
    leadership.last_report = 7
    assert claim(at[6])
    # what was reported meanwhile is not in this image
    assert not claim(at[6])
    assert claim(at[7])
