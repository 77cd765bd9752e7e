"""What has failed by the log, of everything that is desired to run: cause and next step."""

from collections.abc import Iterator
from typing import Any

from projections.connectors import Connector
from projections.image import Image
from projections.links import Desired, Link
from projections.statements import Statement
from self_service.cli.times import stamp
from spark_streams.errors import RETRIABLE, WITHHELD

COLUMNS = ("kind", "name", "code", "since", "next", "reason")
_DESCRIBE = {
    "link": "sdm link describe",
    "statement": "sdm streaming sql describe",
    "connector": "sdm connect connector describe",
}


def failures(image: Image) -> list[dict[str, Any]]:
    """Every FAILED link, statement and connector, as lists show them."""
    return [
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


def _resources(image: Image) -> Iterator[tuple[str, Link | Statement | Connector]]:
    yield from (("link", one) for _, one in sorted(image.links.items()))
    yield from (("statement", one) for _, one in sorted(image.statements.items()))
    yield from (("connector", one) for _, one in sorted(image.connectors.items()))


def _next(kind: str, one: Link | Statement | Connector) -> str:
    """What ends the failure: time, a decision, or a person."""
    code = one.failure_code or ""
    if code in WITHHELD:
        return "goes on when it is granted or released"
    # Kafka Connect's tasks are started again whatever has failed
    again = code in RETRIABLE or isinstance(one, Connector)
    look = f"`{_DESCRIBE[kind]} {one.id}`"
    if again and one.desired is Desired.RUNNING:
        return f"is tried again; if it stays, {look} and docs/reference/codes.md"
    return f"{look}, then as docs/reference/codes.md says of {code}"
