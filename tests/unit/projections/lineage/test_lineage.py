"""Where data comes from and goes to, as trees over links and statements."""

from dataclasses import fields, replace
from itertools import pairwise

import pytest
from immutables import Map

from mesh_events import connectors, intents, statements
from projections.connectors import config as connector_config
from projections.deciding.verdict import Waiting
from projections.image import EMPTY
from projections.lineage.graph import (
    MOST_LEVELS,
    Branch,
    downstream,
    made_with,
    product_of,
    readers,
    steps,
    upstream,
    walk,
)
from projections.lineage.sources import refused, way_back
from projections.lineage.steps import Replaced, emptied, of_statement, replaced
from projections.links import Copy
from projections.statements import Statement
from tests import sample_history as story
from tests.memory_log import MemoryLog

USERS, COPY = ("east", "east.users"), ("west", "east.users")


def joined() -> MemoryLog:
    """East fills a topic from its users, west reads a copy of them and joins it with its own."""
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    log.say(statements.StatementAdded, "east", **story.statement())
    greeted = story.statement(
        statement="west.greeted",
        stream="west.visits",
        tables=["east.users"],
        destination="west.greeted",
        application="west.app",
    )
    log.say(statements.StatementAdded, "west", **greeted)
    story.settle(log)
    return log


def shape(branch: Branch) -> object:
    return branch.place, [
        (step.kind, step.name, [shape(one) for one in behind]) for step, behind in branch.steps
    ]


def test_a_tree_goes_over_links_and_statements() -> None:
    image = joined().image
    assert shape(downstream(image, USERS)) == (
        USERS,
        [
            (
                "link",
                story.LINK,
                [(COPY, [("statement", "west.greeted", [(("west", "west.greeted"), [])])])],
            ),
            (
                "statement",
                "east.copied",
                [(("east", "east.copied"), []), (("east", "east.copied.dead"), [])],
            ),
        ],
    )
    assert shape(upstream(image, ("west", "west.greeted"))) == (
        ("west", "west.greeted"),
        [
            (
                "statement",
                "west.greeted",
                [(("west", "west.visits"), []), (COPY, [("link", story.LINK, [(USERS, [])])])],
            )
        ],
    )


def sink(topic: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": connector_config.JDBC_SINK,
        "topics": topic,
        "connection.url": "jdbc:postgresql://db.example:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.username": "u",
        "connection.password": connectors.OWN_SECRET,
        "collection.name.format": "raw",
        **more,
    }


def test_dead_letters_are_followed_as_records_of_the_stream() -> None:
    """A reader may make every record one, and fill tables with them."""
    log = joined()
    config = sink("west.greeted.dead")
    log.say(connectors.ConnectorAdded, "west", connector="west.raw", config=config)
    story.settle(log)
    dead, table = ("west", "west.greeted.dead"), ("postgres://db.example:5432", "shop.public.raw")
    found = {one.place: one for one in walk(downstream(log.image, ("west", "west.visits")))}
    assert {("west", "west.greeted"), dead, table} <= set(found)
    # a row of the table is in no dead letter
    assert dead not in {one.place for one in walk(downstream(log.image, USERS))}
    assert [
        (step.name, [one.place for one in of]) for step, of in upstream(log.image, dead).steps
    ] == [("west.greeted", [("west", "west.visits")])]


def test_a_chain_without_an_end_is_shown_as_far_as_a_tree_goes() -> None:
    places = [("east", f"east.t{number}") for number in range(2000)]
    first = joined().image.statements["east.copied"]
    chain = {
        f"east.t{number}": replace(
            first, id=f"east.t{number}", stream=before[1], tables=(), destination=place[1]
        )
        for number, (before, place) in enumerate(pairwise(places), 1)
    }
    image = EMPTY._replace(statements=Map(chain))
    for tree, last in ((downstream, MOST_LEVELS), (upstream, 1999 - MOST_LEVELS)):
        every = list(walk(tree(image, places[0 if tree is downstream else -1])))
        assert [one.place for one in every if one.more] == [places[last]]


def test_a_topic_that_comes_twice_is_drawn_once() -> None:
    log = joined()
    both = story.statement(
        statement="east.both",
        stream="east.copied",
        tables=["east.users"],
        destination="east.both",
    )
    log.say(statements.StatementAdded, "east", **both)
    log.govern()
    tree = upstream(log.image, ("east", "east.both"))
    found = [one for one in walk(tree) if one.place == USERS]
    assert len(found) == 2
    assert [one.again for one in found] == [False, False]
    down = downstream(log.image, USERS)
    again = [one for one in walk(down) if one.place == ("east", "east.both")]
    assert sorted(len(one.steps) for one in again) == [0, 0]


def revoked(log: MemoryLog) -> None:
    """West's application loses its grant: the copy is purged, and its statement fails."""
    request = next(
        one.request for one in log.image.access.requests.values() if one.application == "west.app"
    )
    story.settle(log)
    story.answer(log, intents.AccessRevoked, request)
    story.settle(log)


def test_downstream_keeps_what_was_derived_over_a_purged_copy() -> None:
    log = joined()
    before = shape(downstream(log.image, USERS))
    revoked(log)
    assert log.image.links[story.LINK].copy is Copy.PURGED
    assert shape(downstream(log.image, USERS)) == before
    [link] = [one for one in steps(log.image) if one.kind == "link"]
    assert (link.state, link.copy) == ("DELETED", "PURGED")


def test_downstream_keeps_the_topic_of_a_dropped_statement() -> None:
    log = joined()
    log.say(statements.StatementDeleted, "west", statement="west.greeted")
    revoked(log)
    greeted = [one for one in steps(log.image) if one.name == "west.greeted"]
    assert [one.state for one in greeted] == ["DELETED"]
    derived = [one.place for one in walk(downstream(log.image, USERS))]
    assert ("west", "west.greeted") in derived


def test_downstream_keeps_what_an_earlier_sql_text_read() -> None:
    log = joined()
    text = {"sql": "SELECT 1", "stream": "west.visits", "tables": [], "application": None}
    log.say(statements.StatementUpdated, "west", statement="west.greeted", **text)
    log.govern()
    assert [one.state for one in steps(log.image) if one.name == "west.greeted"] == [
        "CREATED",
        "REPLACED",
    ]
    assert ("west", "west.greeted") in [one.place for one in walk(downstream(log.image, USERS))]
    assert COPY in [one.place for one in walk(upstream(log.image, ("west", "west.greeted")))]


def test_a_statement_added_to_a_new_topic_forgets_what_filled_the_deleted_one() -> None:
    log = joined()
    log.say(statements.StatementDeleted, "east", statement="east.copied")
    story.settle(log)
    again = story.statement(sql="SELECT 1", stream="east.other")
    log.say(statements.StatementAdded, "east", **again)
    log.govern()
    assert ("east", "east.copied") not in [one.place for one in walk(downstream(log.image, USERS))]


def test_what_was_made_of_a_topic_that_was_deleted_is_still_told_to_the_owner_of_its_source() -> (
    None
):
    """Who had read a product could wipe what it made of it out of the lineage by adding anew."""
    log = joined()
    further = {"stream": "west.greeted", "destination": "west.final"}
    log.say(statements.StatementAdded, "west", **story.statement(statement="west.b", **further))
    story.settle(log)
    asked = next(iter(log.image.access.requests.values()))
    made = [place for _, places in made_with(log.image, asked) for place in places]
    log.say(statements.StatementDeleted, "west", statement="west.greeted")
    story.settle(log)
    again = {"stream": "west.own", "destination": "west.greeted", "application": None}
    log.say(statements.StatementAdded, "west", **story.statement(statement="west.greeted", **again))
    log.govern()
    states = [one.state for one in steps(log.image) if one.name == "west.greeted"]
    assert states == ["CREATED", "DELETED"]
    assert ("west", "west.final") in made
    before = log.image
    revoked(log)
    for image in (before, log.image):
        left = [place for _, places in made_with(image, asked) for place in places]
        assert ("west", "west.final") in left
        derived = [one.place for one in walk(downstream(image, USERS))]
        assert ("west", "west.final") in derived


def published(log: MemoryLog, topic: str) -> None:
    """West shares a topic of its own, and an application of east's may read it: a link."""
    product = story.product(product=topic, topic=topic, description="d", owner="w")
    log.say(intents.ProductPublished, "west", **product)
    if "east.reader" not in log.image.identity.applications:
        log.say(intents.ApplicationRegistered, "east", application="east.reader")
    log.govern()
    asked = log.make(
        intents.AccessRequested, "east", product=topic, application="east.reader", reason="why"
    )
    log.append(asked, by="east")
    log.govern()
    granted = {"product": topic, "request": asked.meta.id, "reason": "ok"}
    log.say(intents.AccessGranted, "west", **granted)
    story.settle(log)


def made_anew(log: MemoryLog, name: str) -> None:
    """A statement is deleted, its topic deleted, and it is added again over another stream."""
    log.say(statements.StatementDeleted, "west", statement=name)
    story.settle(log)
    again = {"stream": "west.own", "destination": name, "application": None}
    log.say(statements.StatementAdded, "west", **story.statement(statement=name, **again))
    log.govern()


def test_what_a_link_copied_of_a_deleted_topic_is_still_told_to_the_owner_of_its_source() -> None:
    """Over two deleted topics behind each other, until the copy is purged."""
    log = joined()
    second = {"stream": "west.greeted", "destination": "west.second", "application": None}
    log.say(statements.StatementAdded, "west", **story.statement(statement="west.second", **second))
    story.settle(log)
    published(log, "west.second")
    copied = ("east", "west.second")
    for name in ("west.second", "west.greeted"):
        made_anew(log, name)
        assert copied in [one.place for one in walk(downstream(log.image, USERS))]
    asked = next(one for one in log.image.access.requests.values() if one.product == "east.users")
    assert copied in [place for _, places in made_with(log.image, asked) for place in places]
    log.say(intents.LinkDeleted, "west", product="west.second", cluster="east")
    story.settle(log)
    assert log.image.links["west.second@east"].copy is Copy.PURGED
    assert copied not in [one.place for one in walk(downstream(log.image, USERS))]


def test_a_statement_added_to_another_topic_keeps_the_first_one() -> None:
    log = joined()
    log.say(statements.StatementDeleted, "east", statement="east.copied")
    story.settle(log)
    log.say(statements.StatementAdded, "east", **story.statement(destination="east.elsewhere"))
    log.govern()
    derived = [one.place for one in walk(downstream(log.image, USERS))]
    assert {("east", "east.copied"), ("east", "east.elsewhere")} <= set(derived)


def test_downstream_keeps_the_table_of_a_dropped_sink() -> None:
    log = joined()
    config = {
        "connector.class": connector_config.JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.invalid:5432/shop",
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "connection.password": connectors.OWN_SECRET,
        "topics": "east.users",
    }
    log.say(connectors.ConnectorAdded, "east", connector="east.sink", config=config)
    story.settle(log)
    log.say(connectors.ConnectorDeleted, "east", connector="east.sink")
    story.settle(log)
    table = ("postgres://db.invalid:5432", "shop.public.east_users")
    assert table in [one.place for one in walk(downstream(log.image, USERS))]


def test_a_purged_copy_that_nothing_was_made_of_is_not_shown() -> None:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    revoked(log)
    assert log.image.links[story.LINK].copy is Copy.PURGED
    assert steps(log.image) == []


def test_a_revoked_grant_leaves_what_its_application_made() -> None:
    log = joined()
    grant = next(one for one in log.image.access.requests.values())
    onward = story.statement(
        statement="west.onward",
        stream="west.greeted",
        destination="west.onward",
    )
    log.say(statements.StatementAdded, "west", **onward)
    revoked(log)
    assert [(one.name, one.fills) for one, _ in made_with(log.image, grant)] == [
        ("west.greeted", ("west", "west.greeted")),
        ("west.onward", ("west", "west.onward")),
    ]


def test_a_topic_is_told_with_its_product_and_its_readers() -> None:
    image = joined().image
    assert product_of(image, USERS) == product_of(image, COPY) == story.PRODUCT
    assert product_of(image, ("west", "west.greeted")) is None
    assert readers(image, COPY) == ["west.app"]
    assert readers(image, USERS) == []


def test_the_way_back_goes_over_clusters() -> None:
    image = joined().image
    assert way_back(image, USERS, [("west", "west.greeted")]) == [
        USERS, COPY, ("west", "west.greeted"),
    ]  # fmt: skip
    assert way_back(image, ("west", "west.greeted"), [USERS]) == []


def test_the_way_back_looks_at_each_statement_once_however_long_it_is() -> None:
    """A freeze waits for the judgement that is under way."""
    image, looked = joined().image, list[str]()
    first = next(iter(image.statements.values()))

    class Looked(Statement):
        @property
        def reads(self) -> tuple[str, ...]:
            looked.append(self.id)
            return (self.stream,)

    chain = {
        f"west.s{at}": Looked(
            **{one.name: getattr(first, one.name) for one in fields(first)}
            | {
                "id": f"west.s{at}",
                "cluster": "west",
                "stream": f"west.t{at}",
                "destination": f"west.t{at + 1}",
            }
            | {"tables": ()}
        )
        for at in range(50)
    }
    image = image._replace(statements=Map(chain))
    way = way_back(image, ("west", "west.t0"), [("west", "west.t50")])
    assert way == [("west", f"west.t{at}") for at in range(51)]
    assert sorted(looked) == sorted(chain)
    assert way_back(image, ("west", "west.t1"), [("west", "west.t0")]) == []
    assert sorted(looked) == sorted(chain), "another way in the same image"
    fewer = image._replace(statements=Map(chain).delete("west.s20"))
    assert way_back(fewer, ("west", "west.t0"), [("west", "west.t50")]) == []
    assert way_back(image, ("west", "west.t0"), [("west", "west.t50")]) == way


def test_a_statement_that_would_close_the_circle_is_refused() -> None:
    """West's result, read by east into the topic that it is made of."""
    log = joined()
    back = story.product(product="west.greeted", topic="west.greeted", owner="team-west")
    log.say(intents.ProductPublished, "west", **back)
    log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.govern()
    asking = {"product": "west.greeted", "application": "east.app", "reason": "r"}
    asked = log.make(intents.AccessRequested, "east", **asking)
    log.append(asked, by="east")
    log.govern()
    closing = {"product": "west.greeted", "request": asked.meta.id, "reason": "agreed"}
    log.say(intents.AccessGranted, "west", **closing)
    log.govern()
    assert log.image.access.requests[asked.meta.id].state == "GRANTED"
    circle = story.statement(
        statement="east.circle",
        stream="west.greeted",
        destination="east.users",
        application="east.app",
    )
    said = log.say(statements.StatementAdded, "east", **circle)
    verdict = log.verdict(said)
    assert getattr(verdict, "code", "") == "statement_cycle"


def test_an_earlier_text_that_the_present_one_covers_is_shown_once() -> None:
    """A table was joined, then not, and is joined again."""
    log = joined()
    join = {"sql": "SELECT 1", "stream": "west.visits", "application": None}
    for tables in (["west.more"], [], ["west.more"]):
        text = {**join, "tables": tables}
        log.say(statements.StatementUpdated, "west", statement="west.greeted", **text)
        log.govern()
    states = [(one.state, one.streams) for one in steps(log.image) if one.name == "west.greeted"]
    stream = (("west", "west.visits"),)
    # the first text, which read the copy, is another one
    assert states == [("CREATED", stream), ("REPLACED", stream)]
    [earlier] = [one for one in steps(log.image) if one.state == "REPLACED"]
    assert COPY in earlier.reads
    assert earlier.writes_from(COPY) == (earlier.fills,)


def test_dead_letters_that_are_made_anew_are_no_earlier_texts_any_more() -> None:
    dead = ("west", "west.greeted.dead")
    step = replace(
        of_statement(joined().image.statements["west.greeted"]), state="REPLACED", name="west.old"
    )
    known = replaced(Replaced(), [step], [])
    assert [one.dead_letters for one in known.steps.values()] == [(dead,)]
    assert [one.dead_letters for one in emptied(known, dead).steps.values()] == [()]
    assert [one.state for one in emptied(known, step.fills).steps.values()] == ["DELETED"]


@pytest.mark.parametrize("first", ["sink", "statement"])
def test_dead_letters_of_a_sink_do_not_come_back_to_it(first: str) -> None:
    log = joined()
    more = {connector_config.DEAD_LETTERS: "west.unfit"}
    said = {
        "sink": lambda: log.say(
            connectors.ConnectorAdded,
            "west",
            connector="west.raw",
            config=sink("west.round", **more),
        ),
        "statement": lambda: log.say(
            statements.StatementAdded,
            "west",
            **story.statement(
                statement="west.round", stream="west.unfit", destination="west.round"
            ),
        ),
    }
    second = "statement" if first == "sink" else "sink"
    said[first]()
    log.govern()
    verdict = log.verdict(said[second]())
    code = "statement_cycle" if second == "statement" else "topic_filled"
    assert getattr(verdict, "code", "") == code
    assert "west.unfit" in getattr(verdict, "reason", "")


def test_a_sink_may_read_what_its_dead_letters_were_before() -> None:
    log = joined()
    for kind, read, dead in (
        (connectors.ConnectorAdded, "west.a", "west.b"),
        (connectors.ConnectorUpdated, "west.b", "west.a"),
    ):
        config = sink(read, **{connector_config.DEAD_LETTERS: dead})
        offset = log.say(kind, "west", connector="west.raw", config=config)
        assert isinstance(log.verdict(offset), Waiting)
        log.govern()


def test_what_a_statement_may_not_read_any_more_is_named() -> None:
    log = joined()
    assert refused(log.image, log.image.statements["west.greeted"]) == []
    asked = next(
        one.request for one in log.image.access.requests.values() if one.application == "west.app"
    )
    story.answer(log, intents.AccessRevoked, asked)
    assert refused(log.image, log.image.statements["west.greeted"]) == ["east.users"]
    assert refused(log.image, log.image.statements["east.copied"]) == []


def test_a_grant_that_would_close_the_circle_is_refused() -> None:
    """Between a revocation and the next grant, both sides have built on what they had."""
    log = joined()
    story.settle(log)
    greeted = story.product(product="west.greeted", topic="west.greeted", owner="team-west")
    log.say(intents.ProductPublished, "west", **greeted)
    log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.govern()
    first = asked(log, "west.greeted", "east.app")
    granted(log, "west.greeted", first)
    story.settle(log)
    loop = story.statement(
        statement="east.loop",
        stream="west.greeted",
        destination="east.loop",
        application="east.app",
    )
    log.say(statements.StatementAdded, "east", **loop)
    about = {"product": "west.greeted", "request": first, "reason": "enough"}
    log.say(intents.AccessRevoked, "west", **about)
    story.settle(log)
    log.say(
        intents.ProductPublished, "east", **story.product(product="east.loop", topic="east.loop")
    )
    log.govern()
    granted(log, "east.loop", asked(log, "east.loop", "west.app"))
    story.settle(log)
    visits = story.statement(
        statement="west.visits", stream="east.loop", destination="west.visits",
        application="west.app",
    )  # fmt: skip
    log.say(statements.StatementAdded, "west", **visits)
    log.govern()
    assert "west.visits" in log.image.statements
    again = asked(log, "west.greeted", "east.app")
    about = {"product": "west.greeted", "request": again, "reason": "agreed"}
    offset = log.say(intents.AccessGranted, "west", **about)
    verdict = log.verdict(offset)
    assert getattr(verdict, "code", "") == "statement_cycle"


def asked(log: MemoryLog, product: str, application: str) -> str:
    """A request for a product; its id."""
    domain = application.partition(".")[0]
    fields = {"product": product, "application": application, "reason": "r"}
    event = log.make(intents.AccessRequested, domain, **fields)
    log.append(event, by=domain)
    log.govern()
    return event.meta.id


def granted(log: MemoryLog, product: str, request: str) -> None:
    about = {"product": product, "request": request, "reason": "agreed"}
    log.say(intents.AccessGranted, product.partition(".")[0], **about)
    log.govern()
    assert log.image.access.requests[request].state == "GRANTED"
