"""What must be true of a log, told without the code that makes it true."""

import base64
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import requests
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.plain_reader import Plain

DECISIONS = ("IntentAccepted", "IntentRejected", "IntentQuarantined", "RecordsSetAside")
_SIGNED_FIRST = b"streaming-data-mesh record v1\x00"


@dataclass
class Told:
    """The log as read by a few plain rules.

    `decided` maps the offset of a record to the decision that counts; `written` counts all
    decisions on it; `void` are those that came under an old epoch or a second time.
    """

    epoch: int = -1
    intents: dict[int, dict[str, Any]] = field(default_factory=dict)
    decided: dict[int, dict[str, Any]] = field(default_factory=dict)
    written: Counter[int] = field(default_factory=Counter)
    void: list[dict[str, Any]] = field(default_factory=list)

    def accepted(self, kind: str) -> list[dict[str, Any]]:
        """Accepted intents of a kind, in the order of their decisions."""
        return [
            self.intents[offset]
            for offset, decision in self.decided.items()
            if decision["type"] == "IntentAccepted" and self.intents[offset]["type"] == kind
        ]

    def entitled(self) -> set[tuple[str, str]]:
        """(application, topic) of every grant in force, for domains that share a cluster."""
        topics = {each["product"]: each["topic"] for each in self.accepted("ProductPublished")}
        requests = {each["meta"]["id"]: each for each in self.accepted("AccessRequested")}
        granted = {each["request"] for each in self.accepted("AccessGranted")}
        granted -= {each["request"] for each in self.accepted("AccessRevoked")}
        asked = (requests[request] for request in granted)
        return {(each["application"], topics[each["product"]]) for each in asked}

    def begin(self, start: dict[str, Any], offset: int, starts: set[str]) -> None:
        """A governor's start: it counts once, and behind the one that it names."""
        is_next = start.get("previous_epoch") in (None, self.epoch)
        if is_next and start["meta"]["id"] not in starts:
            starts.add(start["meta"]["id"])
            self.epoch = offset

    def take(self, decision: dict[str, Any]) -> None:
        """A decision under the governor's key: on one record, or on those of a range."""
        first, last = decision["offset"], decision.get("last", decision["offset"])
        spared = decision.get("exceptions", ())
        counts = decision["epoch"] == self.epoch
        single = first == last
        open_now = [one for one in self.intents if one not in self.decided]
        about = [first] if single else [one for one in open_now if first <= one <= last]
        for offset in about:
            if offset in spared:
                continue
            self.written[offset] += 1
            if counts and offset not in self.decided:
                self.decided[offset] = decision
            else:
                self.void.append(decision)


def told(plain: Plain) -> Told:
    """Read the whole log."""
    found, starts = Told(), set[str]()
    for message in plain.messages("mesh.governance"):
        event = plain.decoded(message.value())
        if event["type"] == "GovernorStarted":
            found.begin(event, message.offset(), starts)
        elif event["type"] in DECISIONS:
            found.take(event)
        else:
            found.intents[message.offset()] = event
    return found


def record_of(plain: Plain, message: Any, root: str) -> dict[str, Any]:
    """A record for `tests.oracle.oracle.tell`: {offset, time, signer, type, fields}.

    `signer` is None where the signature is not one for the mesh of this root key, `type` where the
    value cannot be read.
    """
    key, value = message.key() or b"", message.value()
    found = {"offset": message.offset(), "time": message.timestamp()[1]}
    datum: dict[str, Any] = {"type": None}
    # whatever stands there: a reader must live with it
    with suppress(ValueError, LookupError, TypeError, EOFError, struct.error):
        datum = _decoded(plain, value) or datum
    headers = dict(message.headers() or [])
    kind = datum.pop("type")
    return {**found, "signer": signer_of(headers, key, value, root), "type": kind, "fields": datum}


def _decoded(plain: Plain, value: bytes) -> dict[str, Any] | None:
    try:
        return plain.decoded(value)
    except requests.HTTPError as error:
        if error.response.status_code != requests.codes.not_found:
            raise
        return None


def signer_of(
    headers: Mapping[str, bytes], key: bytes, value: bytes | None, root: str
) -> str | None:
    """The public key whose signature the record carries, as the wire format says."""
    try:
        name = headers["mesh_key"].decode("ascii")
        public = Ed25519PublicKey.from_public_bytes(_public(name))
        length = len(key).to_bytes(4, "big")
        said = _SIGNED_FIRST + _public(root) + length + key + (value or b"")
        public.verify(headers["mesh_signature"], said)
    except (KeyError, ValueError, TypeError, AttributeError, InvalidSignature):
        return None
    return name


def _public(name: str) -> bytes:
    return base64.urlsafe_b64decode(name + "=")


def history(records: Iterable[Mapping[str, Any]], governor: str) -> Told:
    """The same as `told`, of records that may be anything: only the governor's key decides."""
    found, starts = Told(), set[str]()
    for record in records:
        kind, fields, offset = record["type"], record["fields"], record["offset"]
        governs = record["signer"] == governor
        if kind == "GovernorStarted" and governs:
            found.begin(fields, offset, starts)
        elif kind in DECISIONS and governs:
            found.take({"type": kind, **fields})
        else:
            found.intents[offset] = {"type": kind, **fields}
    return found


def not_taken_once(found: Told, said: Mapping[int, str]) -> list[str]:
    """What is wrong with acknowledged intents, [] where nothing is.

    Args:
        found: the history.
        said: offset that Kafka acknowledged -> id of the intent.
    """
    wrong = []
    for offset, identity in said.items():
        stands = found.intents.get(offset, {}).get("meta", {}).get("id")
        if stands != identity:
            wrong.append(f"acknowledged {identity} at {offset}, there stands {stands}")
        elif offset not in found.decided:
            wrong.append(f"{identity} at {offset} is undecided")
    effects = Counter(
        found.intents[offset]["meta"]["id"]
        for offset, decision in found.decided.items()
        if decision["type"] == "IntentAccepted"
    )
    wrong += [f"{identity} was accepted {n} times" for identity, n in effects.items() if n > 1]
    return wrong


def entitled(said: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """(cluster, application, topic) of every grant in force, as `tests.oracle.oracle.tell` has it.

    A copy carries its source's name, which begins with the owner's domain.
    """
    products = said["products"]
    return {
        (each["cluster"], each["application"], products[each["product"]]["topic"])
        for each in said["accesses"].values()
        if each["state"] in ("GRANTED", "ACTIVE")
    }


def unsettled(said: Mapping[str, Any]) -> list[str]:
    """Requests whose rights are still to be applied or removed; undecided offsets."""
    waiting = [
        f"{name} is {each['state']}"
        for name, each in said["accesses"].items()
        if each["state"] in ("GRANTED", "REVOKING")
    ]
    return [*waiting, *(f"offset {offset} is undecided" for offset in said["undecided"])]
