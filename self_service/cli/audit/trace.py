"""`sdm trace`: a conversation from its first intent to its last effect."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mesh_events.facts import LinkAdvanced
from mesh_events.meta import Kind
from projections.clocks import if_wrong
from self_service.cli.audit.history import UNREADABLE, Step, conversation, effects, find, steps
from self_service.cli.framework import completion
from self_service.cli.framework.options import Shown, command, noun
from self_service.cli.framework.output import Detail, Format, Listing, note_appended, show
from self_service.cli.framework.times import present, span, stamp
from self_service.cli.mesh.context import Mesh

app = noun("Traces.")

COLUMNS = ("offset", "after", "took", "type", "domain", "actor", "outcome", "detail")


@command(
    app,
    "trace",
    "sdm trace 41",
    "sdm trace 0199f3a2-7c1e",
    "sdm trace 43 --alone -o json",
)
def trace(
    shown: Shown,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of a request, an intent or any event, a unique prefix of it, or an offset.",
            autocompletion=completion.requests,
        ),
    ],
    alone: Annotated[
        bool, typer.Option("--alone", help="Only this intent and the records that it caused.")
    ] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Also the progress records of links.")
    ] = False,
) -> None:
    """Trace a request: its decision, grant, ACLs, copy, revocation and purge.

    AFTER counts from the first record, TOOK from the previous one, both by the mesh's clock.
    """
    mesh = Mesh()
    with mesh.log() as reader:
        every = mesh.fold(reader, steps)
    start = find(every, reference)
    found = effects(every, start) if alone else conversation(every, start)
    path = [
        one for one in found if progress or one is start or one.type != LinkAdvanced.type_name()
    ]
    told = items(path, present(every[-1].time))
    parts = {"steps": Listing(COLUMNS, told)}
    show(Detail(_summary(start, path), parts), shown.output)
    if shown.output is Format.TABLE:
        note_appended(told)


def _summary(start: Step, path: list[Step]) -> dict[str, Any]:
    decided = next((one for one in path if one.offset == start.decided_at), None)
    return {
        "type": start.type,
        "about": start.key,
        "id": start.id,
        "correlation": start.correlation,
        "offset": start.offset,
        "time": stamp(start.time),
        "by": f"{start.actor} for {start.domain}" if start.actor else None,
        "outcome": " ".join(filter(None, (start.outcome, start.code))),
        "decided_after": None if decided is None else span(decided.time - start.time),
        "began": stamp(path[0].time),
        "last": stamp(path[-1].time),
        "total": span(_between(path[0], path[-1])),
    }


def items(path: Sequence[Step], now: int) -> list[dict[str, Any]]:
    """The steps as tables show them.

    `after` counts from the first, `took` from the one before; `age_ms` is how long before `now`
    (ms) a check looked at the world. All three are told by the mesh's clock.
    """
    before = [path[0], *path]
    return [_item(one, path[0], previous, now) for one, previous in zip(path, before, strict=False)]


def _item(one: Step, first: Step, previous: Step, now: int) -> dict[str, Any]:
    age = max(0, now - one.time) if _step(one) == "check" else None
    # a time that another reader finds again, and not one that differs at each look
    seen = "" if age is None else f", seen {stamp(one.time)}"
    return {
        "offset": one.offset,
        "time": stamp(one.time),
        "appended": stamp(if_wrong(one.appended, one.time)),
        "after_ms": _between(first, one),
        "after": span(_between(first, one)),
        "took_ms": _between(previous, one),
        "took": span(_between(previous, one)),
        "step": _step(one),
        "type": one.type,
        "id": one.id,
        "key": one.key,
        "actor": one.actor,
        "domain": one.domain,
        "about": one.about,
        "outcome": " ".join(filter(None, (one.outcome, one.code))),
        "detail": one.detail + seen,
        "age_ms": age,
    }


def _between(first: Step, last: Step) -> int:
    """Ms from one step to a later one."""
    return max(0, last.time - first.time)


def _step(one: Step) -> str:
    if one.kind == Kind.FACT.value:
        return "effect" if one.about is None else "check"
    return one.kind if one.kind != UNREADABLE else "record"
