"""What a new major version is called, and who is to be told of it."""

import pytest

from mesh_events import intents
from mesh_events.connectors import ConnectorAdded
from mesh_events.statements import StatementAdded, StatementDeleted
from self_service.cli.schema.major import Successor, successor
from self_service.cli.topic.readers import filled_by, readers
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.mark.parametrize(
    ("topic", "product", "taken", "wanted"),
    [
        ("east.users", None, 0, Successor(2, "east.users-v2", None)),
        ("east.users", "east.people", 0, Successor(2, "east.users-v2", "east.people-v2")),
        ("east.users-v2", "east.users-v2", 0, Successor(3, "east.users-v3", "east.users-v3")),
        ("east.users", "east.users-v4", 0, Successor(5, "east.users-v5", "east.users-v5")),
        ("east.users-v9", None, 3, Successor(13, "east.users-v13", None)),
        ("east.users-version", None, 0, Successor(2, "east.users-version-v2", None)),
    ],
)
def test_the_next_free_number_is_taken_by_topic_and_product(
    topic: str, product: str | None, taken: int, wanted: Successor
) -> None:
    asked: list[Successor] = []

    def free(one: Successor) -> bool:
        asked.append(one)
        return len(asked) > taken

    assert successor(topic, product, free) == wanted
    assert len({one.topic for one in asked}) == taken + 1


def test_those_who_read_a_topic_and_those_who_fill_it_are_told_apart() -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.request(log)
    assert list(readers(log.image, "east.users")) == []
    story.answer(log, intents.AccessGranted, asked)
    log.say(StatementAdded, "east", **story.statement())
    config = {"connector.class": "some.Sink", "topics": "east.users,east.copied"}
    log.say(ConnectorAdded, "east", connector="east.files", config=config)
    log.govern()
    assert [(one["kind"], one["name"]) for one in readers(log.image, "east.users")] == [
        ("application", "west.app"),
        ("statement", "east.copied"),
        ("link", "east.users@west"),
        ("connector", "east.files"),
    ]
    assert [one["name"] for one in readers(log.image, "east.copied")] == ["east.files"]
    assert filled_by(log.image, "east.copied") == ["east.copied"]
    assert filled_by(log.image, "east.users") == []
    log.say(StatementDeleted, "east", statement="east.copied", reason="over")
    story.answer(log, intents.AccessRevoked, asked)
    log.govern()
    assert "statement" not in {one["kind"] for one in readers(log.image, "east.users")}
    assert "application" not in {one["kind"] for one in readers(log.image, "east.users")}
    assert filled_by(log.image, "east.copied") == []
