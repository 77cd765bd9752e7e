"""East makes a second product of two topics by SQL, and west reads it at home."""

import json
import time
from collections.abc import Sequence
from typing import Any

from self_service.demo.client import Client
from self_service.demo.stage import Stage, items

PRODUCT, TOPIC, STATEMENT = "east.click-users", "east.click_users", "east.click-users"
LINK = f"{PRODUCT}@west"
CLICKS = 400
SQL = (
    "INSERT INTO click_users "
    "SELECT c.ip, c.request, c.status, c.userid, u.first_name, u.last_name "
    "FROM clicks c JOIN users u ON c.userid = u.userid"
)
"""Clicks with the customer's name, as it is when the click is dealt with."""
NAMES = {2: "Ben", 3: "Cleo", 4: "Dan"}
"""The customers in Postgres by then: the first one was deleted."""


def tell_enrichment(stage: Stage, application: str, client: Client) -> None:
    """From clicks and a captured table to a product that another domain reads."""
    _joins(stage)
    _shares(stage, application, client.of(TOPIC))
    _asks_where_it_comes_from(stage, application)


def _joins(stage: Stage) -> None:
    stage.chapter("East joins clicks with its customers, by SQL")
    clicks = ("--kind", "clickstream", "--count", str(CLICKS), "--fast", "--users", "4")
    stage.sdm("generate", "east.clicks", *clicks, "-p", "2", "-d", "east")
    start = time.monotonic()
    stage.sdm("streaming", "sql", "add", "click-users", SQL, "-d", "east", "--timeout", "240")
    clicked = _consumed(stage, "east.clicks", "east")
    wanted = sorted(_named(one["value"]) for one in clicked if one["value"]["userid"] in NAMES)
    stage.within(60, lambda: len(_consumed(stage, TOPIC, "east")) >= len(wanted))
    took = time.monotonic() - start
    made = [one["value"] for one in _consumed(stage, TOPIC, "east")]
    gone = [one for one in made if one["userid"] not in NAMES]
    came = sorted(tuple(map(str, one.values())) for one in made if one not in gone)
    stage.check(
        f"each of {len(wanted)} clicks of a customer came out once, with the customer's name",
        came == wanted,
        f"{len(came)} came out, the first that differ: "
        + str(next((pair for pair in zip(came, wanted, strict=False) if pair[0] != pair[1]), "")),
        took,
    )
    stage.check("clicks of the customer who was deleted are left out", not gone, str(gone[:1]))


def _named(click: dict[str, Any]) -> tuple[str, ...]:
    """What the statement makes of a click of a customer, as texts."""
    selected = [click[name] for name in ("ip", "request", "status", "userid")]
    return tuple(map(str, [*selected, NAMES[click["userid"]], "Example"]))


def _shares(stage: Stage, application: str, client: Client) -> None:
    stage.chapter("East publishes the result; west asks for it and reads it at home")
    about = ("--topic", TOPIC, "--description", "Clicks and who clicked")
    promise = ("--owner", "team-east", "--quality", "standard", "--sla", "2", "--tag", "clicks")
    stage.sdm("product", "publish", PRODUCT, *about, *promise, "--acknowledge", "-d", "east")
    asked = ("--reason", "which pages customers like", "-d", "west")
    stage.sdm("access", "request", PRODUCT, application, *asked)
    pair = ("--product", PRODUCT, "--application", application)
    granted = ("--reason", "agreed", "-d", "east", "--until", "active", "--timeout", "240")
    stage.sdm("access", "grant", *pair, *granted)
    wanted = _values([one["value"] for one in _consumed(stage, TOPIC, "east")])
    start = time.monotonic()
    copied, error = client.values(60, enough=len(wanted))
    took = time.monotonic() - start
    stage.check(
        f"west's application reads all {len(wanted)} in its own cluster, by a plain Kafka client",
        _values(copied) == wanted,
        error or f"{len(copied)} were read",
        took,
    )


def _asks_where_it_comes_from(stage: Stage, application: str) -> None:
    stage.chapter("Where does it come from, and where does it go?")
    picture = stage.home / "click-users.svg"
    shown = stage.sdm("lineage", "show", PRODUCT, "--columns", "--picture", str(picture)).data
    joined = shown["upstream"][0]
    sources = {one["topic"] for one in joined["from"]}
    captured = [
        table["name"]
        for one in joined["from"]
        for step in one.get("upstream", [])
        for table in step["from"]
    ]
    stage.tell(f"{', '.join(captured)} > east.users, {PRODUCT} > west")
    stage.check(
        "upstream: the clicks, the customers, and the table in Postgres",
        sources == {"east.clicks", "east.users"} and any("users" in one for one in captured),
        str(joined),
    )
    stage.check(
        "the name comes from the customers' table",
        joined["columns"].get("first_name") == ["east.users.first_name"],
        str(joined.get("columns")),
    )
    # in the table, the connector, its topic, the statement, its topic, the link and the copy
    rows = picture.read_text("utf-8").count(">first_name<")
    stage.check(
        "the picture has it in a row of each box, from Postgres to west", rows == 7, f"{rows}"
    )
    away = [to for step in shown["downstream"] for to in step["to"]]
    stage.check(
        "downstream: the copy in west, and who reads it",
        [(one["cluster"], one["readers"]) for one in away] == [("west", [application])],
        str(away),
    )


def _values(records: Sequence[dict[str, Any]]) -> list[str]:
    """What records say, whatever order they came in."""
    return sorted(json.dumps(one, sort_keys=True) for one in records)


def _consumed(stage: Stage, topic: str, domain: str) -> list[dict[str, Any]]:
    answer = stage.sdm("topic", "consume", topic, "-d", domain, refused=True, quiet=True)
    return items(answer.data) if answer.code == 0 else []
