"""Starts that fail: how many logins they leave, and when they end."""

import pytest

from mesh_events.errors import InfrastructureError
from mesh_events.facts import Fact, LinkActivated, LinkFailed
from processors.clusters.rights import Operation
from processors.controllers.flows.pace import Pace
from projections.links import State
from spark_streams.engine import CopySpec
from spark_streams.errors import EngineError
from tests.links.memory import MemoryLink

MOST = Pace().starts


@pytest.fixture
def link() -> MemoryLink:
    link = MemoryLink()
    link.produce(4)
    return link


def fail_again_and_again(link: MemoryLink, times: int = 3 * MOST) -> None:
    """Each start lives, and its query ends before it has copied anything."""
    for _ in range(times):
        link.reconcile()
        if link.engine.states():
            link.engine.queries[-1].fault = "a record is too large"


def test_a_start_that_fails_before_its_query_leaves_one_login(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = link.west.grant

    def grant(bindings: list) -> None:
        if any(one.operation is Operation.WRITE for one in bindings):
            raise InfrastructureError("cluster west does not answer", retriable=True)
        real(bindings)

    monkeypatch.setattr(link.west, "grant", grant)
    for _ in range(2 * MOST):
        link.reconcile()
    assert len(link.west.logins) == len(link.east.logins) == 1
    assert {fact.code for fact in link.harness.said(LinkFailed)} == {"cluster_unavailable"}
    monkeypatch.undo()
    link.settle()
    assert link.findings() == []
    assert len(link.west.logins) == 1


def test_an_engine_without_room_leaves_no_login_and_is_waited_for(link: MemoryLink) -> None:
    link.engine._slots = 1
    for _ in range(2 * MOST):
        link.reconcile()
    assert len(link.west.logins) == 0
    assert {fact.code for fact in link.harness.said(LinkFailed)} == {"engine_full"}
    link.engine._slots = 512
    link.settle()
    assert link.findings() == []


def test_an_engine_that_fills_up_during_a_start_leaves_one_login(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(spec: CopySpec) -> None:
        raise EngineError("engine_full", f"others took the slots for {spec.link}")

    monkeypatch.setattr(link.engine, "start", start)
    for _ in range(2 * MOST):
        link.reconcile()
    assert len(link.west.logins) == 1
    assert {fact.code for fact in link.harness.said(LinkFailed)} == {"engine_full"}
    monkeypatch.undo()
    link.settle()
    assert link.findings() == []


def test_a_login_that_an_engine_may_have_is_not_used_again(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = list[str]()

    def start(spec: CopySpec) -> None:
        writers.append(spec.writer)
        raise EngineError("engine_unavailable", "the answer was lost")

    monkeypatch.setattr(link.engine, "start", start)
    for _ in range(5):
        link.reconcile()
    assert len(set(writers)) == len(writers) == 5


def test_after_so_many_starts_in_vain_a_link_closes_for_its_owner(link: MemoryLink) -> None:
    fail_again_and_again(link)
    assert len(link.west.logins) == MOST
    last = link.harness.said(LinkFailed)[-1]
    assert (last.code, last.retriable) == ("starts_exhausted", False)
    assert "a record is too large" in last.reason
    assert link.harness.link.state is State.FAILED
    assert link.engine.states() == {}
    assert link.west.open_logins() == set()


def test_a_link_whose_end_could_not_be_reported_makes_no_more_logins(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = link.harness.report

    def report(fact: Fact) -> None:
        if isinstance(fact, LinkFailed) and fact.code == "starts_exhausted":
            raise InfrastructureError("the log does not answer", retriable=True)
        real(fact)

    monkeypatch.setattr(link.harness, "report", report)
    fail_again_and_again(link)
    assert len(link.west.logins) == MOST
    monkeypatch.undo()
    fail_again_and_again(link)
    assert link.harness.link.failure_code == "starts_exhausted"
    assert len(link.west.logins) == MOST


def test_a_closed_link_stays_closed_under_another_worker(link: MemoryLink) -> None:
    fail_again_and_again(link)
    link.controller = link.new_controller()
    link.settle()
    assert len(link.west.logins) == MOST
    assert len(link.harness.said(LinkActivated)) == MOST


@pytest.mark.parametrize("looked_between", [True, False])
def test_a_stop_and_a_start_open_it_again(link: MemoryLink, looked_between: bool) -> None:
    fail_again_and_again(link)
    link.harness.pause()
    if looked_between:
        link.settle()
    link.harness.resume()
    link.settle()
    assert link.findings() == []
    assert len(link.west.logins) == MOST + 1


def test_a_link_that_gets_on_between_failures_is_not_closed(link: MemoryLink) -> None:
    for _ in range(2 * MOST):
        link.settle()
        link.engine.queries[-1].fault = "the server ran out of memory"
        link.produce(2)
        link.reconcile()
    link.settle()
    assert link.findings() == []
    assert "starts_exhausted" not in {fact.code for fact in link.harness.said(LinkFailed)}


def test_a_link_that_has_nothing_to_copy_and_lives_long_is_not_closed() -> None:
    link = MemoryLink()
    for _ in range(2 * MOST):
        link.settle()
        link.time += Pace().steady
        link.reconcile()
        link.engine.die()
    link.settle()
    assert "starts_exhausted" not in {fact.code for fact in link.harness.said(LinkFailed)}
    assert len(link.harness.said(LinkActivated)) > MOST
