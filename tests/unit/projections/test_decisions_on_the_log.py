"""Which decisions, facts and foundations count: epochs, forgeries, repeats, contradictions."""

from dataclasses import replace

import pytest

from mesh_events import avro, facts, intents
from mesh_events.decisions import GovernorStarted, MeshFounded
from mesh_events.errors import StateFaultError
from mesh_events.meta import Event
from mesh_events.record import FaultCode
from projections.deciding.verdict import Quarantined, Rejected
from projections.fold import apply
from projections.image import EMPTY, Image
from tests import sample_history as story
from tests.memory_log import FOUNDATION_RECORDS, SCHEMA_IDS, MemoryLog, introduction, key, meta

REFUSED = Rejected("because", "the governor says so")


@pytest.fixture
def log() -> MemoryLog:
    """Domains, and one intent of east that nobody has decided."""
    log = MemoryLog()
    story.domains(log)
    return log


def undecided_publish(log: MemoryLog) -> int:
    return log.say(intents.ProductPublished, "east", **story.product())


def fault_at(log: MemoryLog, offset: int) -> FaultCode:
    fault = log.image.intents.unusable.fault_at(offset)
    assert fault is not None
    return fault.code


def without_position(image: Image) -> Image:
    return image._replace(offset=0, time=0, ignored=0)


def test_a_founded_log_knows_every_schema_and_the_keys_of_the_mesh() -> None:
    image = MemoryLog().image
    assert image.offset == FOUNDATION_RECORDS - 1
    assert dict(image.schemas) == {
        number: avro.text_of(name) for name, number in SCHEMA_IDS.items()
    }
    assert image.identity.mesh == "paper"
    assert image.identity.root == key("root").public


def test_an_accepted_intent_takes_effect_at_the_offset_of_its_decision(log: MemoryLog) -> None:
    offset = undecided_publish(log)
    assert "east.users" not in log.image.catalog
    generation = log.accept(offset)
    assert log.image.catalog["east.users"].generation == generation
    assert offset not in log.image.intents.undecided


@pytest.mark.parametrize("verdict", [REFUSED, Quarantined("odd", "set aside")])
def test_a_refused_intent_has_no_effect_for_ever(
    log: MemoryLog, verdict: Rejected | Quarantined
) -> None:
    offset = undecided_publish(log)
    log.rule(offset, verdict)
    log.accept(offset)
    assert "east.users" not in log.image.catalog
    assert log.image.ignored == 1


def test_a_zombies_decision_is_a_counted_no_op(log: MemoryLog) -> None:
    zombie = log.epoch
    log.start_governor()
    offset = undecided_publish(log)
    before = log.image
    log.accept(offset, epoch=zombie)
    assert without_position(log.image) == without_position(before)
    assert log.image.ignored == 1
    log.accept(offset)
    assert "east.users" in log.image.catalog


def test_a_decision_under_an_epoch_that_never_began_is_a_counted_no_op(log: MemoryLog) -> None:
    offset = undecided_publish(log)
    log.accept(offset, epoch=log.epoch + 1)
    assert (log.image.ignored, offset in log.image.intents.undecided) == (1, True)


@pytest.mark.parametrize("epoch", [-1, 0, FOUNDATION_RECORDS])
def test_nothing_is_decided_before_a_governor_has_started(epoch: int) -> None:
    log = MemoryLog()
    offset = log.operator(intents.ClusterRegistered, **story.cluster("east"))
    log.accept(offset, epoch=epoch)
    assert not log.image.identity.clusters
    assert (log.image.epoch, log.image.ignored) == (-1, 1)
    assert offset in log.image.intents.undecided


def test_the_first_decision_on_an_offset_counts(log: MemoryLog) -> None:
    offset = undecided_publish(log)
    log.accept(offset)
    before = log.image
    log.rule(offset, REFUSED)
    log.accept(offset)
    assert log.image.catalog == before.catalog
    assert log.image.ignored == 2


@pytest.mark.parametrize("offset", [0, 10_000])
def test_a_decision_on_what_needs_none_is_a_counted_no_op(log: MemoryLog, offset: int) -> None:
    log.accept(offset)
    assert log.image.ignored == 1


def test_a_copied_start_does_not_unseat_the_governor(log: MemoryLog) -> None:
    """A copy keeps its valid signature, and anyone who may write to the log can append one."""
    log.put(log.records[log.epoch])
    assert (log.image.epoch, log.image.ignored) == (log.epoch, 1)
    log.accept(undecided_publish(log))
    assert "east.users" in log.image.catalog


@pytest.mark.parametrize("names", ["the one before", "a later offset", "none"])
def test_a_start_that_does_not_follow_the_latest_one_has_no_effect(
    log: MemoryLog, names: str
) -> None:
    first = log.epoch
    latest = log.start_governor()
    named = {"the one before": first, "a later offset": latest + 1, "none": -1}[names]
    start = log.make(GovernorStarted, "mesh", version="1", previous_epoch=named)
    beside = log.append(start, by="governor")
    assert (log.image.epoch, log.image.ignored) == (latest, 1)
    offset = undecided_publish(log)
    log.accept(offset, epoch=beside)
    assert "east.users" not in log.image.catalog
    log.accept(offset)
    assert "east.users" in log.image.catalog


def untrusted(signer: str) -> FaultCode:
    """Why what `signer` must not say counts for nothing; a stranger's record is not looked into."""
    return FaultCode.UNKNOWN_KEY if signer == "stranger" else FaultCode.FORGED


@pytest.mark.parametrize("impostor", ["east", "controller", "operator", "root", "stranger"])
def test_a_decision_needs_the_governors_key(log: MemoryLog, impostor: str) -> None:
    offset = undecided_publish(log)
    forged = log.accept(offset, by=impostor)
    assert "east.users" not in log.image.catalog
    assert fault_at(log, forged) is untrusted(impostor)
    if impostor != "stranger":
        assert log.verdict(forged) == Quarantined(
            FaultCode.FORGED, "IntentAccepted must be signed by the governor's key"
        )


@pytest.mark.parametrize("impostor", ["east", "controller", "operator", "root", "stranger"])
def test_a_governor_starts_under_the_governors_key_only(log: MemoryLog, impostor: str) -> None:
    forged = log.append(log.make(GovernorStarted, "mesh", version="1"), by=impostor)
    assert log.image.epoch == log.epoch
    assert fault_at(log, forged) is untrusted(impostor)


@pytest.mark.parametrize("impostor", ["west", "governor", "operator", "root", "stranger"])
def test_a_fact_needs_the_controllers_key(impostor: str) -> None:
    log = MemoryLog()
    story.published(log)
    asked = story.granted(log)
    access = log.image.access.requests[asked]
    event = log.make(
        facts.AclApplied,
        "mesh",
        subject=asked,
        cluster="west",
        generation=access.generation,
        bindings=[],
    )
    forged = log.append(event, by=impostor)
    assert log.image.access.requests[asked] == access
    assert fault_at(log, forged) is untrusted(impostor)
    log.append(event, by="controller")
    assert log.image.access.requests[asked].state == "ACTIVE"


@pytest.mark.parametrize("impostor", ["east", "controller", "operator", "stranger"])
def test_a_schema_is_introduced_by_root_or_governor_only(log: MemoryLog, impostor: str) -> None:
    event = introduction(99, "mesh.AccessRequested", '"string"')
    forged = log.append(event, by=impostor)
    assert 99 not in log.image.schemas
    assert fault_at(log, forged) is untrusted(impostor)


@pytest.mark.parametrize("signer", ["root", "governor"])
def test_a_schema_once_introduced_never_changes(log: MemoryLog, signer: str) -> None:
    text = avro.text_of("AccessRequested")
    log.append(introduction(99, "mesh.AccessRequested", text), by=signer)
    log.append(introduction(99, "mesh.AccessRequested", '"string"'), by=signer)
    assert log.image.schemas[99] == text


@pytest.mark.parametrize("signer", ["root", "operator", "governor", "stranger"])
def test_a_mesh_is_founded_once_and_by_its_root(signer: str) -> None:
    log = MemoryLog()
    usurper = key("usurper").public
    event = MeshFounded(
        meta=meta("mesh", "again", log.now),
        mesh="other",
        governance_cluster="west",
        operator_key=usurper,
        governor_key=usurper,
        controller_key=usurper,
    )
    forged = log.append(event, by=signer)
    assert log.image.identity == MemoryLog().image.identity
    assert fault_at(log, forged) is untrusted(signer)


def test_the_root_is_whoever_signed_the_first_schema() -> None:
    log = MemoryLog(founded=False, root="somebody")
    first = introduction(1, "mesh.SchemaIntroduced", avro.text_of("SchemaIntroduced"))
    log.append(first, by="somebody")
    log.append(introduction(2, "mesh.MeshFounded", avro.text_of("MeshFounded")), by="root")
    assert log.image.identity.root == key("somebody").public
    assert list(log.image.schemas) == [1]


def test_an_offset_is_folded_once(log: MemoryLog) -> None:
    entry_like = log.image.intents
    offset = undecided_publish(log)
    entry = log.image.intents.undecided[offset]
    assert entry_like != log.image.intents
    with pytest.raises(StateFaultError, match=f"offset {offset} was folded already"):
        apply(log.image, entry)


def test_gaps_between_offsets_are_no_fault(log: MemoryLog) -> None:
    offset = undecided_publish(log)
    entry = replace(log.image.intents.undecided[offset], offset=offset + 7)
    assert apply(log.image, entry).offset == offset + 7


def test_accepting_what_cannot_be_read_stops_the_replay_and_names_both_offsets(
    log: MemoryLog,
) -> None:
    garbage = log.put(replace(log.records[-1], value=b"?"))
    decision = log.accept(garbage)
    with pytest.raises(StateFaultError, match=f"offset {decision} accepts the record at {garbage}"):
        _ = log.image


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (intents.AccessGranted, {"product": "east.users", "request": "nobody"}),
        (intents.ProductUpdated, {"product": "east.nothing"}),
        (intents.LinkPaused, {"product": "east.users", "cluster": "west"}),
        (intents.LinkCreated, {"product": "east.users", "cluster": "west"}),
        (intents.KeyRevoked, {"domain": "east", "public_key": "none", "reason": "x"}),
        (intents.ApplicationRegistered, {"application": "nobody.app"}),
        (
            intents.AccessRequested,
            {"product": "east.users", "application": "west.app", "reason": "x"},
        ),
    ],
)
def test_accepting_the_impossible_stops_the_replay_and_names_both_offsets(
    log: MemoryLog, kind: type[Event], fields: dict[str, str]
) -> None:
    offset = log.say(kind, "east", **fields)
    decision = log.accept(offset)
    expected = f"offset {decision} accepts the {kind.type_name()} at {offset}"
    with pytest.raises(StateFaultError, match=expected):
        _ = log.image


def test_the_fold_does_not_judge_again(log: MemoryLog) -> None:
    """An old log keeps its meaning under new rules: what was accepted counts."""
    offset = log.say(intents.ProductPublished, "west", **story.product(sla=9, acknowledged=False))
    log.accept(offset)
    assert log.image.catalog["east.users"].sla == 9


def test_the_image_before_the_first_record_is_empty() -> None:
    assert (EMPTY.offset, EMPTY.epoch, len(EMPTY.intents.undecided)) == (-1, -1, 0)


def test_rows_touched_are_those_of_the_last_record(log: MemoryLog) -> None:
    log.accept(undecided_publish(log))
    assert log.image.touched == (("mesh.catalog", "east.users"),)
    log.start_governor()
    assert not log.image.touched
