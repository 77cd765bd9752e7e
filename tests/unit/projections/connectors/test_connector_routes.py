"""The topics that captured tables fill, through the transforms of a config."""

import re

import pytest

from projections.connectors.config import captured, foreign_topics, not_allowed, writes
from projections.connectors.own_transforms import EVENT_ROUTER
from projections.connectors.routes import (
    LONGEST_TOPIC,
    MOST_OF_PATTERNS,
    MOST_ROUTERS,
    REGEX_ROUTER,
    TOPIC_MATCHES,
    of_table,
)
from projections.connectors.settings import POSTGRES
from projections.connectors.tables import merged, pinned, route, route_with_schema
from projections.connectors.values import MOST_LISTED

PREFIX = "east.shop"
KAFKA, SIDES = "org.apache.kafka.connect.transforms", ("Key", "Value")


def config(tables: str, *routers: tuple[str, str], **more: str) -> dict[str, str]:
    """A config that captures tables through RegexRouters r0, r1, ... of (regex, replacement)."""
    found = {
        "connector.class": POSTGRES,
        "database.hostname": "db.test",
        "database.dbname": "shop",
        "topic.prefix": PREFIX,
        "table.include.list": tables,
    }
    if routers:
        found["transforms"] = ",".join(f"r{at}" for at in range(len(routers)))
    for at, (regex, replacement) in enumerate(routers):
        of = f"transforms.r{at}"
        found |= {f"{of}.type": REGEX_ROUTER, f"{of}.regex": regex}
        found[f"{of}.replacement"] = replacement
    return found | {name.replace("__", "."): value for name, value in more.items()}


OWN = (route(PREFIX), "east.$1")
WITH_SCHEMA = (route_with_schema(PREFIX), "east.$1")
OF_TOPIC = {"predicates": "p", "predicates.p.type": TOPIC_MATCHES}


# as io.debezium.schema.SchemaTopicNamingStrategy 3.6.3 names them
@pytest.mark.parametrize(
    ("table", "topic"),
    [
        ("held.x_y", "east.shop.held.x_y"),
        ("held.x y", "east.shop.held.x_y"),
        ("held.Zoë", "east.shop.held.Zo_"),
        ("held.\U0001f600", "east.shop.held.__"),
        ("held.x$y(z)", "east.shop.held.x_y_z_"),
        ("held." + "a" * 300, "east.shop.held." + "a" * (LONGEST_TOPIC - 15)),
    ],
)
def test_a_topic_is_named_as_debezium_names_it(table: str, topic: str) -> None:
    assert of_table(f"{PREFIX}.{table}") == topic


@pytest.mark.parametrize(
    ("found", "topic"),
    [
        (config("a.dup,b.dup", OWN), "east.dup"),
        (config("a.x y,a.x_y"), "east.shop.a.x_y"),
        (config("a.x-y,a.x_y", ("(.*)-y", "$1_y")), "east.shop.a.x_y"),
        (config("a.t,a.u", OWN, ("east.(t|u)", "east.x")), "east.x"),
        (config("a.b,a_b.c", WITH_SCHEMA, (r"east\.a\.b", "east.a.b.c")), "east.a.b.c"),
        (config(f"a.{'ä' * 30}x,a.{'ö' * 30}x"), f"east.shop.a.{'_' * 30}x"),
        (
            config("a.t", (".*", "east.x"), provide__transaction__metadata="true"),
            "east.x",
        ),
        (config("a.t", (".*", "east.x"), heartbeat__interval__ms="1000"), "east.x"),
    ],
)
def test_sources_that_fill_one_topic_are_found_whatever_leads_them_there(
    found: dict[str, str], topic: str
) -> None:
    [(first, sources)] = merged(found)
    assert first == topic
    assert len(sources) == 2


@pytest.mark.parametrize(
    ("found", "topics"),
    [
        (config("a.t,b.t"), ("east.shop.a.t", "east.shop.b.t")),
        (config("a.t,b.t", WITH_SCHEMA), ("east.a.t", "east.b.t")),
        (config("a.t,b.u", OWN, (r"east\.u", "east.users")), ("east.t", "east.users")),
        # a router that matches a part of the name changes nothing
        (config("a.t", ("shop", "x")), ("east.shop.a.t",)),
        (config("a.t", heartbeat__interval__ms="0"), ("east.shop.a.t",)),
    ],
)
def test_every_router_is_applied_in_order(found: dict[str, str], topics: tuple[str, ...]) -> None:
    assert writes(found) == topics
    assert [one.topic for one in captured(found)] == list(topics)
    assert merged(found) == []


@pytest.mark.parametrize(
    ("negate", "topics"),
    [({}, ("east.x", "east.shop.a.u")), ({"transforms.r0.negate": "true"}, ("east.shop.a.t", "x"))],
)
def test_a_router_is_applied_to_the_topics_of_its_predicate(
    negate: dict[str, str], topics: tuple[str, ...]
) -> None:
    target = "x" if negate else "east.x"
    chosen = {**OF_TOPIC, "predicates.p.pattern": ".*t", "transforms.r0.predicate": "p"}
    assert writes({**config("a.t,a.u", (".*", target)), **chosen, **negate}) == topics


def test_the_topics_of_an_outbox_follow_from_its_rows() -> None:
    outbox = {"transforms": "o", "transforms.o.type": EVENT_ROUTER}
    assert captured({**config("a.outbox"), **outbox}) == []
    others = {**OF_TOPIC, "predicates.p.pattern": ".*outbox", "transforms.o.predicate": "p"}
    assert writes({**config("a.outbox,a.t"), **outbox, **others}) == ("east.shop.a.t",)


BEATS = {"heartbeat__interval__ms": "1000"}


@pytest.mark.parametrize(
    ("found", "topic"),
    [
        (config("a.t", **BEATS), "east.__heartbeat.east.shop"),
        (config("a.t", OWN, **BEATS), "east.__heartbeat.east.shop"),
        (config("a.t", OWN, (r"east\.__heartbeat\..+", "east.beats"), **BEATS), "east.beats"),
        (config("a.t", topic__heartbeat__prefix="east.b", **BEATS), "east.b.east.shop"),
        (config("a.t", provide__transaction__metadata="true"), "east.shop.transaction"),
    ],
)
def test_what_debezium_writes_beside_rows_is_among_what_a_connector_writes(
    found: dict[str, str], topic: str
) -> None:
    table, own = writes(found)
    assert own == topic
    assert [one.topic for one in captured(found)] == [table]
    assert foreign_topics(found, "east") == []
    assert not_allowed(found) is None


def test_an_outbox_s_router_leaves_the_topic_of_the_heartbeats() -> None:
    outbox = {"transforms": "o", "transforms.o.type": EVENT_ROUTER}
    assert writes({**config("a.outbox", **BEATS), **outbox}) == ("east.__heartbeat.east.shop",)


@pytest.mark.parametrize(
    ("found", "reasons"),
    [
        (
            config("a.t", OWN, (r"east\.__heartbeat\..+", "west.beats"), **BEATS),
            ["the topic west.beats of Debezium's heartbeats"],
        ),
        (
            config("a.t", topic__heartbeat__prefix="west.b", **BEATS),
            [
                "topic.heartbeat.prefix=west.b",
                "the topic west.b.east.shop of Debezium's heartbeats",
            ],
        ),
        (
            config("a.t", topic__heartbeat__prefix="__debezium-heartbeat"),
            ["topic.heartbeat.prefix=__debezium-heartbeat"],
        ),
    ],
)
def test_heartbeats_outside_of_the_domain_are_named(
    found: dict[str, str], reasons: list[str]
) -> None:
    assert foreign_topics(found, "east") == reasons


@pytest.mark.parametrize("setting", ["heartbeat.topics.prefix", "topic.delimiter"])
def test_no_other_setting_names_the_topic_of_the_heartbeats(setting: str) -> None:
    assert setting in (not_allowed({**config("a.t", **BEATS), setting: "x"}) or "")


def test_debezium_is_given_the_prefix_of_the_heartbeats_where_there_are_any() -> None:
    given = pinned("east.shop", config("a.t", **BEATS))
    assert given["topic.heartbeat.prefix"] == "east.__heartbeat"
    own = pinned("east.shop", config("a.t", topic__heartbeat__prefix="east.b", **BEATS))
    assert own["topic.heartbeat.prefix"] == "east.b"
    assert "topic.heartbeat.prefix" not in pinned("east.shop", config("a.t"))


def passes(given: dict[str, str], transform: str, topic: str) -> bool:
    """Whether Connect leaves a transform out for the records of a topic."""
    of = f"predicates.{given[f'transforms.{transform}.predicate']}"
    assert of.removeprefix("predicates.") in given["predicates"].split(",")
    assert given[f"{of}.type"] == TOPIC_MATCHES
    is_named = re.fullmatch(given[f"{of}.pattern"], topic) is not None
    return is_named is (given[f"transforms.{transform}.negate"] == "true")


def needing(kind: str, *routers: tuple[str, str], **more: str) -> dict[str, str]:
    """A config whose last transform names a field of rows."""
    found = config("a.t", *routers, **more)
    steps = ",".join(filter(None, (found.get("transforms", ""), "named")))
    return found | {"transforms": steps, "transforms.named.type": f"{KAFKA}.{kind}"}


@pytest.mark.parametrize(
    "kind", ["ValueToKey", *(f"{a}${b}" for a in ("ExtractField", "HeaderFrom") for b in SIDES)]
)
def test_heartbeats_pass_by_a_transform_that_names_a_field_of_rows(kind: str) -> None:
    given = pinned("east.shop", needing(kind, OWN, **BEATS))
    assert passes(given, "named", "east.__heartbeat.east.shop")
    for other in ("east.t", "east.__heartbeat.east-shop"):
        assert not passes(given, "named", other)


def test_heartbeats_pass_by_such_a_transform_in_the_topic_that_a_router_gave_them() -> None:
    router = (r"east\.__heartbeat\..+", "east.beats")
    given = pinned("east.shop", needing("ValueToKey", router, **BEATS))
    assert passes(given, "named", "east.beats")
    assert not passes(given, "named", "east.__heartbeat.east.shop")


def test_transactions_pass_by_such_a_transform_as_heartbeats_do() -> None:
    more = {"provide.transaction.metadata": "true"}
    given = pinned("east.shop", {**needing("ValueToKey", OWN, **BEATS), **more})
    for topic in ("east.__heartbeat.east.shop", "east.shop.transaction"):
        assert passes(given, "named", topic)


def test_a_transform_has_no_predicate_but_its_own_where_it_needs_none() -> None:
    """Others pass on what lacks their fields, and without heartbeats there is no such record."""
    for found in (needing("InsertField$Value", **BEATS), needing("ValueToKey")):
        assert "predicates" not in pinned("east.shop", found)
    own = {**needing("ValueToKey", **BEATS), **OF_TOPIC, "transforms.named.predicate": "p"}
    given = pinned("east.shop", own)
    assert given["transforms.named.predicate"] == "p"
    assert given["predicates"] == "p"
    assert "transforms.named.negate" not in given


def test_a_table_that_any_router_leads_out_of_the_domain_is_named() -> None:
    found = config("a.t,a.u", OWN, (r"east\.u", "west.u"))
    assert foreign_topics(found, "east") == ["the topic west.u of the table shop.a.u"]


@pytest.mark.parametrize(
    "wrong",
    [
        config("a.t", *[("a", "east.b")] * (MOST_ROUTERS + 1)),
        config("a.t", ("(.*)", "$1$2")),
        config("a.t", ("(.*)", "$1${routedByValue}")),
        config("a.t", ("(.*)", "$1" * 100)),
        config("a.t", ("(a|a)" * 40 + "b", "east.x")),
        config("a.t", ("a" * 251, "east.x")),
        {**config("a.t", ("a", "east.b")), "transforms.r0.predicate": "p", "predicates": "p",
         "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"},
        {**config("a.t", *[("a" * 250, "east.b")] * 3), **OF_TOPIC,
         "predicates.p.pattern": "a" * (MOST_OF_PATTERNS - 749)},
    ],
)  # fmt: skip
def test_routers_that_are_not_allowed_are_refused_and_lead_nowhere(wrong: dict[str, str]) -> None:
    assert "transforms" in str(not_allowed(wrong))
    assert captured(wrong) == []


@pytest.mark.parametrize(
    ("regex", "replacement", "is_allowed"),
    [
        (None, "east.${routedByValue}", True),
        (None, "east.$1", True),
        (None, "east.$2", False),
        ("(.*)", "east.$1", True),
        ("(.*)", "east.${routedByValue}", False),
        ("(.*)", None, False),
        (None, "${routedByValue}" * 2, False),
    ],
)
def test_an_outbox_is_routed_by_the_groups_that_there_are(
    regex: str | None, replacement: str | None, *, is_allowed: bool
) -> None:
    of = "transforms.o"
    more = {"transforms": "o", f"{of}.type": EVENT_ROUTER}
    more |= {f"{of}.route.topic.regex": regex} if regex else {}
    more |= {f"{of}.route.topic.replacement": replacement} if replacement else {}
    assert (not_allowed({**config("a.outbox"), **more}) is None) is is_allowed


def test_a_config_lists_a_bounded_number_of_tables() -> None:
    tables = ",".join(f"a.t{number}" for number in range(MOST_LISTED))
    assert not_allowed(config(tables)) is None
    assert "table.include.list" in str(not_allowed(config(f"{tables},a.u")))
    assert len(writes(config(f"{tables},a.u,a.v"))) == MOST_LISTED + 1


def test_a_name_that_grows_from_router_to_router_is_not_followed_without_end() -> None:
    long = ("(.*)", "a" * 200 + "$1")
    assert max(map(len, writes(config("a.t", long, long, long)))) <= 2 * LONGEST_TOPIC
