"""What has failed or is held by the log: flows, products' topics, domains, with the next step."""

from collections.abc import Iterator
from typing import Any

from mesh_events.facts import DriftKind
from mesh_events.meta import MESH_DOMAIN
from projections.connectors.state import Connector
from projections.drift import all_left
from projections.identity import Freeze, Quarantine
from projections.image import Image
from projections.links import Desired, Link
from projections.statements import Statement
from self_service.cli.framework.times import stamp
from spark_streams.errors import RETRIABLE, TABLE_FILLING, WITHHELD

COLUMNS = ("kind", "name", "code", "since", "next", "reason")
EMERGENCIES = ("domain", "measure", "until", "by", "next", "reason")
_DESCRIBE = {
    "link": "sdm link describe",
    "statement": "sdm streaming sql describe",
    "connector": "sdm connect connector describe",
}


def emergencies(image: Image, time: int) -> list[dict[str, Any]]:
    """The freezes in force at a time (ms, see `Image.ended_by`) and the quarantines, for lists."""
    found: list[Freeze | Quarantine] = [
        one for _, one in sorted(image.identity.freezes.items()) if one.holds_at(time)
    ]
    found += [one for _, one in sorted(image.identity.quarantines.items())]
    return [_emergency(one) for one in found]


def ending(command: str, domain: str) -> str:
    """The command that ends what is in force for a domain, or for every one: `thaw`, `release`."""
    whom = "--all" if domain == MESH_DOMAIN else domain
    return f"`sdm {command} {whom} --reason WHY --domain {MESH_DOMAIN}`"


def _emergency(one: Freeze | Quarantine) -> dict[str, Any]:
    frozen = isinstance(one, Freeze)
    return {
        "domain": one.domain,
        "measure": "frozen" if frozen else "quarantined",
        "until": stamp(one.until) if isinstance(one, Freeze) else None,
        "by": one.by,
        "next": f"end it with {ending('thaw' if frozen else 'release', one.domain)}",
        "reason": one.reason,
    }


def failures(image: Image) -> list[dict[str, Any]]:
    """Every FAILED link, statement and connector, and product without its topic, for lists."""
    return missing_topics(image) + [
        {
            "kind": kind,
            "name": one.id,
            "code": one.failure_code,
            "since": stamp(one.changed_at),
            "next": _next(kind, one),
            "reason": one.failure,
        }
        for kind, one in _resources(image)
        if one.state == "FAILED"
    ]


def missing_topics(image: Image, product: str | None = None) -> list[dict[str, Any]]:
    """The products, or the one, whose topic was deleted without a word on the log."""
    found = [
        (image.catalog.get(subject.removeprefix("product/")), left)
        for (_, subject, kind), left in sorted(all_left(image.drifts))
        if kind is DriftKind.TOPIC_MISSING
    ]
    return [
        {
            "kind": "product",
            "name": one.id,
            "code": DriftKind.TOPIC_MISSING.value,
            "since": stamp(left.since_time),
            "next": f"create {one.topic} again, then `sdm product update {one.id} "
            "--topic-replaced`; see docs/operating/drift.md",
            "reason": f"the topic {one.topic} does not exist on cluster {one.cluster}",
        }
        for one, left in found
        if one is not None and product in (None, one.id)
    ]


def _resources(image: Image) -> Iterator[tuple[str, Link | Statement | Connector]]:
    yield from (("link", one) for _, one in sorted(image.links.items()))
    yield from (("statement", one) for _, one in sorted(image.statements.items()))
    yield from (("connector", one) for _, one in sorted(image.connectors.items()))


def _next(kind: str, one: Link | Statement | Connector) -> str:
    """What ends the failure: time, a decision, or a person."""
    code = one.failure_code or ""
    if code == TABLE_FILLING:
        return "starts once the link has filled the copy"
    if code in WITHHELD:
        return "resumes once access is granted or the domain is released"
    # Kafka Connect's tasks are started again whatever has failed
    again = code in RETRIABLE or isinstance(one, Connector)
    look = f"`{_DESCRIBE[kind]} {one.id}`"
    if again and one.desired is Desired.RUNNING:
        return f"is retried; if the failure persists, see {look} and docs/reference/codes.md"
    return f"see {look}, and {code} in docs/reference/codes.md"
