"""`sdm trace`: one intent from its arrival to its last effect."""

from typing import Annotated, Any

import typer

from mesh_events.facts import LinkAdvanced
from mesh_events.meta import Kind
from self_service.cli import completion
from self_service.cli.context import Mesh
from self_service.cli.history import UNREADABLE, Step, consequences, conversation, find, steps
from self_service.cli.options import Shown, command, noun
from self_service.cli.output import Detail, Listing, show
from self_service.cli.times import span, stamp

app = noun("Traces.")

COLUMNS = ("offset", "after", "step", "type", "actor", "outcome", "detail")


@command(
    app,
    "trace",
    "sdm trace '#41'",
    "sdm trace 0199f3a2-7c1e",
    "sdm trace '#41' --conversation -o json",
)
def trace(
    shown: Shown,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of any event, a unique prefix, or #OFFSET.",
            autocompletion=completion.requests,
        ),
    ],
    whole: Annotated[
        bool,
        typer.Option("--conversation", help="All intents under the same correlation, not one."),
    ] = False,
    progress: Annotated[
        bool, typer.Option("--progress", help="Also the floors of a link's progress.")
    ] = False,
) -> None:
    """Follow an intent: its checks, the decision, the effects; durations are the log's time."""
    with Mesh().log() as reader:
        every = steps(reader.to_end())
    start = find(every, reference)
    found = conversation(every, start) if whole else consequences(every, start)
    path = [one for one in found if progress or one.type != LinkAdvanced.type_name()]
    items = [_item(one, path[0]) for one in path]
    show(Detail(_summary(start, path), {"steps": Listing(COLUMNS, items)}), shown.output)


def _summary(start: Step, path: list[Step]) -> dict[str, Any]:
    decided = next((one for one in path if one.offset == start.decided_at), None)
    effects = [one for one in path if one.kind == Kind.FACT.value and one.about is None]
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
        "last_effect_after": span(effects[-1].time - start.time) if effects else None,
    }


def _item(one: Step, first: Step) -> dict[str, Any]:
    return {
        "offset": one.offset,
        "time": stamp(one.time),
        "after_ms": one.time - first.time,
        "after": span(max(0, one.time - first.time)),
        "step": _step(one),
        "type": one.type,
        "id": one.id,
        "key": one.key,
        "actor": one.actor,
        "domain": one.domain,
        "about": one.about,
        "outcome": " ".join(filter(None, (one.outcome, one.code))),
        "detail": one.detail,
    }


def _step(one: Step) -> str:
    if one.kind == Kind.FACT.value:
        return "effect" if one.about is None else "check"
    return one.kind if one.kind != UNREADABLE else "record"
