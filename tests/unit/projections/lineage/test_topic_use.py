"""The topics that connectors and statements fill, and the tasks that a domain's connectors have."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events.connectors import ConnectorAdded, ConnectorDeleted, ConnectorUpdated
from mesh_events.decisions import GovernorStarted
from mesh_events.statements import StatementAdded, StatementDeleted
from projections.deciding.verdict import Rejected, Waiting
from projections.image import Image
from tests import sample_history as story
from tests.memory_log import MemoryLog


def log_of_domains() -> MemoryLog:
    found = MemoryLog()
    story.published(found)
    return found


def files(name: str, tasks: int = 1) -> dict[str, Any]:
    """The fields of an intent for a sink, which fills its topic of dead letters."""
    domain, _, short = name.partition(".")
    config = {
        "connector.class": "some.Sink",
        "topics": f"{domain}.users",
        "tasks.max": str(tasks),
        "errors.deadletterqueue.topic.name": f"{domain}.{short}_dead",
    }
    return {"connector": name, "config": config}


def filled(image: Image) -> dict[tuple[str, str], set[str]]:
    """What fills each topic, from the connectors and statements alone."""
    found: dict[tuple[str, str], set[str]] = {}
    for kind, table in (("connector", image.connectors), ("statement", image.statements)):
        for one in table.values():
            for topic in () if one.is_over else one.writes:
                place = one.cluster, topic.replace(".", "_")
                found.setdefault(place, set()).add(f"{kind} {one.id}")
    return found


def tasks(image: Image) -> dict[str, int]:
    """The tasks of each domain, from the connectors alone."""
    found: dict[str, int] = {}
    for one in image.connectors.values():
        if not one.is_over:
            found[one.domain] = found.get(one.domain, 0) + int(one.config["tasks.max"])
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["east.a", "east.b", "east.c"]),
            st.sampled_from(["add", "update", "drop", "state", "end", "settle"]),
            st.integers(1, 3),
        ),
        max_size=14,
    )
)
def test_the_indexes_are_what_connectors_and_statements_have(
    acts: list[tuple[str, str, int]],
) -> None:
    log = log_of_domains()
    for name, act, number in acts:
        match act:
            case "add":
                log.say(ConnectorAdded, "east", **files(name, number))
            case "update":
                log.say(ConnectorUpdated, "east", **files(name, number))
            case "drop":
                log.say(ConnectorDeleted, "east", connector=name)
            case "state":
                # the same topic as the dead letters of a connector, now and then
                fields = story.statement(statement=name, destination=f"east.{'abc'[number - 1]}")
                log.say(StatementAdded, "east", **fields)
            case "end":
                log.say(StatementDeleted, "east", statement=name)
            case _:
                story.settle(log)
        log.govern()
        image = log.image
        assert {place: set(found) for place, found in image.topic_use.items()} == filled(image)
        assert all(len(found) == 1 for found in image.topic_use.values())
        assert dict(image.task_use) == tasks(image)


@pytest.fixture
def log() -> MemoryLog:
    found = log_of_domains()
    event = found.make(GovernorStarted, "mesh", version="1", connectors_per_domain=4)
    found.epoch = found.append(event, by="governor")
    return found


def added(log: MemoryLog, name: str, number: int, kind: Any = ConnectorAdded) -> str:
    """The reason of the refusal; empty where the rules leave it to the check."""
    offset = log.say(kind, name.partition(".")[0], **files(name, number))
    found = log.verdict(offset)
    if isinstance(found, Rejected):
        assert found.code == "quota_exceeded"
        return found.reason
    assert isinstance(found, Waiting), found
    log.accept(offset)
    return ""


def test_a_domain_has_no_more_tasks_than_it_may_have_connectors(log: MemoryLog) -> None:
    """65 sinks of 64 tasks each filled the memory of Connect, where all domains' run."""
    assert added(log, "east.a", 3) == ""
    refused = added(log, "east.b", 2)
    for part in ("east may have 3 tasks", "together 4", "tasks.max", "SDM_CONNECTORS_PER_DOMAIN"):
        assert part in refused
    assert added(log, "east.b", 1) == ""


def test_a_connector_gives_its_tasks_back_when_it_has_fewer_or_is_gone(log: MemoryLog) -> None:
    assert added(log, "east.a", 4) == ""
    assert added(log, "east.b", 1) != ""
    assert added(log, "east.a", 3, ConnectorUpdated) == ""
    assert added(log, "east.b", 1) == ""
    assert added(log, "east.a", 4, ConnectorUpdated) != ""
    log.accept(log.say(ConnectorDeleted, "east", connector="east.a"))
    assert added(log, "east.c", 3) != ""
    story.settle(log)
    assert added(log, "east.c", 3) == ""
