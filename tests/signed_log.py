"""A log in memory with checkpoints over it, as a controller would have signed them."""

from collections.abc import Sequence
from dataclasses import replace

from mesh_events import intents
from mesh_events.codec import has_valid_signature
from mesh_events.integrity.checkpoint import SignedCheckpoint, origin_of
from mesh_events.record import Record
from projections.integrity.chain import chained
from projections.integrity.log_verifier import LogVerifier
from projections.integrity.trusted_prefix import TrustedCheckpoints
from tests import sample_history as story
from tests.memory_log import MemoryLog, key, resigned

ORIGIN = origin_of("paper")


def busy_log() -> list[Record]:
    """A story with records that must not be believed, and an offset that holds none."""
    log = MemoryLog()
    story.published(log)
    last = log.records[-1]
    # a decision, copied with a signature that does not verify: believed, it would count
    offset = log.say(intents.ApplicationRegistered, "east", application="east.forged")
    log.accept(offset)
    forged = log.records.pop()
    log.put(replace(forged, headers={**forged.headers, "mesh_signature": bytes(64)}))
    log.govern()
    log.put(resigned(last, key("stranger")))
    log.put(replace(last, value=None, headers={}))
    story.granted(log)
    story.settle(log)
    return gapped(log.records, len(log.records) - 5)


def gapped(records: Sequence[Record], after: int) -> list[Record]:
    """The same with one offset left out behind a number of records, as a marker leaves it."""
    return [
        replace(one, offset=one.offset + 1) if at >= after else one
        for at, one in enumerate(records)
    ]


def signed_over(
    records: Sequence[Record], every: int, *, by: str = "controller"
) -> list[SignedCheckpoint]:
    """A checkpoint over each `every` records, and one over the rest."""
    verifier, found = LogVerifier(), list[SignedCheckpoint]()
    for record in records:
        verifier.take(record, verified=has_valid_signature(record, key("root").public))
    while verifier.unconfirmed:
        body = verifier.head(ORIGIN, every)
        verifier.confirm(body)
        found.append(body.sign(key(by)))
    return found


def trusting(checkpoints: Sequence[SignedCheckpoint], root: str = "root") -> TrustedCheckpoints:
    """What vouches for a log."""
    return TrustedCheckpoints(chained(ORIGIN, checkpoints).path(), key(root).public)
