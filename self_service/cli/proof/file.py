"""The file of a proof: JSON, read and written. Pure; `proof.check` judges what it holds.

It holds the record, the decision on it, those in front of it that its governor had not read yet,
and what shows who signed them: the start of the governor's epoch, the first record of the log,
whose signer is the root, and the records by which the root named the keys of the mesh's parts.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesh_events.integrity.checkpoint import SignedCheckpoint, read_checkpoint
from mesh_events.record import Record
from self_service.cli.framework.exits import FindingError

FORMAT = "streaming-data-mesh proof v3"


@dataclass(frozen=True, slots=True)
class Placed:
    """A record, the number of its leaf, and the hashes on its way to the root."""

    record: Record
    index: int
    path: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Legible:
    """A record and the one that introduced its schema, None if it names no introduced one."""

    placed: Placed
    schema: Placed | None

    @property
    def offset(self) -> int:
        """Where the record stands on the log."""
        return self.placed.record.offset


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision on a record, and the start of the governor under whose epoch it was made.

    before: the decisions in front of it, in their order: from the one that it follows back to the
        last one up to its `basis`, which its governor had read, or to the first of the epoch
    """

    decision: Legible
    start: Legible
    before: Sequence[Legible] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """Who is who: the log's first record, and the root's records that name the mesh's keys."""

    first: Placed
    keys: Sequence[Legible]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the file holds.

    decided: None where the record was undecided, or needs no decision
    """

    subject: Legible
    decided: Decided | None
    authority: Authority
    checkpoint: SignedCheckpoint

    def places(self) -> list[Placed]:
        """Every record of it."""
        legible = [self.subject]
        if self.decided is not None:
            legible += [self.decided.decision, self.decided.start, *self.decided.before]
        legible += self.authority.keys
        found: list[Placed | None] = [self.authority.first]
        for one in legible:
            found += [one.placed, one.schema]
        return [one for one in found if one is not None]


def written(proof: Proof) -> str:
    """The proof as the text of its file."""
    decided, authority = proof.decided, proof.authority
    document: dict[str, Any] = {
        "format": FORMAT,
        **_legible(proof.subject),
        "decision": _decided(decided) if decided else None,
        "authority": {
            "first": _placed(authority.first),
            "keys": [_legible(one) for one in authority.keys],
        },
        "checkpoint": str(proof.checkpoint.note),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read(text: str) -> Proof:
    """The proof in a file's text; raises FindingError for anything that is none."""
    try:
        return _File.model_validate_json(text).proof()
    except ValidationError as error:
        places = ", ".join(".".join(map(str, one["loc"])) or "file" for one in error.errors()[:3])
        raise FindingError(f"this is not a proof of {FORMAT!r}: see {places}") from error
    except ValueError as error:
        raise FindingError(f"this is not a proof: {error}") from error


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Number = Annotated[int, Field(ge=0, lt=2**63)]
"""As Kafka counts: a record's place, and its time."""


class _Record(_Strict):
    offset: Number
    time: Number
    key: str | None
    value: str | None
    headers: dict[str, str | None]


class _Place(_Strict):
    record: _Record
    index: Number
    path: list[str]

    def placed(self) -> Placed:
        one = self.record
        headers = {name: _bytes(value) for name, value in one.headers.items()}
        record = Record(one.offset, one.time, _bytes(one.key), _bytes(one.value), headers)
        return Placed(record, self.index, [_bytes(step) or b"" for step in self.path])


class _Legible(_Place):
    introduction: _Place | None

    def legible(self) -> Legible:
        return Legible(self.placed(), self.introduction.placed() if self.introduction else None)


class _Decided(_Legible):
    start: _Legible
    before: list[_Legible]

    def decided(self) -> Decided:
        before = [one.legible() for one in self.before]
        return Decided(self.legible(), self.start.legible(), before)


class _Authority(_Strict):
    first: _Place
    keys: list[_Legible]


class _File(_Legible):
    format: Literal["streaming-data-mesh proof v3"]
    decision: _Decided | None
    authority: _Authority
    checkpoint: str

    def proof(self) -> Proof:
        decided = self.decision.decided() if self.decision else None
        keys = [key.legible() for key in self.authority.keys]
        authority = Authority(self.authority.first.placed(), keys)
        return Proof(self.legible(), decided, authority, read_checkpoint(self.checkpoint))


def _decided(decided: Decided) -> dict[str, Any]:
    return {
        **_legible(decided.decision),
        "start": _legible(decided.start),
        "before": [_legible(one) for one in decided.before],
    }


def _legible(one: Legible) -> dict[str, Any]:
    return {**_placed(one.placed), "introduction": _placed(one.schema) if one.schema else None}


def _placed(one: Placed) -> dict[str, Any]:
    record = one.record
    return {
        "record": {
            "offset": record.offset,
            "time": record.time,
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": {name: _base64(record.headers[name]) for name in sorted(record.headers)},
        },
        "index": one.index,
        "path": [_base64(step) for step in one.path],
    }


def _base64(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode()


def _bytes(text: str | None) -> bytes | None:
    """Raises ValueError for what is not base64, or spelt in a second way."""
    if text is None:
        return None
    raw = base64.b64decode(text, validate=True)
    if _base64(raw) != text:
        raise ValueError("base64 is not in its canonical form")
    return raw
