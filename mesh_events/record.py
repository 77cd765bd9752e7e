"""A record of the governance log: as Kafka holds it, and as it was understood."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mesh_events.meta import Event

# names of the Kafka headers; the table in docs/reference/wire-format.md explains each
CE_ID = "ce_id"
CE_TYPE = "ce_type"
CE_SOURCE = "ce_source"
CE_SPECVERSION = "ce_specversion"
SIGNER = "mesh_key"
SIGNATURE = "mesh_signature"


@dataclass(frozen=True, slots=True)
class Record:
    """What stands on the log at one offset, byte by byte.

    `time` is Kafka's append time in ms since the epoch; `headers` keeps the last value of each
    name; `value` is None for a tombstone.
    """

    offset: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes | None]


class FaultCode(StrEnum):
    """Why a record on the log cannot be understood or trusted: the quarantine codes."""

    GARBAGE = "garbage"
    TOO_LARGE = "too_large"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNKNOWN_TYPE = "unknown_type"
    INVALID_EVENT = "invalid_event"
    HEADER_MISSING = "header_missing"
    HEADER_MISMATCH = "header_mismatch"
    KEY_MISMATCH = "key_mismatch"
    UNSIGNED = "unsigned"
    BAD_SIGNATURE = "bad_signature"
    WEAK_KEY = "weak_key"
    UNKNOWN_KEY = "unknown_key"
    REVOKED_KEY = "revoked_key"
    FORGED = "forged"
    INVALID_PROOF = "invalid_proof"
    INVALID_ID = "invalid_id"
    DUPLICATE_INTENT = "duplicate_intent"
    STALE_INTENT = "stale_intent"
    TOO_MANY_UNDECIDED = "too_many_undecided"
    TOO_MANY_IDS = "too_many_ids"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a record counts for nothing: a quarantine code and a sentence."""

    code: FaultCode
    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as understood: who signed it and what it says, or why it says nothing.

    Exactly one of `event` and `fault` is set. `signer` is the public key whose signature was
    found valid (or, where verification was left out, the key that the record names).
    """

    offset: int
    time: int
    signer: str | None
    event: Event | None
    fault: Fault | None
