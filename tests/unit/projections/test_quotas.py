"""How much of each kind a domain may have, and that the counts are those of the tables."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events import connectors, intents, statements
from mesh_events.decisions import GovernorStarted
from mesh_events.meta import Event
from processors.settings import WorkerSettings
from projections.deciding.verdict import Accepted, Rejected, Verdict, Waiting
from projections.identity import Role
from projections.image import Image
from projections.quotas.kinds import DEFAULT_QUOTAS, KEPT, Kind, Quotas, Used
from projections.replay import fold
from snapshots.image_tables import put_together, take_apart
from tests import sample_history as story
from tests.fixtures import recording
from tests.memory_log import MemoryLog, key

MADE: dict[Kind, Callable[[MemoryLog, str], tuple[type[Event], str, dict[str, Any]]]] = {
    Kind.APPLICATIONS: lambda _, name: (
        intents.ApplicationRegistered,
        "east",
        {"application": f"east.{name}"},
    ),
    Kind.PRODUCTS: lambda _, name: (
        intents.ProductPublished,
        "east",
        story.product(product=f"east.{name}", topic=f"east.{name}"),
    ),
    Kind.KEYS: lambda log, name: (
        intents.KeyRegistered,
        "east",
        {"domain": "east", "public_key": key(name).public, "proof": log.proof(name, "east")},
    ),
    Kind.REQUESTS: lambda _, name: (
        intents.AccessRequested,
        "west",
        {"product": f"east.{name}", "application": "west.app", "reason": "r"},
    ),
    Kind.STATEMENTS: lambda _, name: (
        statements.StatementAdded,
        "east",
        story.statement(statement=f"east.{name}", destination=f"east.out-{name}"),
    ),
    Kind.CONNECTORS: lambda _, name: (
        connectors.ConnectorAdded,
        "east",
        story.connector(
            connector=f"east.{name}",
            more={"table.include.list": f"public.{name}", "topic.prefix": f"east.{name}",
                  "transforms.route.regex": rf"east\.{name}\.[^.]+\.(.+)"},
        ),
    ),
}  # fmt: skip
"""What makes one more of a kind: event, domain, fields."""
DOMAIN = {kind: "west" if kind is Kind.REQUESTS else "east" for kind in Kind}


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.domains(found)
    return found


def start(log: MemoryLog, **bounds: int) -> None:
    """A governor starts with these bounds for each domain."""
    event = log.make(
        GovernorStarted,
        "mesh",
        version="1",
        **{Kind(kind).bound: bound for kind, bound in bounds.items()},
    )
    log.epoch = log.append(event, by="governor")


def make(log: MemoryLog, kind: Kind, name: str, **changes: Any) -> int:
    event, sender, fields = MADE[kind](log, name)
    return log.say(event, sender, **{**fields, **changes})


def verdict(log: MemoryLog, kind: Kind, name: str) -> Verdict:
    return log.verdict(make(log, kind, name))


def products(log: MemoryLog, *names: str) -> None:
    for name in names:
        make(log, Kind.PRODUCTS, name)
    log.govern()


def used(log: MemoryLog, kind: Kind, domain: str | None = None) -> Used:
    return log.image.counts.get((domain or DOMAIN[kind], kind), Used())


def refused(found: Verdict, kind: Kind, domain: str, bound: int) -> None:
    assert isinstance(found, Rejected), found
    assert found.code == "quota_exceeded"
    for part in (domain, str(kind), str(bound), f"SDM_{kind.upper()}_PER_DOMAIN"):
        assert part in found.reason


def recount(image: Image) -> dict[tuple[str, Kind], Used]:
    """The counts from the tables alone."""
    identity = image.identity
    keys = [one for one in identity.keys.values() if one.role is Role.DOMAIN]
    requests, named = image.access.requests.values(), intents.domain_of
    rows = [
        *((one.domain, Kind.KEYS, one.revoked is None) for one in keys),
        *((named(one), Kind.APPLICATIONS, True) for one in identity.applications),
        *((named(one), Kind.PRODUCTS, True) for one in image.catalog),
        *((one.consumer, Kind.REQUESTS, _open(image, one.request)) for one in requests),
        *((one.domain, Kind.STATEMENTS, not one.is_over) for one in image.statements.values()),
        *((one.domain, Kind.CONNECTORS, not one.is_over) for one in image.connectors.values()),
        *((named(one.product), Kind.LINKS, not one.is_over) for one in image.links.values()),
    ]
    kept = Counter((domain, kind) for domain, kind, _ in rows)
    standing = Counter((domain, kind) for domain, kind, stands in rows if stands)
    return {place: Used(standing[place], kept[place]) for place in kept}


def _open(image: Image, request: str) -> bool:
    return request in image.access.open.values()


def test_a_domain_has_fifty_keys_by_default(log: MemoryLog) -> None:
    log.start_governor()
    for number in range(49):
        log.accept(make(log, Kind.KEYS, f"key-{number}"))
    refused(verdict(log, Kind.KEYS, "one-more"), Kind.KEYS, "east", 50)


def test_the_default_bounds_are_those_of_the_start_event(log: MemoryLog) -> None:
    log.start_governor()
    assert log.image.bounds.quotas == DEFAULT_QUOTAS
    assert Quotas(1000, 1000, 50, 10_000, 200, 200, 1000) == DEFAULT_QUOTAS


def test_each_kind_has_a_bound_of_its_name_in_the_start_event_and_the_settings() -> None:
    bounds = Quotas(1, 2, 3, 4, 5, 6, 7)
    assert bounds._fields == tuple(Kind)
    meta = MemoryLog().make(GovernorStarted, "mesh", version="1").meta
    assert Quotas.read(GovernorStarted(meta=meta, version="1", **bounds.named())) == bounds
    given = {kind.bound: bounds.of(kind).standing for kind in Kind}
    settings = WorkerSettings.model_construct(**given)
    assert Quotas.read(settings) == bounds
    defaults = {kind: WorkerSettings.model_fields[kind.bound].default for kind in Kind}
    assert Quotas(**defaults) == DEFAULT_QUOTAS


@pytest.mark.parametrize("kind", MADE)
def test_one_above_the_bound_is_refused_and_leaves_other_domains_alone(
    log: MemoryLog, kind: Kind
) -> None:
    products(log, "a", "b", "c")
    bound = used(log, kind).standing + 2
    start(log, **{kind: bound})
    for name in ("x", "y") if kind is not Kind.REQUESTS else ("a", "b"):
        log.accept(make(log, kind, name))
    assert used(log, kind).standing == bound
    more = "z" if kind is not Kind.REQUESTS else "c"
    refused(verdict(log, kind, more), kind, DOMAIN[kind], bound)
    other = log.say(intents.ApplicationRegistered, "north", application="north.more")
    assert isinstance(log.verdict(other), Accepted)


def test_a_bound_is_one_of_its_kind(log: MemoryLog) -> None:
    start(log, applications=1)
    log.accept(make(log, Kind.APPLICATIONS, "a"))
    refused(verdict(log, Kind.APPLICATIONS, "b"), Kind.APPLICATIONS, "east", 1)
    assert isinstance(verdict(log, Kind.PRODUCTS, "b"), Waiting)


def test_a_refusal_comes_before_the_checks_and_after_them(log: MemoryLog) -> None:
    start(log, products=1)
    first, second = (make(log, Kind.PRODUCTS, name) for name in ("a", "b"))
    assert isinstance(log.verdict(second), Waiting)
    log.accept(first)
    refused(log.verdict(second), Kind.PRODUCTS, "east", 1)


def test_the_operator_is_not_bounded(log: MemoryLog) -> None:
    start(log, applications=1, keys=1)
    for kind, name in ((Kind.APPLICATIONS, "a"), (Kind.APPLICATIONS, "b"), (Kind.KEYS, "k")):
        event, _, fields = MADE[kind](log, name)
        offset = log.operator(event, **fields)
        assert isinstance(log.verdict(offset), Accepted)
        log.accept(offset)
    assert used(log, Kind.APPLICATIONS) == Used(2, 2)
    assert used(log, Kind.KEYS) == Used(2, 2)


def test_a_revoked_key_gives_its_place_back_until_too_many_are_kept(log: MemoryLog) -> None:
    start(log, keys=2)
    for number in range(KEPT * 2 - 1):
        log.accept(make(log, Kind.KEYS, f"k{number}"))
        public = key(f"k{number}").public
        gone = {"domain": "east", "public_key": public, "reason": "r"}
        log.accept(log.say(intents.KeyRevoked, "east", **gone))
    assert used(log, Kind.KEYS) == Used(1, KEPT * 2)
    found = verdict(log, Kind.KEYS, "one-more")
    refused(found, Kind.KEYS, "east", KEPT * 2)
    assert isinstance(found, Rejected)
    assert "ended" in found.reason


def test_a_key_that_the_root_takes_gives_its_place_back(log: MemoryLog) -> None:
    start(log, keys=2)
    log.accept(make(log, Kind.KEYS, "k"))
    log.revoke_key("k")
    assert used(log, Kind.KEYS) == Used(1, 2)
    assert isinstance(verdict(log, Kind.KEYS, "other"), Accepted)


@pytest.mark.parametrize("ending", [intents.AccessDenied, intents.AccessRevoked])
def test_a_request_that_ends_gives_its_place_back(log: MemoryLog, ending: type[Event]) -> None:
    story.published(log)
    products(log, "more")
    start(log, requests=1)
    asked = story.request(log)
    refused(verdict(log, Kind.REQUESTS, "more"), Kind.REQUESTS, "west", 1)
    if ending is intents.AccessRevoked:
        story.answer(log, intents.AccessGranted, asked)
        story.settle(log)
    story.answer(log, ending, asked)
    story.settle(log)
    assert used(log, Kind.REQUESTS) == Used(0, 1)
    assert isinstance(verdict(log, Kind.REQUESTS, "more"), Accepted)


@pytest.mark.parametrize(
    ("kind", "drop", "named"),
    [
        (Kind.STATEMENTS, statements.StatementDeleted, "statement"),
        (Kind.CONNECTORS, connectors.ConnectorDeleted, "connector"),
    ],
)
def test_what_is_dropped_gives_its_place_back_when_it_is_gone(
    log: MemoryLog, kind: Kind, drop: type[Event], named: str
) -> None:
    start(log, **{kind: 1})
    make(log, kind, "a")
    story.settle(log)
    log.accept(log.say(drop, "east", **{named: "east.a"}))
    refused(verdict(log, kind, "b"), kind, "east", 1)
    story.settle(log)
    assert used(log, kind) == Used(0, 1)
    assert isinstance(verdict(log, kind, "b"), Waiting)
    # what comes back under its name is not kept twice
    make(log, kind, "a")
    log.govern()
    assert used(log, kind).kept <= 2


def test_names_of_dropped_statements_are_bounded_and_may_come_back(log: MemoryLog) -> None:
    start(log, statements=1)
    for number in range(KEPT):
        make(log, Kind.STATEMENTS, f"s{number}")
        story.settle(log)
        log.say(statements.StatementDeleted, "east", statement=f"east.s{number}")
        story.settle(log)
    assert used(log, Kind.STATEMENTS) == Used(0, KEPT)
    refused(verdict(log, Kind.STATEMENTS, "fresh"), Kind.STATEMENTS, "east", KEPT)
    assert isinstance(verdict(log, Kind.STATEMENTS, "s0"), Waiting)


def test_what_earlier_texts_have_read_is_kept_and_bounded(log: MemoryLog) -> None:
    start(log, statements=1)
    make(log, Kind.STATEMENTS, "a", tables=["east.t0"])
    log.govern()

    def updated(number: int) -> int:
        text = {"sql": "SELECT 1", "stream": "east.users", "tables": [f"east.t{number}"]}
        return log.say(statements.StatementUpdated, "east", statement="east.a", **text)

    for number in range(1, KEPT):
        updated(number)
        log.govern()
    assert used(log, Kind.STATEMENTS) == Used(1, KEPT)
    refused(log.verdict(updated(KEPT)), Kind.STATEMENTS, "east", KEPT)
    # one that reads what is known already, or more than before, keeps nothing
    same = {"sql": "SELECT 2", "stream": "east.users", "tables": [f"east.t{KEPT - 1}", "east.more"]}
    assert isinstance(
        log.verdict(log.say(statements.StatementUpdated, "east", statement="east.a", **same)),
        Waiting,
    )


def test_a_statement_that_comes_back_elsewhere_is_kept_as_one_more(log: MemoryLog) -> None:
    start(log, statements=1)
    for number in range(KEPT):
        make(log, Kind.STATEMENTS, "a", destination=f"east.to-{number}")
        story.settle(log)
        log.say(statements.StatementDeleted, "east", statement="east.a")
        story.settle(log)
    assert used(log, Kind.STATEMENTS) == Used(0, KEPT)
    elsewhere = make(log, Kind.STATEMENTS, "a", destination="east.to-more")
    refused(log.verdict(elsewhere), Kind.STATEMENTS, "east", KEPT)
    back = make(log, Kind.STATEMENTS, "a", destination=f"east.to-{KEPT - 1}")
    assert isinstance(log.verdict(back), Waiting)


def test_configs_of_a_connector_that_fill_others_are_kept_and_bounded(log: MemoryLog) -> None:
    start(log, connectors=1)
    make(log, Kind.CONNECTORS, "a")
    log.govern()

    def updated(number: int) -> int:
        _, _, fields = MADE[Kind.CONNECTORS](log, "a")
        fields["config"]["table.include.list"] = f"public.t{number}"
        fields["config"]["snapshot.mode"] = "no_data"
        return log.say(connectors.ConnectorUpdated, "east", **fields)

    for number in range(1, KEPT):
        updated(number)
        log.govern()
    assert used(log, Kind.CONNECTORS) == Used(1, KEPT)
    refused(log.verdict(updated(KEPT)), Kind.CONNECTORS, "east", KEPT)


def test_each_table_that_a_sink_does_not_fill_any_more_is_kept_and_bounded(log: MemoryLog) -> None:
    """An update of a sink of 200 topics leaves 200 of them on record, and once counted as one."""
    start(log, connectors=1)

    def config(tables: str) -> dict[str, Any]:
        more = {"topics": "east.a,east.b,east.c,east.d", "collection.name.format": tables}
        base = {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
            "connection.username": "u",
            "connection.password": connectors.OWN_SECRET,
            "insert.mode": "upsert",
            "primary.key.mode": "record_key",
        }
        return {"connector": "east.s", "config": {**base, **more}}

    log.say(connectors.ConnectorAdded, "east", **config("t0_${topic}"))
    log.govern()
    for number in range(1, 3):
        log.say(connectors.ConnectorUpdated, "east", **config(f"t{number}_${{topic}}"))
        log.govern()
    assert used(log, Kind.CONNECTORS) == Used(1, 1 + 8)
    assert len(log.image.replaced.steps) == 8
    more = log.verdict(log.say(connectors.ConnectorUpdated, "east", **config("more_${topic}")))
    refused(more, Kind.CONNECTORS, "east", KEPT)
    same = config("t2_${topic}")
    same["config"]["tasks.max"] = "1"
    verdict = log.verdict(log.say(connectors.ConnectorUpdated, "east", **same))
    assert isinstance(verdict, Waiting)
    log.accept(log.say(connectors.ConnectorDeleted, "east", connector="east.s"))
    story.settle(log)
    again = log.verdict(log.say(connectors.ConnectorAdded, "east", **config("more_${topic}")))
    refused(again, Kind.CONNECTORS, "east", KEPT)


def test_a_grant_that_needs_a_link_above_its_owners_bound_is_refused(log: MemoryLog) -> None:
    story.published(log)
    products(log, "more")
    start(log, links=1)
    first = story.granted(log)
    story.settle(log)
    assert used(log, Kind.LINKS) == Used(1, 1)
    more = log.make(intents.AccessRequested, "west", **MADE[Kind.REQUESTS](log, "more")[2])
    log.append(more, by="west")
    log.govern()
    yes = {"product": "east.more", "request": more.meta.id, "reason": "r"}
    refused(log.verdict(log.say(intents.AccessGranted, "east", **yes)), Kind.LINKS, "east", 1)
    # who reads on the spot, or over a link that is there, needs none
    near = story.granted(log, "north")
    assert log.image.access.requests[near].granted_generation
    story.answer(log, intents.AccessRevoked, first)
    story.settle(log)
    assert used(log, Kind.LINKS) == Used(0, 1)
    assert isinstance(log.verdict(log.say(intents.AccessGranted, "east", **yes)), Waiting)


def test_a_removed_link_is_not_made_anew_above_the_bound(log: MemoryLog) -> None:
    story.published(log)
    story.granted(log)
    story.settle(log)
    link = {"product": story.PRODUCT, "cluster": "west"}
    log.say(intents.LinkDeleted, "east", **link)
    story.settle(log)
    assert used(log, Kind.LINKS) == Used(0, 1)
    start(log, links=0)
    found = log.verdict(log.say(intents.LinkCreated, "east", **link))
    refused(found, Kind.LINKS, "east", 0)
    assert isinstance(log.verdict(log.operator(intents.LinkCreated, **link)), Accepted)


@pytest.mark.parametrize("name", recording.names())
def test_the_counts_are_those_of_the_tables_at_every_record(name: str) -> None:
    for image in fold(recording.load(name)):
        assert dict(image.counts) == recount(image)
        assert put_together(*take_apart(image)) == image


ACTS = st.tuples(st.sampled_from([*MADE, "grant", "deny", "revoke", "end"]), st.sampled_from("abc"))


@settings(max_examples=25, deadline=None)
@given(st.lists(ACTS, max_size=14), st.integers(1, 3))
def test_the_counts_are_those_of_the_tables_after_any_story(
    acts: list[tuple[Any, str]], bound: int
) -> None:
    log = MemoryLog()
    story.published(log)
    products(log, "a")
    start(log, **dict.fromkeys(Kind, bound))
    for act, name in acts:
        _act(log, act, name)
        story.settle(log)
        assert dict(log.image.counts) == recount(log.image)
        for (_, kind), count in log.image.counts.items():
            # those that were there before the bound are no more than two
            assert count.standing <= max(bound, 2), kind
            assert count.kept <= max(KEPT * bound, 2), kind


def _act(log: MemoryLog, act: Any, name: str) -> None:
    image = log.image
    if isinstance(act, Kind):
        make(log, act, name)
        return
    decided = {"grant": intents.AccessGranted, "deny": intents.AccessDenied}
    if act == "end":
        log.say(statements.StatementDeleted, "east", statement=f"east.{name}")
        log.say(connectors.ConnectorDeleted, "east", connector=f"east.{name}")
        gone = {"domain": "east", "public_key": key(name).public, "reason": "r"}
        log.say(intents.KeyRevoked, "east", **gone)
        return
    for one in image.access.requests.values():
        if one.product == f"east.{name}":
            about = {"product": one.product, "request": one.request, "reason": "r"}
            log.say(decided.get(act, intents.AccessRevoked), "east", **about)


def test_the_bounds_are_those_of_the_latest_start(log: MemoryLog) -> None:
    start(log, applications=1)
    log.accept(make(log, Kind.APPLICATIONS, "a"))
    waiting = make(log, Kind.APPLICATIONS, "b")
    refused(log.verdict(waiting), Kind.APPLICATIONS, "east", 1)
    start(log, applications=2)
    assert isinstance(log.verdict(waiting), Accepted)


def test_a_key_that_is_accepted_for_another_domain_counts_there(log: MemoryLog) -> None:
    log.start_governor()
    log.accept(make(log, Kind.KEYS, "k"))
    fields = {"domain": "west", "public_key": key("k").public, "proof": log.proof("k", "west")}
    against_rules = log.say(intents.KeyRegistered, "west", **fields)
    assert isinstance(log.verdict(against_rules), Rejected)
    log.accept(against_rules)
    assert (used(log, Kind.KEYS), used(log, Kind.KEYS, "west")) == (Used(1, 1), Used(2, 2))
    assert dict(log.image.counts) == recount(log.image)
