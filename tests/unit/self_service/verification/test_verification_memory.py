"""What verification keeps of a log does not grow with the records between two decisions."""

import gc
from collections.abc import Callable, Iterator

import pytest

from mesh_events import intents
from mesh_events.record import Record
from projections.image import Image
from self_service.cli.verification import rejudging
from self_service.cli.verification.rejudging import MOST_IMAGES
from self_service.cli.verification.scope import Reread, Source
from self_service.cli.verification.verifier import Report, verify
from tests import sample_history as story
from tests.memory_log import MemoryLog, key


def verified(records: Iterator[Record], reread: Reread) -> Report:
    return verify(records, key("root").public, key("governor").public, source=Source(reread=reread))


MOST_BESIDE = 10
"""Images that are no kept ones: the basis, what is judged on it, the one that is being folded."""


def images() -> int:
    """How many images are in memory, without what nobody has any more."""
    gc.collect()
    return sum(isinstance(one, Image) for one in gc.get_objects())


def garbage(offset: int) -> Record:
    return Record(offset, 0, b"", b"x", {})


def reread_of(records: list[Record]) -> tuple[Reread, list[int]]:
    """Reads parts of the records again, and lists the offsets that were read."""
    seen: list[int] = []

    def between(first: int, last: int) -> Iterator[Record]:
        for one in records:
            if first <= one.offset <= last:
                seen.append(one.offset)
                yield one

    return between, seen


def test_the_images_kept_are_bounded_over_100_000_records_without_a_decision() -> None:
    log = MemoryLog()
    story.domains(log)
    start, counts = len(log.records), list[int]()

    def flood() -> Iterator[Record]:
        yield from log.records
        before = images()
        for number in range(100_000):
            if number % 25_000 == 24_999:
                counts.append(images() - before)
            yield garbage(start + number)

    report = verified(flood(), lambda _first, _last: [])
    assert report.undecided == 100_000
    assert max(counts) <= MOST_IMAGES + MOST_BESIDE


FILLS: dict[str, Callable[[MemoryLog], int]] = {
    "garbage": lambda log: log.put(garbage(0)),
    "intents": lambda log: log.put(log.records[-1]),
}


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_a_basis_that_is_no_longer_kept_is_folded_again(
    fill: Callable[[MemoryLog], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejudging, "MOST_IMAGES", 5)
    log = MemoryLog()
    story.domains(log)
    for name in ("one", "two", "three"):
        asked = log.say(intents.ApplicationRegistered, "east", application=f"east.{name}")
        for _ in range(20):
            fill(log)
        basis, follows = log.image.offset, log.image.last_decision
        for _ in range(20):
            fill(log)
        log.accept(asked, basis=basis, follows=follows)
    reread, seen = reread_of(log.records)
    report = verified(iter(log.records), reread)
    assert not report.findings
    assert not report.differing
    assert seen
    assert len(seen) == len(set(seen)), "no record is folded more than twice"


def test_a_basis_before_that_of_the_decision_in_front_is_a_finding() -> None:
    """No governor unlearns what it has folded."""
    log = MemoryLog()
    story.domains(log)
    asked = [
        log.say(intents.ApplicationRegistered, "east", application=f"east.{name}")
        for name in ("one", "two")
    ]
    basis = log.image.offset
    log.put(garbage(0))
    log.accept(asked[0])
    back = log.accept(asked[1], basis=basis)
    report = verified(iter(log.records), reread_of(log.records)[0])
    assert [(one.offset, one.code) for one in report.findings] == [(back, "bad_basis")]
