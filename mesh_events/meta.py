"""What every event says about itself, and how its identity is made."""

import os
import re
import time
import uuid
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mesh_events.errors import RefusedError

MESH_DOMAIN = "mesh"
"""The reserved domain name under which the operator, the governor and the controllers speak."""

_ACTOR = re.compile(r"[A-Za-z0-9._@:+/-]{1,200}")

_DERIVED = uuid.UUID("6f0d8f0e-7a55-5b0c-9a3e-5d2f1c6b4a10")  # any fixed namespace would do


class Kind(StrEnum):
    """Who speaks: a domain claims, the governor decides, a controller reports, the root founds."""

    INTENT = "intent"
    DECISION = "decision"
    FACT = "fact"
    FOUNDATION = "foundation"


class Frozen(BaseModel):
    """A value: never changed, compared by content, with no field that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Meta(Frozen):
    """Identity, origin and cause of an event."""

    id: str = Field(description="Identity of the event: UUIDv7 of an intent, UUIDv5 otherwise")
    time: datetime = Field(
        description="When the emitter made the event, UTC; the log's own time orders"
    )
    actor: str = Field(description="Id of the person or service that acts; never a personal name")
    domain: str = Field(
        description="The domain that speaks; `mesh` for operator, governor and controllers"
    )
    correlation: str = Field(description="Id shared by all events of one conversation")
    causation: str | None = Field(default=None, description="Id of the event that caused this one")
    producer: str = Field(default="", description="Software that wrote the event, as name/version")


LONGEST_REASON = 2000
"""Characters of a reason that the mesh writes: it may quote what is as long as a record."""


def spelt(text: str) -> str:
    """The text with each half of a surrogate pair as its escape, such as a JSON text may name.

    Neither UTF-8 nor Avro can hold one.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def shortened(text: str) -> str:
    """A text of others for the log: spelt, and cut to `LONGEST_REASON` characters."""
    # an escape is longer than what it stands for
    found = spelt(text[: LONGEST_REASON + 1])
    if len(found) > LONGEST_REASON:
        return f"{found[:LONGEST_REASON]}…"
    return found


def milliseconds(moment: datetime) -> int:
    """A point in time as the log counts it: ms since the epoch."""
    return round(moment.timestamp() * 1000)


class Event(Frozen):
    """A record of the governance log: `meta` and the event's own fields."""

    kind: ClassVar[Kind]
    meta: Meta

    @property
    def key(self) -> str:
        """The Kafka key, `<kind of thing>/<domain>/<name>`: what this event is about."""
        raise NotImplementedError

    @classmethod
    def type_name(cls) -> str:
        """The event's name: the class, the Avro record and the file in `schemas/avro`."""
        return cls.__name__

    @classmethod
    @cache
    def cloud_event_type(cls) -> str:
        """The `ce_type` header, for example `mesh.AccessRequested.intent`."""
        return f"mesh.{cls.type_name()}.{cls.kind}"


def require_actor(actor: str, domain: str) -> None:
    """Refuse what cannot be `meta.actor` of an intent of `domain`.

    Only letters that look like no others are allowed, so that nobody is taken for somebody else.

    Raises RefusedError with `invalid_actor`, or with `reserved_actor` for a part of the mesh.
    """
    if not _ACTOR.fullmatch(actor):
        raise RefusedError(
            "invalid_actor",
            f"{actor[:80]!a} cannot be meta.actor: write an id of 1 to 200 letters of A-Z, a-z, "
            "0-9, '.', '_', '@', ':', '+', '/' and '-'",
        )
    if domain != MESH_DOMAIN and f"{actor}.".lower().startswith(f"{MESH_DOMAIN}."):
        raise RefusedError(
            "reserved_actor",
            f"{actor!r} names a part of the mesh: say who or what of {domain} speaks",
        )


def new_id() -> str:
    """A fresh UUIDv7 (RFC 9562): 48 bits of Unix time in milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | int.from_bytes(os.urandom(10), "big")
    value = (value & ~(0xF << 76)) | (0x7 << 76)
    value = (value & ~(0x3 << 62)) | (0x2 << 62)
    return str(uuid.UUID(int=value))


def derived_id(cause: str, step: str, generation: int) -> str:
    """The id of what follows from `cause` at `step`: the same inputs give the same event."""
    return str(uuid.uuid5(_DERIVED, f"{cause}/{step}/{generation}"))


def now() -> datetime:
    """The wall clock in UTC, cut to the milliseconds that Avro's timestamp-millis can hold."""
    current = datetime.now(UTC)
    return current.replace(microsecond=current.microsecond // 1000 * 1000)
