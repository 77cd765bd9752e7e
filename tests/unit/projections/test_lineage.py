"""Where data comes from and goes to, as trees over links and statements."""

from mesh_events import intents, statements
from projections.lineage import (
    Branch,
    downstream,
    product_of,
    readers,
    steps,
    upstream,
    walk,
)
from projections.sources import refused, way_back
from tests import paper_story as story
from tests.paper_log import PaperLog

USERS, COPY = ("east", "east.users"), ("west", "east.users")


def joined() -> PaperLog:
    """East fills a topic from its users, west reads a copy of them and joins it with its own."""
    log = PaperLog()
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
            ("statement", "east.copied", [(("east", "east.copied"), [])]),
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


def test_what_is_gone_is_not_drawn() -> None:
    log = joined()
    log.say(statements.StatementDropped, "west", statement="west.greeted")
    asked = next(one for one in log.image.access.requests if one)
    story.settle(log)
    story.answer(log, intents.AccessRevoked, asked)
    story.settle(log)
    assert [one.name for one in steps(log.image)] == ["east.copied"]


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


def test_a_grant_that_would_close_the_circle_is_refused() -> None:
    """West's result, read by east into the topic that it is made of."""
    log = joined()
    back = story.product(product="west.greeted", topic="west.greeted", owner="team-west")
    log.say(intents.ProductPublished, "west", **back)
    log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.govern()
    fields = {"product": "west.greeted", "application": "east.app", "reason": "r"}
    asked = log.make(intents.AccessRequested, "east", **fields)
    log.append(asked, by="east")
    log.govern()
    closing = {"product": "west.greeted", "request": asked.meta.id, "reason": "agreed"}
    offset = log.say(intents.AccessGranted, "west", **closing)
    log.govern()
    assert log.image.access.requests[asked.meta.id].state == "GRANTED"
    assert offset
    circle = story.statement(
        statement="east.circle",
        stream="west.greeted",
        destination="east.users",
        application="east.app",
    )
    said = log.say(statements.StatementAdded, "east", **circle)
    verdict = log.verdict(said)
    assert getattr(verdict, "code", "") == "statement_cycle"


def test_what_a_statement_may_not_read_any_more_is_named() -> None:
    log = joined()
    assert refused(log.image, log.image.statements["west.greeted"]) == []
    asked = next(
        one.request for one in log.image.access.requests.values() if one.application == "west.app"
    )
    story.answer(log, intents.AccessRevoked, asked)
    assert refused(log.image, log.image.statements["west.greeted"]) == ["east.users"]
    assert refused(log.image, log.image.statements["east.copied"]) == []
