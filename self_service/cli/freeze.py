"""`sdm freeze` and `sdm thaw`: for a time nothing counts that a domain says."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from mesh_events.intents import DomainFrozen, DomainThawed
from mesh_events.meta import MESH_DOMAIN
from self_service.cli import completion
from self_service.cli.context import Mesh
from self_service.cli.options import Reason, Saying, command, noun
from self_service.cli.output import Detail, note, show
from self_service.cli.times import parse_duration, stamp

app = noun("Emergencies.")
Domain = Annotated[
    str,
    typer.Argument(help="The domain; without it, all of them.", autocompletion=completion.domains),
]


@command(
    app,
    "freeze",
    "sdm freeze west --for 2h --reason 'its key was seen elsewhere' --domain mesh",
    "sdm freeze --for 1d --reason 'restoring the clusters' --domain mesh",
)
def freeze(
    saying: Saying,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For so long, such as 90m or 2h30m.")
    ],
    reason: Reason,
    name: Domain = MESH_DOMAIN,
) -> None:
    """Let nothing count that a domain says, for a time; what is in force stays in force.

    Who reads goes on reading: revoke grants, or remove links, to stop that as well.
    """
    from self_service.cli.saying import say

    end = datetime.now(UTC) + parse_duration(duration)
    mesh = Mesh()
    said = say(
        mesh,
        mesh.speaker(saying.domain),
        saying,
        lambda meta: DomainFrozen(meta=meta, domain=name, until=end, reason=reason),
    )
    note(f"end it before its time with `sdm thaw {'' if name == MESH_DOMAIN else name}`".rstrip())
    show(Detail({**said.fields(), "domain": name, "until": stamp(end)}), saying.output)


@command(app, "thaw", "sdm thaw west --reason 'new key registered' --domain mesh")
def thaw(saying: Saying, reason: Reason, name: Domain = MESH_DOMAIN) -> None:
    """End a freeze before its time."""
    from self_service.cli.saying import say

    mesh = Mesh()
    said = say(
        mesh,
        mesh.speaker(saying.domain),
        saying,
        lambda meta: DomainThawed(meta=meta, domain=name, reason=reason),
    )
    show(Detail({**said.fields(), "domain": name}), saying.output)
