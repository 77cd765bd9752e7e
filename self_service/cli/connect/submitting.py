"""Submit an intent about a connector, and show what became of it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mesh_events.connectors import ConnectorIntent
from mesh_events.intents import Intent
from mesh_events.meta import Meta
from projections.connectors import config as connector_config
from projections.connectors.state import Connector
from self_service.cli.framework.options import SubmitOptions, Until
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.submitting import IntentRefusedError, Submitted, await_stage, submit


def standing(mesh: Mesh, options: SubmitOptions, name: str) -> Connector:
    """The connector that a name means; raises NotFoundError."""
    who = mesh.acting_as(options.domain)
    return lookup.connector(mesh.image(), lookup.identity(name, who.domain))


def submit_about(
    mesh: Mesh,
    options: SubmitOptions,
    connector: str,
    kind: type[ConnectorIntent],
    fields: Mapping[str, Any],
    *,
    refused: Callable[[], None] = lambda: None,
    active: bool = True,
) -> Submitted:
    """Say an intent, and wait as `options` asks, by default until it is so.

    Args:
        mesh: where.
        options: the options of the command.
        connector: its id.
        kind: the intent.
        fields: of the intent.
        refused: called if the governor refuses it, or it could not be submitted.
        active: whether what is accepted will come to run, or to its end.

    Raises as `submitting.submit`.
    """
    who, deadline = mesh.acting_as(options.domain), time.monotonic() + options.timeout
    until = options.until or Until.ACTIVE

    def make(meta: Meta) -> Intent:
        return kind(meta=meta, connector=connector, **fields)

    try:
        submitted = submit(mesh, who, replace(options, until=Until.DECIDED), make, unsaid=refused)
    except IntentRefusedError:
        refused()
        raise
    if submitted.outcome is None or until is Until.DECIDED or not active:
        return submitted
    note(f"waiting for {connector}")
    image = await_stage(mesh, who, submitted, until, deadline)
    return replace(submitted, image=image)


def shown(
    options: SubmitOptions,
    connector: str,
    submitted: Submitted,
    parts: Mapping[str, Listing] | None = None,
) -> None:
    """Show what was submitted and what became of it."""
    show(Detail({"connector": connector, **submitted.fields()}, parts), options.output)


def settings_of(config: Mapping[str, str]) -> Listing:
    """A config without its secrets."""
    told = connector_config.redacted(config)
    return Listing(
        ("setting", "value"), [{"setting": one, "value": told[one]} for one in sorted(told)]
    )
