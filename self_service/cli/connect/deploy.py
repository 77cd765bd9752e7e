"""`sdm connect connector add|update`: what a domain wants Kafka Connect to run."""

from pathlib import Path
from typing import Annotated

import typer

from mesh_events.errors import RefusedError
from mesh_events.meta import MESH_DOMAIN
from self_service.cli.connect.app import DryRun, Name, Password, Settings, connector_app
from self_service.cli.connect.change import Change
from self_service.cli.connect.config import (
    Kind,
    config_of,
    with_keyless,
    with_own_secret,
    with_settings,
)
from self_service.cli.connect.submitting import standing
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import StartOptions, SubmitOptions, command
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh


@command(
    connector_app,
    "add",
    "sdm connect connector add shop --type debezium-postgres --table users --table products",
    "sdm connect connector add report --type jdbc-sink --topic east.click-users",
    "sdm connect connector add shop -f connector.yaml --password file:/run/secrets/shop",
)
def add(
    options: StartOptions,
    kind: Kind,
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Config file, YAML or JSON.")
    ] = None,
    description: Annotated[
        str, typer.Option("--description", help="Purpose of the connector.")
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the connector of this name, if it exists.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Add a connector of the current domain, and wait until it runs.

    debezium-postgres captures each change of the named tables into the topics <domain>.<table> and
    registers their Avro schemas; debezium-outbox turns the rows of an outbox table into events.
    jdbc-sink writes topics to tables. A table that a connector of another domain captures or
    fills is refused (table_taken). Configs refer to secrets and never contain them. The connector
    has its own login, at the home cluster of its domain. Failed tasks are restarted automatically.
    """
    mesh = Mesh()
    domain = _domain(mesh, options)
    connector = lookup.identity(name, domain)
    config = config_of(mesh, connector, kind, file)
    known = mesh.image().connectors.get(connector)
    # another domain's is refused as such
    ours = known if known is not None and known.stands and known.domain == domain else None
    if ours is not None:
        config = with_keyless(with_own_secret(config, ours.config), ours.config)
    if ours is not None and dict(ours.config) != config and not replace:
        raise RefusedError(
            "connector_exists",
            f"the connector {connector} exists already, with another config: change a setting with "
            "`sdm connect connector update`, or all of it with --replace",
        )
    change = Change(mesh, options, connector, config, kind.application, kind.password)
    change.settle(dry_run=dry_run, description=description)


@command(
    connector_app,
    "update",
    "sdm connect connector update shop --set poll.interval.ms=200",
    "sdm connect connector update shop --unset transforms --dry-run",
    "sdm connect connector update shop --password file:/run/secrets/new",
)
def update(
    options: StartOptions,
    name: Name,
    settings: Settings = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Setting to remove.")
    ] = None,
    password: Password = None,
    dry_run: DryRun = False,
) -> None:
    """Change some settings of a connector or its password, and keep the other settings.

    Connect validates the whole config first: if it refuses the config, nothing changes. Nothing
    changes either if the connector was changed by another client meanwhile (connector_changed).
    """
    if not settings and not unset and password is None:
        raise UsageError("nothing to change: give --set NAME=VALUE, --unset NAME or --password")
    mesh = Mesh()
    found = standing(mesh, options, name)
    missing = [one for one in unset or [] if one not in found.config]
    if missing:
        raise UsageError(
            f"{found.id} has no setting {', '.join(missing)}: see `sdm connect connector describe`"
        )
    kept = {one: value for one, value in found.config.items() if one not in (unset or [])}
    config = with_own_secret(with_settings(kept, settings), found.config)
    change = Change(mesh, options, found.id, config, found.application, password, found.generation)
    change.settle(dry_run=dry_run)


def _domain(mesh: Mesh, options: SubmitOptions) -> str:
    domain = mesh.acting_as(options.domain).domain
    if domain == MESH_DOMAIN:
        raise UsageError("a connector's topics belong to a domain: give --domain NAME")
    return domain
