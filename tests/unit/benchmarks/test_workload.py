"""The log that benchmarks replay is one that a mesh could have."""

from benchmarks.workload import EVENTS_PER_STORY, STEP, Workload
from mesh_events.decisions import IDS_PER_DOMAIN
from mesh_events.record import Record
from mesh_events.rows import AccessState
from projections.deciding.intents import REMEMBERED_MS
from projections.replay import replay
from self_service.cli.verification.scope import Scope
from self_service.cli.verification.verifier import verify

FOUNDATION = 8_000
"""More records than there are before the first story."""


def records(workload: Workload) -> list[Record]:
    """What the workload writes, 40 stories and more."""
    return [
        Record(offset, workload.time_ms, wire.key, wire.value, dict(wire.headers))
        for offset, wire in enumerate(workload.records(FOUNDATION + 40 * EVENTS_PER_STORY))
    ]


def test_each_intent_of_the_workload_is_accepted() -> None:
    workload = Workload()
    log = records(workload)
    image = replay(log, verify=False)
    assert image.offset == len(log) - 1
    assert not image.intents.open_count
    assert not image.clocks_disagree
    assert len(image.access.requests) > 40
    assert {one.state for one in image.access.requests.values()} == {AccessState.REVOKED}


def test_audit_finds_the_workload_valid() -> None:
    workload = Workload()
    log = records(workload)
    root, governor = workload.key("root").public, workload.key("gov").public
    assert verify(iter(log), root, governor, scope=Scope()).findings == []


def test_no_domain_of_the_workload_has_more_ids_than_are_remembered_of_it() -> None:
    """Two intents of a story are of one domain."""
    stories = REMEMBERED_MS / (EVENTS_PER_STORY * STEP.total_seconds() * 1000)
    assert 2 * stories < IDS_PER_DOMAIN
