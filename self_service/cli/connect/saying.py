"""Saying an intent about a connector, and showing what became of it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mesh_events.connectors import ConnectorIntent
from mesh_events.intents import Intent
from mesh_events.meta import Meta
from projections.connectors import config as connector_config
from projections.connectors.state import Connector
from self_service.cli.framework.options import Saying, Until
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.saying import IntentRefusedError, Said, await_stage, say


def standing(mesh: Mesh, saying: Saying, name: str) -> Connector:
    """The connector that a name means; raises NotFoundError."""
    who = mesh.speaker(saying.domain)
    return lookup.connector(mesh.image(), lookup.identity(name, who.domain))


def say_about(
    mesh: Mesh,
    saying: Saying,
    connector: str,
    kind: type[ConnectorIntent],
    fields: Mapping[str, Any],
    *,
    refused: Callable[[], None] = lambda: None,
    active: bool = True,
) -> Said:
    """Say an intent, and wait as `saying` asks, by default until it is so.

    Args:
        mesh: where.
        saying: the options of the command.
        connector: its id.
        kind: the intent.
        fields: of the intent.
        refused: called if the governor refuses it, or it could not be said.
        active: whether what is accepted will come to run, or to its end.

    Raises as `saying.say`.
    """
    who, deadline = mesh.speaker(saying.domain), time.monotonic() + saying.timeout
    until = saying.until or Until.ACTIVE

    def make(meta: Meta) -> Intent:
        return kind(meta=meta, connector=connector, **fields)

    try:
        said = say(mesh, who, replace(saying, until=Until.DECIDED), make, unsaid=refused)
    except IntentRefusedError:
        refused()
        raise
    if said.outcome is None or until is Until.DECIDED or not active:
        return said
    note(f"waiting for {connector}")
    image = await_stage(mesh, who, said, until, deadline)
    return replace(said, image=image)


def shown(
    saying: Saying, connector: str, said: Said, parts: Mapping[str, Listing] | None = None
) -> None:
    """Show what was said and what became of it."""
    show(Detail({"connector": connector, **said.fields()}, parts), saying.output)


def settings_of(config: Mapping[str, str]) -> Listing:
    """A config without its secrets."""
    told = connector_config.redacted(config)
    return Listing(
        ("setting", "value"), [{"setting": one, "value": told[one]} for one in sorted(told)]
    )
