"""What the worker measures: counted once, only while it governs, in Prometheus' format."""

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mesh_events import intents
from mesh_events.decisions import IntentRejected
from mesh_events.facts import CheckFailed, EffectFailed, Fact, LinkFailed
from processors.worker.metrics import FAILURES, Metrics, gauges
from projections.fold import apply
from projections.image import EMPTY, Image
from projections.replay import walk
from tests import sample_history as story
from tests.memory_log import MemoryLog, Never


class Ticks:
    """A monotonic clock that goes on by 0.2 s with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.2
        return self.now


def folded(log: MemoryLog, metrics: Metrics, *, governs: bool = True) -> Image:
    before = EMPTY
    for entry, after in walk(log.records):
        metrics.folded(entry, before, after, governs=governs)
        before = after
    return before


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """(name, values of the labels) -> value."""
    found = text_string_to_metric_families(metrics.text().decode())
    return {
        (one.name, tuple(one.labels.values())): one.value
        for family in found
        for one in family.samples
    }


def story_with_refusals() -> MemoryLog:
    log = MemoryLog()
    story.domains(log)
    log.say(intents.ApplicationRegistered, "east", application="west.foreign")
    log.say(intents.ApplicationRegistered, "east", application="west.another")
    log.govern()
    return log


def test_each_decision_is_measured_once_and_each_refusal_counted() -> None:
    log, metrics = story_with_refusals(), Metrics(Ticks())
    image = folded(log, metrics)
    found = samples(metrics)
    decisions = sum(1 for entry, _ in walk(log.records) if hasattr(entry.event, "follows"))
    assert found["mesh_decision_latency_seconds_count", ()] == decisions
    assert found["mesh_failures_total", ("IntentRejected",)] == 2
    assert not image.intents.undecided


def test_every_kind_of_failure_is_there_from_the_start() -> None:
    found = samples(Metrics())
    assert {found["mesh_failures_total", (kind.type_name(),)] for kind in FAILURES} == {0}


def test_what_was_folded_without_governing_is_not_counted() -> None:
    metrics = Metrics()
    folded(story_with_refusals(), metrics, governs=False)
    found = samples(metrics)
    assert found["mesh_decision_latency_seconds_count", ()] == 0
    assert found["mesh_failures_total", ("IntentRejected",)] == 0


def test_the_latency_of_an_intent_that_waited_is_the_time_since_it_was_read() -> None:
    log, ticks = MemoryLog(), Ticks()
    story.domains(log)
    metrics = Metrics(ticks)
    image = folded(log, metrics)
    log.say(intents.ApplicationRegistered, "east", application="east.late")
    before = len(log.records) - 1
    log.govern()
    for entry, after in walk(log.records[before:], image):
        metrics.folded(entry, image, after, governs=True)
        image = after
        ticks.now += 20
    found = samples(metrics)
    assert (
        found["mesh_decision_latency_seconds_bucket", ("10.0",)] + 1
        == (found["mesh_decision_latency_seconds_bucket", ("30.0",)])
    )


def test_gauges_are_those_of_the_image_at_each_scrape() -> None:
    log = MemoryLog()
    story.domains(log)
    log.say(intents.ApplicationRegistered, "east", application="east.one")
    image = log.image._replace(skew=93_600_000, worker_skew=-1500)
    metrics = Metrics()
    metrics.observe(lambda: gauges(image, governs=True, end=image.offset + 6))
    found = samples(metrics)
    assert found["mesh_undecided_intents", ()] == 1
    assert found["mesh_fold_lag_records", ()] == 5
    assert found["mesh_clock_skew_seconds", ("broker",)] == 93_600
    assert found["mesh_clock_skew_seconds", ("worker",)] == -1.5
    assert found["mesh_clocks_disagree", ()] == 1
    image = image._replace(skew=0, worker_skew=0)
    assert samples(metrics)["mesh_clocks_disagree", ()] == 0


def test_the_lag_is_left_out_where_nobody_asked_for_the_end_of_the_log() -> None:
    metrics = Metrics()
    metrics.observe(lambda: gauges(EMPTY, governs=False, end=None))
    assert ("mesh_fold_lag_records", ()) not in samples(metrics)


def test_nothing_is_kept_of_what_is_decided() -> None:
    log, metrics = story_with_refusals(), Metrics()
    image = folded(log, metrics)
    offset = log.say(intents.ApplicationRegistered, "east", application="east.open")
    entry = next(one for one, _ in walk(log.records[offset:], image))
    metrics.folded(entry, image, apply(image, entry), governs=True)
    assert set(metrics._read) == {offset}
    metrics.forget()
    assert not metrics._read


def test_an_intent_that_a_range_sets_aside_is_measured_no_longer() -> None:
    """Another version did not know it; this one would keep its offset for ever."""
    log, metrics = MemoryLog(), Metrics(Ticks())
    story.domains(log)
    log.put(replace(log.records[-1], value=b"garbage"))
    log.say(intents.ApplicationRegistered, "east", application="east.new")
    log.put(replace(log.records[-1], value=b"garbage"))
    (run,) = log.image.intents.unusable.in_order()
    log.set_aside(run._replace(exceptions=()))
    folded(log, metrics)
    assert not metrics._read
    assert samples(metrics)["mesh_failures_total", ("RecordsSetAside",)] == 1


def linked() -> MemoryLog:
    """West reads a product of east's by a link."""
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    log.govern()
    return log


def failure(kind: type[Fact], log: MemoryLog) -> dict[str, Any]:
    """The fields of a failure that counts."""
    told = {"code": "query_failed", "reason": "it ended"}
    match kind.__name__:
        case "LinkFailed":
            (link,) = log.image.links.values()
            return told | {"link": link.id, "generation": link.generation, "retriable": True}
        case "CheckFailed":
            (offset,) = log.image.intents.undecided
            return told | {"offset": offset, "check": "schema_registered"}
    assert kind is EffectFailed
    fields = {"subject": "east.users", "effect": "carry_schemas", "cluster": "east"}
    return fields | {"generation": 1, "reason": "it does not answer"}


@pytest.mark.parametrize("kind", [LinkFailed, EffectFailed, CheckFailed])
def test_a_failure_counts_once_and_only_as_its_controller_reports_it(kind: type[Fact]) -> None:
    """Whoever may write to the log may append a copy of it, or sign one."""
    log = linked()
    if kind is CheckFailed:
        log.checks = {"schema_registered": Never()}
        log.say(
            intents.ProductPublished,
            "east",
            **{**story.product(), "product": "east.new", "topic": "east.new"},
        )
    fields = failure(kind, log)
    log.append(log.make(kind, "mesh", **fields), by="west")
    metrics = Metrics()
    folded(log, metrics)
    assert samples(metrics)["mesh_failures_total", (kind.type_name(),)] == 0

    log.report(kind, **fields)
    log.put(log.records[-1])
    metrics = Metrics()
    folded(log, metrics)
    assert samples(metrics)["mesh_failures_total", (kind.type_name(),)] == 1


def test_an_older_failure_that_is_copied_counts_no_more() -> None:
    log = linked()
    fields = failure(LinkFailed, log)
    log.report(LinkFailed, **fields)
    failed = log.records[-1]
    log.report(LinkFailed, **fields | {"reason": "another one"})
    log.put(failed)
    metrics = Metrics()
    folded(log, metrics)
    assert samples(metrics)["mesh_failures_total", ("LinkFailed",)] == 2


def test_a_decision_counts_once_and_only_as_the_governor_decides() -> None:
    log = story_with_refusals()
    rejected = log.records[-1]
    (entry,) = [one for one, _ in walk(log.records) if one.offset == rejected.offset]
    assert isinstance(entry.event, IntentRejected)
    log.put(rejected)
    log.append(entry.event.model_copy(update={"follows": log.image.last_decision}), by="west")
    metrics = Metrics()
    folded(log, metrics)
    assert samples(metrics)["mesh_failures_total", ("IntentRejected",)] == 2
