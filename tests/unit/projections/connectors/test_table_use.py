"""A table of a database that one domain's connectors use is not another domain's."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events.connectors import (
    OWN_SECRET,
    ConnectorAdded,
    ConnectorDeleted,
    ConnectorStopped,
    ConnectorUpdated,
)
from projections.connectors.config import JDBC_SINK, POSTGRES
from projections.connectors.table_use import keys_of, used
from projections.connectors.tables import filled, pinned, route
from projections.deciding.verdict import Rejected, Waiting
from projections.image import Image
from snapshots.image_tables import put_together, take_apart
from tests import sample_history as story
from tests.memory_log import MemoryLog

URL = "jdbc:postgresql://db.test:5432/shop"


@pytest.fixture
def log() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def capture(name: str, tables: str = "public.users", **more: str) -> dict[str, Any]:
    """The fields of an intent for a connector that captures tables."""
    domain = name.partition(".")[0]
    config = {
        "connector.class": POSTGRES,
        "database.hostname": "db.test",
        "database.port": "5432",
        "database.dbname": "shop",
        "database.password": OWN_SECRET,
        "table.include.list": tables,
        "topic.prefix": name,
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": route(name),
        "transforms.route.replacement": f"{domain}.$1",
        **more,
    }
    return {"connector": name, "config": config}


def sink(name: str, form: str | None, url: str = URL, **more: str) -> dict[str, Any]:
    """The fields of an intent for a connector that fills the table of a format."""
    domain = name.partition(".")[0]
    config = {
        "connector.class": JDBC_SINK,
        "topics": f"{domain}.{'orders' if domain == 'east' else 'evil'}",
        "connection.url": url,
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": OWN_SECRET,
        **({"collection.name.format": form} if form else {}),
        **more,
    }
    return {"connector": name, "config": config}


def say(log: MemoryLog, fields: dict[str, Any], kind: Any = ConnectorAdded) -> int:
    return log.say(kind, fields["connector"].partition(".")[0], **fields)


def add(log: MemoryLog, fields: dict[str, Any]) -> None:
    log.accept(say(log, fields))


def answer(log: MemoryLog, fields: dict[str, Any], kind: Any = ConnectorAdded) -> str:
    """The code of the refusal; empty where the rules leave it to the check."""
    found = log.verdict(say(log, fields, kind))
    if isinstance(found, Rejected):
        return found.code
    assert isinstance(found, Waiting), found
    return ""


def drop(log: MemoryLog, name: str) -> None:
    log.accept(log.say(ConnectorDeleted, name.partition(".")[0], connector=name))


def test_another_domain_may_not_capture_a_captured_table(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    found = log.verdict(say(log, capture("west.steal", "public.bills,public.users")))
    assert isinstance(found, Rejected)
    assert found.code == "table_taken"
    for part in ("public.users", "db.test:5432/shop", "east"):
        assert part in found.reason
    assert "bills" not in found.reason


def test_another_domain_may_not_fill_a_captured_table(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    assert answer(log, sink("west.poison", "users")) == "table_taken"


def test_another_domain_may_neither_capture_nor_fill_a_filled_table(log: MemoryLog) -> None:
    add(log, sink("east.report", "report"))
    assert answer(log, sink("west.poison", "report")) == "table_taken"
    assert answer(log, capture("west.steal", "public.report")) == "table_taken"


def test_the_table_that_a_signal_is_written_to_is_used() -> None:
    """A capture of an earlier version may have one."""
    config = capture("east.shop", "public.bills", **{"signal.data.collection": "public.users"})
    assert {one.name for one in used(config["config"])} == {"bills", "users"}


def test_two_connectors_of_one_domain_may_use_one_table(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    assert answer(log, sink("east.report", "users")) == ""


@pytest.mark.parametrize(
    "fields",
    [
        capture("west.own", "public.bills"),
        capture("west.own", "sales.users"),
        capture("west.own", "public.Users"),
        capture("west.own", **{"database.dbname": "other"}),
        capture("west.own", **{"database.hostname": "other.test"}),
        capture("west.own", **{"database.port": "5433"}),
        sink("west.own", "Users", **{"quote.identifiers": "true"}),
        sink("west.own", "sales.users"),
        sink("west.own", "users", f"{URL}?currentSchema=sales"),
        sink("west.own", None),
    ],
)
def test_other_tables_are_free(log: MemoryLog, fields: dict[str, Any]) -> None:
    add(log, capture("east.shop"))
    assert answer(log, fields) == ""


@pytest.mark.parametrize(
    "fields",
    [
        capture("west.own", **{"database.hostname": "DB.Test"}),
        capture("west.own", **{"database.port": "05432"}),
        sink("west.own", "users", "jdbc:postgresql://DB.TEST/shop"),
        sink("west.own", "public.users"),
        # PostgreSQL folds what is not quoted
        sink("west.own", "USERS"),
        sink("west.own", "Public.Users", **{"quote.identifiers": "false"}),
        # the driver looks a schema up by a pattern, in which _ is any character
        sink("west.own", "pub_ic.users"),
        sink("west.own", "______.users", **{"quote.identifiers": "true"}),
        # of two the driver goes by the last
        sink("west.own", "users", f"{URL}?currentSchema=sales&currentSchema=public"),
        # the table is called as the topic is behind the routers
        sink(
            "west.own",
            None,
            **{
                "transforms": "route",
                "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.route.regex": r"west\.evil",
                "transforms.route.replacement": "users",
            },
        ),
    ],
)
def test_another_spelling_is_the_same_table(log: MemoryLog, fields: dict[str, Any]) -> None:
    add(log, capture("east.shop"))
    assert answer(log, fields) == "table_taken"


def test_a_schema_that_a_sink_finds_by_a_pattern_is_its_domains(log: MemoryLog) -> None:
    add(log, sink("east.report", "my_sales.users"))
    assert answer(log, capture("west.steal", "my_sales.users")) == "table_taken"
    assert answer(log, capture("west.steal", "my-sales.users")) == "table_taken"
    assert answer(log, capture("west.own", "my_sale.users")) == ""
    assert answer(log, capture("west.own", "my_sales.user")) == ""


def routed_to(topic: str) -> dict[str, str]:
    """Settings of a sink whose records of west.evil go to the table of another topic."""
    return {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": r"west\.evil",
        "transforms.route.replacement": topic,
    }


@pytest.mark.parametrize(
    "fields",
    [
        sink("west.evil", "pg_catalog.pg_class"),
        sink("west.evil", "PG_Catalog.pg_publication"),
        sink("west.evil", "PG_CATALOG.pg_class", **{"quote.identifiers": "true"}),
        sink("west.evil", "information_schema.sql_features"),
        sink("west.evil", "pg_toast.x"),
        sink("west.evil", "pg_class", f"{URL}?currentSchema=pg_catalog"),
        # what the driver's pattern finds
        sink("west.evil", "p__catalog.pg_class"),
        sink("west.evil", "__________.pg_class"),
        sink("west.evil", "information_______.sql_features"),
        # what follows from the topic
        sink("west.evil", "${topic}.pg_class", **routed_to("pg_catalog")),
        sink("west.evil", "pg_${topic}.pg_class", **routed_to("catalog")),
        sink("west.evil", "${topic}.pg_class", **routed_to("pg.catalog")),
        capture("west.evil", "pg_catalog.pg_authid"),
        capture("west.evil", "public.bills,PG_CATALOG.pg_authid"),
        capture("west.evil", "information_schema.sql_features"),
        capture("west.evil", **{"replica.identity.autoset.values": "pg_catalog.pg_class:FULL"}),
    ],
)
def test_tables_of_postgres_itself_are_neither_captured_nor_filled(
    log: MemoryLog, fields: dict[str, Any]
) -> None:
    found = log.verdict(say(log, fields))
    assert isinstance(found, Rejected)
    assert found.code == "invalid_connector"
    assert "PostgreSQL's own" in found.reason


def test_an_update_to_tables_of_postgres_itself_is_refused(log: MemoryLog) -> None:
    add(log, sink("west.evil", "bills"))
    fields = sink("west.evil", "pg_catalog.pg_class")
    assert answer(log, fields, ConnectorUpdated) == "invalid_connector"


@pytest.mark.parametrize(
    "fields",
    [
        sink("west.own", "pgp_keys.bills"),
        sink("west.own", "my_catalog.bills"),
        sink("west.own", "__staging.bills"),
        sink("west.own", "___.bills"),
        # without a schema it is one of public, which is put in
        sink("west.own", "pg_bills"),
        sink("west.own", None, **routed_to("pg_catalog.pg_class")),
        capture("west.own", "public.pg_bills"),
        capture("west.own", "_g_.bills"),
    ],
)
def test_names_that_are_much_like_those_of_postgres_itself_are_free(
    log: MemoryLog, fields: dict[str, Any]
) -> None:
    assert answer(log, fields) == ""


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        (sink("west.own", "pg_class"), "public.pg_class"),
        (sink("west.own", None, **routed_to("pg_catalog.pg_class")), "public.${topic}"),
    ],
)
def test_a_table_without_a_schema_is_looked_for_in_public_alone(
    fields: dict[str, Any], form: str
) -> None:
    config = pinned("west.own", fields["config"])
    assert config["collection.name.format"] == form
    assert [one.name.split(".")[1] for one in filled(config)] == ["public"]


def test_a_name_that_postgres_would_cut_is_refused(log: MemoryLog) -> None:
    longest = "u" * 63
    add(log, capture("east.shop", f"public.{longest}"))
    assert answer(log, sink("west.poison", f"{longest}_more")) == "invalid_connector"


def test_a_sink_of_before_fills_what_postgres_cuts_its_name_to() -> None:
    config = sink("west.poison", "u" * 63 + "_more")["config"]
    assert [one.name.rpartition(".")[2] for one in filled(config)] == ["u" * 63]


def test_a_table_is_free_when_the_last_connector_on_it_is_gone(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    add(log, sink("east.report", "users"))
    fields = capture("west.own")
    log.accept(log.say(ConnectorStopped, "east", connector="east.shop", reason="pause"))
    assert answer(log, fields) == "table_taken"
    for name in ("east.shop", "east.report"):
        drop(log, name)
        assert answer(log, fields) == "table_taken"
        story.settle(log)
    assert answer(log, fields) == ""


def test_an_update_takes_tables_and_leaves_them(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    add(log, capture("west.own", "public.bills"))
    changes = {"snapshot.mode": "no_data"}
    wider = capture("west.own", "public.bills,public.users", **changes)
    assert answer(log, wider, ConnectorUpdated) == "table_taken"
    log.accept(say(log, capture("east.shop", "public.orders", **changes), ConnectorUpdated))
    assert answer(log, wider, ConnectorUpdated) == ""
    assert answer(log, capture("west.other", "public.orders")) == "table_taken"


def test_a_name_that_was_dropped_and_added_again_has_its_new_tables(log: MemoryLog) -> None:
    add(log, capture("east.shop"))
    drop(log, "east.shop")
    story.settle(log)
    add(log, capture("east.shop", "public.orders"))
    assert answer(log, capture("west.own")) == ""
    assert answer(log, capture("west.other", "public.orders")) == "table_taken"


def test_a_sink_whose_table_follows_from_its_records_is_refused(log: MemoryLog) -> None:
    """Whoever writes the topic would choose the table."""
    for form in ("${source.table}", "x_${source.schema}", "${routedByValue}"):
        assert answer(log, sink("west.poison", form)) == "invalid_connector"
    router = {
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
    }
    assert answer(log, sink("west.poison", None, **router)) == "invalid_connector"


@pytest.mark.parametrize("form", [".users", "users.", "a..b", "a.b.c", "."])
def test_a_sinks_table_has_one_schema_at_most(log: MemoryLog, form: str) -> None:
    assert answer(log, sink("west.own", form)) == "invalid_connector"


@pytest.mark.parametrize(
    ("form", "url", "deployed"),
    [
        (None, URL, "public.${topic}"),
        ("users", URL, "public.users"),
        ("sales.users", URL, "sales.users"),
        ("users", f"{URL}?currentSchema=sales", "sales.users"),
    ],
)
def test_a_sink_is_deployed_with_the_schema_that_it_was_judged_by(
    form: str | None, url: str, deployed: str
) -> None:
    """Without one Debezium takes the first schema of the database that has such a table."""
    config = sink("west.own", form, url)["config"]
    known = pinned("west.own", config)
    assert known["collection.name.format"] == deployed
    assert filled(known) == filled(config)


def counted(image: Image) -> dict[tuple[str, str, str], dict[str, int]]:
    """Which domains use each key, from the connectors alone."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for one in image.connectors.values():
        for key in () if one.is_over else keys_of(one.config).leaves:
            found.setdefault(key, Counter())[one.domain] += 1
    return {key: dict(users) for key, users in found.items()}


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["east.a", "east.b", "west.a", "west.b"]),
        st.sampled_from(["capture", "fill", "update", "drop", "settle"]),
        st.sampled_from(["public.users", "public.bills", "pub_ic.users", "sales.users"]),
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(ACTS)
def test_the_index_is_what_the_connectors_use_and_no_table_is_two_domains(
    acts: list[tuple[str, str, str]],
) -> None:
    log = MemoryLog()
    story.published(log)
    for name, act, table in acts:
        domain = name.partition(".")[0]
        if act == "drop":
            log.say(ConnectorDeleted, domain, connector=name)
        elif act == "settle":
            story.settle(log)
        else:
            fields = sink(name, table) if act == "fill" else capture(name, table)
            log.say(ConnectorUpdated if act == "update" else ConnectorAdded, domain, **fields)
        log.govern()
        image = log.image
        assert {key: dict(users) for key, users in image.table_use.items()} == counted(image)
        exact = [users for (_, schema, _), users in image.table_use.items() if "." not in schema]
        assert all(len(users) == 1 for users in exact)
    assert put_together(*take_apart(log.image)) == log.image
