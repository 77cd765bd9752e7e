"""The links controller over clusters and an engine in memory."""

import pytest
from openlineage.client.event_v2 import RunState

from mesh_events.errors import InfrastructureError
from mesh_events.facts import (
    CopyPurged,
    CopyRetained,
    LinkActivated,
    LinkAdvanced,
    LinkFailed,
    LinkStopped,
)
from mesh_events.intents import OnRevoke
from processors.acls.running import Running as Explained
from processors.clusters.rights import Acl, Binding, Operation, reader
from processors.controllers.controller import NotLeaderError
from processors.controllers.flows import fence
from processors.controllers.flows.fence import fresh_writer, is_writer, writing
from processors.controllers.flows.flows import LOST
from projections.links import State
from spark_streams.engine import CopySpec, Running
from tests.links.memory import MemoryLink

LINK = "east.users@west"


@pytest.fixture
def link() -> MemoryLink:
    return MemoryLink()


def codes(link: MemoryLink) -> list[str]:
    found = link.harness.said(LinkFailed)
    return [fact.code for fact in found if fact.reason != LOST]


def test_a_new_link_copies_from_the_sources_beginning(link: MemoryLink) -> None:
    link.produce(10)
    link.settle()
    assert link.findings() == []
    (fact,) = link.harness.said(LinkActivated)
    assert (fact.incarnation, fact.positions) == (1, {"0": 0, "1": 0})
    assert fact.source_topic_id == link.source.described.id
    assert fact.destination_topic_id == link.destination.described.id
    assert link.harness.link.state is State.ACTIVE


def test_the_copy_is_made_as_the_source_is(link: MemoryLink) -> None:
    link.east.topics.clear()
    config = {"cleanup.policy": "compact", "retention.ms": "7", "min.insync.replicas": "2"}
    link.east.create_topic(link.topic, 3, config)
    link.settle()
    made = link.destination.described
    assert made.partitions == 3
    assert dict(made.config) == {
        "cleanup.policy": "compact",
        "delete.retention.ms": "86400000",
        "retention.bytes": "-1",
        "retention.ms": "7",
        # the largest record, and one header more
        "max.message.bytes": str(16 * 1_048_576 + 4096),
    }


def test_a_running_link_is_left_alone(link: MemoryLink) -> None:
    link.settle()
    queries = len(link.engine.queries)
    link.settle()
    link.controller = link.new_controller()
    link.settle()
    assert len(link.engine.queries) == queries
    assert len(link.harness.said(LinkActivated)) == 1
    assert codes(link) == []


def test_each_incarnation_writes_as_a_principal_of_its_own(link: MemoryLink) -> None:
    for _ in range(3):
        link.produce(4)
        link.settle()
        link.engine.die()
    link.settle()
    writers = [fact.principal for fact in link.harness.said(LinkActivated)]
    assert len(set(writers)) == len(writers) == 4
    assert all(is_writer(writer, LINK) for writer in writers)
    assert [fact.incarnation for fact in link.harness.said(LinkActivated)] == [1, 2, 3, 4]
    for cluster in (link.east, link.west):
        assert {found.principal for found in cluster.bindings} == {writers[-1]}
        assert cluster.open_logins() == {writers[-1]}
    assert link.findings() == []


def test_a_principal_belongs_to_exactly_one_link() -> None:
    writer = fresh_writer(LINK)
    assert is_writer(writer, LINK)
    for other in ("east.users@west2", "east.user@west", "east.users@wes", "east.users@west.x"):
        assert not is_writer(writer, other)
        assert not is_writer(fresh_writer(other), LINK)
    assert not is_writer(f"mesh.link.{LINK}.12345678.x", LINK)
    assert not is_writer(f"mesh.link.{LINK}.", LINK)


def test_what_an_old_producer_still_holds_never_lands(link: MemoryLink) -> None:
    """It is the fence's whole purpose: without it these records would come twice."""
    link.produce(10)
    link.reconcile()
    link.engine.take()
    link.engine.land(3)
    link.engine.die()
    link.reconcile()
    link.engine.land()
    link.settle()
    assert link.findings() == []


def test_a_second_worker_that_believes_it_still_leads_changes_nothing(link: MemoryLink) -> None:
    """The old worker stands before its start while the new one takes over."""
    link.produce(6)
    old, calls = link.new_controller(), []

    def interrupted() -> None:
        calls.append(None)
        # its last check passed; the effect behind it happens after the new worker's start
        if len(calls) == 5:
            link.harness.on_check = lambda: None
            link.settle()
            link.harness.on_check = interrupted

    image = link.harness.image
    link.harness.on_check = interrupted
    with pytest.raises(NotLeaderError):
        old.reconcile(image, OverAfter(link, 5))
    link.harness.on_check = lambda: None
    link.produce(6)
    link.engine.move()
    link.settle()
    assert link.findings() == []


class OverAfter:
    """The leadership of a worker that has been replaced: `checks` pass, then it is over."""

    epoch, last_report = 0, -1

    def __init__(self, link: MemoryLink, checks: int) -> None:
        self._link, self._left = link, checks

    def check(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotLeaderError("another governor has started")
        self._link.harness.check()

    def report(self, fact) -> None:
        self.check()
        self._link.harness.report(fact)

    def meta(self, *arguments, correlation):
        return self._link.harness.meta(*arguments, correlation=correlation)


@pytest.mark.parametrize("checks", range(12))
def test_a_worker_that_lost_its_leadership_stops_before_its_next_effect(checks: int) -> None:
    link = MemoryLink()
    link.produce(6)
    try:
        link.controller.reconcile(link.harness.image, OverAfter(link, checks))
    except NotLeaderError:
        link.controller = link.new_controller()
    link.settle()
    assert link.findings() == []
    assert len([found for found in link.west.bindings if found.operation is Operation.WRITE]) == 1


def test_a_paused_link_has_no_right_left_and_tells_its_positions(link: MemoryLink) -> None:
    link.produce(10)
    link.settle()
    link.harness.pause()
    link.reconcile()
    assert link.harness.link.state is State.PAUSED
    assert link.harness.said(LinkStopped)[-1].positions == {"0": 5, "1": 5}
    assert link.west.bindings == link.east.bindings == set()
    assert link.west.open_logins() == link.east.open_logins() == set()
    link.produce(10)
    link.settle()
    assert link.findings(complete=False) == []
    assert len(link.harness.said(LinkStopped)) == 1

    link.harness.resume()
    link.settle()
    assert link.findings() == []


def test_a_pause_closes_the_fence_even_if_the_engine_is_down(link: MemoryLink) -> None:
    link.produce(10)
    link.settle()
    link.engine.take()
    link.produce(10)
    link.engine.down = True
    link.harness.pause()
    link.reconcile()
    assert link.harness.link.state is State.PAUSED
    link.engine.move()
    assert [len(p.records) for p in link.destination.partitions] == [5, 5]
    link.engine.down = False
    link.reconcile()
    assert not [found for found in link.engine.states().get(LINK, ()) if isinstance(found, Running)]


def test_a_pause_and_resume_before_the_controller_looked_is_one_more_incarnation(
    link: MemoryLink,
) -> None:
    link.produce(4)
    link.settle()
    link.harness.pause()
    link.harness.resume()
    link.produce(4)
    link.settle()
    assert link.harness.link.state is State.ACTIVE
    assert link.findings() == []


def test_a_removed_link_leaves_nothing(link: MemoryLink) -> None:
    link.produce(4)
    link.settle()
    topic_id = link.destination.described.id
    link.harness.remove()
    link.settle()
    assert link.west.topics == {}
    assert link.west.bindings == link.east.bindings == set()
    assert link.west.open_logins() == link.east.open_logins() == set()
    (fact,) = link.harness.said(CopyPurged)
    assert (fact.topic, fact.topic_id) == (link.topic, topic_id)
    assert link.harness.link.state is State.DELETED
    assert link.engine.states() == {}


def test_a_copy_is_purged_even_if_the_engine_is_down(link: MemoryLink) -> None:
    link.settle()
    link.engine.down = True
    link.harness.remove()
    link.settle()
    assert link.west.topics == {}
    assert link.harness.link.state is State.DELETED


def test_a_retained_copy_stays_and_nobody_of_the_mesh_may_write_it(link: MemoryLink) -> None:
    link.produce(4)
    link.settle()
    link.harness.remove(OnRevoke.RETAIN)
    link.settle()
    assert link.harness.said(CopyRetained)[-1].topic_id == link.destination.described.id
    assert link.west.bindings == set()
    link.harness.create()
    link.produce(4)
    link.settle()
    assert link.findings() == []


def test_a_copy_is_purged_with_its_unexpected_readers_reported(link: MemoryLink) -> None:
    link.settle()
    link.west.grant(reader("mallory", link.topic))
    link.west.make(Acl("*", "read", "topic", "east.", prefixed=True, host="10.0.0.1"))
    link.harness.remove()
    link.settle(2)
    assert link.west.topics == {}
    assert codes(link) == []
    (purged,) = link.harness.said(CopyPurged)
    assert purged.unexpected_readers == ["*", "mallory"]


def test_at_each_step_of_a_start_its_rights_are_explained(link: MemoryLink) -> None:
    """Drift looks beside it, and takes what it takes for nobody's."""

    def look() -> None:
        for name, cluster in link.clusters.items():
            explained = Explained(link.harness.image, name, link.starts)
            seen.update(cluster.bindings)
            assert all(explained.explain(Acl.of(one)) for one in cluster.bindings)

    seen: set[Binding] = set()
    link.harness.on_check = look
    link.settle()
    assert len(seen) == 3
    principal = link.harness.link.principal or ""
    assert link.starts.has(LINK, principal)
    link.harness.pause()
    link.settle()
    assert not link.starts.has(LINK, principal)


def test_a_purge_names_a_reader_that_is_called_like_a_writer_of_the_mesh(link: MemoryLink) -> None:
    """The log knows no start of that link, and none of this one that had the name."""
    names = [f"mesh.link.{name}.0a1b2c3d" for name in (LINK, "east.people@west")]
    link.settle()
    for name in [*names, "mesh.auditor"]:
        link.west.grant(reader(name, link.topic))
    # what is called like this link's own is retired with it
    link.harness.remove()
    link.settle(2)
    (purged,) = link.harness.said(CopyPurged)
    assert purged.unexpected_readers == ["mesh.auditor", names[1]]


def test_a_copy_is_kept_until_the_log_says_that_its_reader_is_gone(link: MemoryLink) -> None:
    link.settle()
    right = reader("west.analytics", link.topic)
    link.west.grant(right)
    link.harness.grant("west.analytics")
    link.harness.remove()
    link.reconcile()
    assert codes(link) == []
    link.settle(6)
    assert codes(link) == ["readers_remain"]
    assert link.topic in link.west.topics
    # nothing more is copied meanwhile
    assert link.engine.states() == {}
    link.west.withdraw(right)
    link.settle()
    assert link.harness.link.state is State.DELETED


def test_a_link_that_is_removed_before_it_ever_ran_is_just_removed(link: MemoryLink) -> None:
    link.harness.remove()
    link.settle()
    assert link.harness.link.state is State.DELETED
    assert link.harness.said(LinkStopped) == []


@pytest.mark.parametrize("on_revoke", [OnRevoke.PURGE, OnRevoke.RETAIN])
def test_a_mark_goes_with_a_link_whose_copy_was_never_made(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch, on_revoke: OnRevoke
) -> None:
    def unreached(*_: object) -> None:
        raise InfrastructureError("the cluster does not answer", retriable=True)

    monkeypatch.setattr(link.west, "create_topic", unreached)
    link.settle(1)
    assert link.west.bindings
    link.harness.remove(on_revoke)
    link.settle()
    assert link.harness.link.state is State.DELETED
    assert link.west.bindings == link.east.bindings == set()
    assert link.west.open_logins() == link.east.open_logins() == set()


def test_a_topic_that_took_the_copys_place_is_not_purged(link: MemoryLink) -> None:
    link.settle()
    link.west.delete_topic(link.topic)
    link.west.create_topic(link.topic, 1, {})
    link.harness.remove()
    link.settle()
    assert link.topic in link.west.topics
    assert link.harness.link.state is State.DELETED


def test_a_removal_that_was_overtaken_by_a_new_link_is_harmless(link: MemoryLink) -> None:
    """Created again before the removal was done: at any point of it."""
    link.produce(4)
    link.settle()
    link.harness.remove()
    link.harness.create()
    link.settle()
    assert link.findings() == []

    link.harness.remove()
    link.west.topics.clear()
    link.harness.create()
    link.settle()
    assert link.findings() == []
    assert codes(link) == []


def test_a_link_that_was_purged_and_made_again_starts_anew(link: MemoryLink) -> None:
    link.produce(4)
    link.settle()
    link.harness.remove()
    link.settle()
    # after a purge nothing is known that a new source could contradict
    link.east.topics.clear()
    link.east.create_topic(link.topic, 2, {})
    link.harness.create()
    link.produce(6)
    link.settle()
    assert link.findings() == []
    assert codes(link) == []


def test_a_query_that_nobody_ordered_is_stopped(link: MemoryLink) -> None:
    link.settle()
    stray = link.engine.queries[-1]
    link.harness.pause()
    link.settle()
    stray.stopped = False
    link.settle()
    assert stray.stopped
    link.harness.remove()
    link.settle()
    stray.stopped = False
    link.settle()
    assert stray.stopped


def test_the_floor_on_the_log_follows_the_copy_at_a_bounded_rate() -> None:
    link = MemoryLink()
    for _ in range(50):
        link.produce(2)
        link.settle(1)
    many = len(link.harness.said(LinkAdvanced))
    assert link.harness.link.positions["0"] > 40
    assert many > 10
    seldom = slower(MemoryLink(), advance=30.0)
    for _ in range(50):
        seldom.produce(2)
        seldom.settle(1)
    assert 1 <= len(seldom.harness.said(LinkAdvanced)) <= 2
    bursts = slower(MemoryLink(), advance=1e9, advance_records=100)
    bursts.produce(300)
    bursts.settle()
    assert len(bursts.harness.said(LinkAdvanced)) == 1


def slower(link: MemoryLink, **pace: float) -> MemoryLink:
    link.pace = pace
    link.controller = link.new_controller()
    return link


def test_lineage_tells_each_incarnation(link: MemoryLink) -> None:
    link.settle()
    first = link.harness.link.run
    link.engine.queries[-1].fault = "the disk is full"
    link.reconcile()
    link.settle()
    second = link.harness.link.run
    link.harness.pause()
    link.settle()
    told = [
        (kind, run.run, reason)
        for kind, run, reason in link.lineage.told
        if kind is not RunState.RUNNING
    ]
    assert told == [
        (RunState.START, first, None),
        (RunState.FAIL, first, "the query ended: the disk is full"),
        (RunState.START, second, None),
        (RunState.COMPLETE, second, None),
    ]


def test_a_start_that_the_log_does_not_count_has_no_run(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = link.engine.start

    def paused_meanwhile(spec: CopySpec) -> None:
        start(spec)
        link.harness.pause()

    monkeypatch.setattr(link.engine, "start", paused_meanwhile)
    link.reconcile()
    assert link.harness.said(LinkActivated)
    link.settle()
    assert link.harness.link.is_at_rest
    assert link.lineage.told == []


def test_a_fact_carries_generation_and_conversation(link: MemoryLink) -> None:
    link.settle()
    link.harness.pause()
    link.settle()
    for fact in (link.harness.said(LinkActivated)[0], link.harness.said(LinkStopped)[0]):
        assert fact.link == LINK
        assert fact.meta.correlation == LINK
        assert fact.meta.causation == LINK
    assert link.harness.said(LinkStopped)[0].generation == link.harness.link.generation
    identities = [fact.meta.id for fact in link.harness.facts]
    assert len(set(identities)) == len(identities)


def test_a_right_that_does_not_go_away_stops_the_start(
    link: MemoryLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    link.settle()
    monkeypatch.setattr(fence, "GONE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(link.west, "withdraw", lambda _: None)
    link.engine.die()
    link.settle()
    assert codes(link) == ["cluster_unavailable"]
    assert "not go away when it is withdrawn" in link.harness.link.failure
    assert len(link.harness.said(LinkActivated)) == 1


def test_somebody_elses_rights_on_the_copy_are_not_touched(link: MemoryLink) -> None:
    theirs = writing("west.operator", link.topic)
    link.west.grant([theirs])
    link.settle()
    link.harness.remove()
    link.settle()
    assert link.west.bindings == {theirs}
