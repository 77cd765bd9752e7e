"""Links and statements over topics whose leader may be a replica that lacks records."""

from dataclasses import replace

import pytest
from immutables import Map

from mesh_events.facts import LinkFailed
from mesh_events.statements import StatementFailed
from projections.links import Copy, State
from tests.links.memory import MemoryCluster, MemoryLink
from tests.statements.memory import NAME, STREAM
from tests.unit.processors.test_statements_filling import USERS, Joined

SETTING = "unclean.leader.election.enable"


def put(cluster: MemoryCluster, topic: str, value: str) -> None:
    described = cluster.topics[topic].described
    changed = replace(described, config={**described.config, SETTING: value})
    cluster.topics[topic].described = changed


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Joined:
    """A statement over a stream and a table that is filled."""
    monkeypatch.setattr(
        "processors.controllers.statements.statements.require_same", lambda *_: None
    )
    found = Joined()
    found.link(positions=Map({"0": 100}), copy=Copy.PRESENT)
    return found


def test_no_link_starts_over_a_source_with_unclean_elections_before_it_is_set_to_false() -> None:
    link = MemoryLink()
    put(link.east, link.topic, "true")
    link.settle()
    (fact,) = link.harness.said(LinkFailed)
    assert (fact.code, fact.retriable) == ("source_unclean", False)
    assert f"{link.topic} on cluster east has {SETTING}=true" in fact.reason
    assert "Set it to false; then pause and resume the link" in fact.reason
    assert "delete the link (which purges the copy) and create it again" in fact.reason
    assert link.engine.queries == []

    put(link.east, link.topic, "false")
    link.harness.pause()
    link.settle()
    link.harness.resume()
    link.settle()
    assert link.harness.link.state is State.ACTIVE


@pytest.mark.parametrize("topic", [STREAM, USERS])
def test_no_statement_starts_over_a_stream_or_a_table_with_unclean_elections(
    made: Joined, topic: str
) -> None:
    put(made.east, topic, "true")
    made.settle()
    (fact,) = made.harness.said(StatementFailed)
    assert (fact.code, fact.retriable) == ("source_unclean", False)
    assert f"{topic} on cluster east has {SETTING}=true" in fact.reason
    assert "delete the statement, delete its topics, and add it again" in fact.reason
    assert made.engine.queries == []


def test_a_statement_runs_over_topics_without_unclean_elections(made: Joined) -> None:
    for topic in (STREAM, USERS):
        put(made.east, topic, "false")
    made.settle()
    assert made.harness.said(StatementFailed) == []
    assert made.harness.image.statements[NAME].is_active
