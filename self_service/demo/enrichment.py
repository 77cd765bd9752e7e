"""East makes a second product of two topics by SQL, and west reads it at home."""

import time
from typing import Any

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


def tell_enrichment(stage: Stage, application: str) -> None:
    """From clicks and a captured table to a product that another domain reads."""
    _joins(stage)
    _shares(stage, application)
    _asks_where_it_comes_from(stage, application)


def _joins(stage: Stage) -> None:
    stage.chapter("East joins clicks with its customers, by SQL")
    clicks = ("--kind", "clickstream", "--count", str(CLICKS), "--fast", "--users", "4")
    stage.sdm("generate", "east.clicks", *clicks, "-p", "2", "-d", "east")
    start = time.monotonic()
    stage.sdm("streaming", "sql", "add", "click-users", SQL, "-d", "east", "--timeout", "240")
    known = {2, 3, 4}
    clicked = _consumed(stage, "east.clicks", "east")
    wanted = [one for one in clicked if one["value"]["userid"] in known]
    stage.within(60, lambda: len(_consumed(stage, TOPIC, "east")) >= len(wanted))
    took = time.monotonic() - start
    named = _consumed(stage, TOPIC, "east")
    stage.check(
        f"each of {len(wanted)} clicks of a customer came out once, with the customer's name",
        len(named) == len(wanted) and all(one["value"]["first_name"] for one in named),
        f"{len(named)} came out",
        took,
    )
    gone = [one for one in named if one["value"]["userid"] not in known]
    stage.check("clicks of the customer who was deleted are left out", not gone, str(gone[:1]))


def _shares(stage: Stage, application: str) -> None:
    stage.chapter("East publishes the result; west asks for it and reads it at home")
    about = ("--topic", TOPIC, "--description", "Clicks and who clicked")
    promise = ("--owner", "team-east", "--quality", "standard", "--sla", "2", "--tag", "clicks")
    stage.sdm("product", "publish", PRODUCT, *about, *promise, "--acknowledge", "-d", "east")
    asked = ("--reason", "which pages customers like", "-d", "west")
    stage.sdm("access", "request", PRODUCT, application, *asked)
    pair = ("--product", PRODUCT, "--application", application)
    granted = ("--reason", "agreed", "-d", "east", "--until", "active", "--timeout", "120")
    stage.sdm("access", "grant", *pair, *granted)
    wanted = len(_consumed(stage, TOPIC, "east"))
    as_west = ("--application", application)
    _, took = stage.within(60, lambda: len(_consumed(stage, TOPIC, "west", *as_west)) >= wanted)
    read = _consumed(stage, TOPIC, "west", *as_west)
    stage.check(
        f"west's application reads all {wanted} in its own cluster", len(read) == wanted, "", took
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


def _consumed(stage: Stage, topic: str, domain: str, *more: str) -> list[dict[str, Any]]:
    answer = stage.sdm("topic", "consume", topic, *more, "-d", domain, refused=True, quiet=True)
    return items(answer.data) if answer.code == 0 else []
