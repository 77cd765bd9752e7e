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
        Path | None, typer.Option("--file", "-f", help="Config as YAML or JSON.")
    ] = None,
    description: Annotated[str, typer.Option("--description", help="What it is for.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Change one that is there under this name.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Add a connector of the current domain, and wait until it runs.

    debezium-postgres captures each change of the named tables into the topics <domain>.<table>,
    with Avro schemas registered; debezium-outbox makes events of the rows of an outbox table.
    jdbc-sink writes topics into tables. A table that a connector of another domain captures or
    fills is refused (table_taken). Secrets are named by reference, never written into a config.
    The connector works with a login of its own, at the cluster where its domain's topics live; a
    task that fails is started again by itself.
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
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Leave a setting out.")
    ] = None,
    password: Password = None,
    dry_run: DryRun = False,
) -> None:
    """Change some settings of a connector, or its password; the others stay as they are.

    Connect checks the whole config first: one that it refuses changes nothing. Nor does one of a
    connector that somebody else has changed meanwhile (connector_changed).
    """
    if not settings and not unset and password is None:
        raise UsageError("what is to change? Give --set NAME=VALUE, --unset NAME or --password")
    mesh = Mesh()
    found = standing(mesh, options, name)
    missing = [one for one in unset or [] if one not in found.config]
    if missing:
        raise UsageError(f"{found.id} has no setting {', '.join(missing)}: describe it")
    kept = {one: value for one, value in found.config.items() if one not in (unset or [])}
    config = with_own_secret(with_settings(kept, settings), found.config)
    change = Change(mesh, options, found.id, config, found.application, password, found.generation)
    change.settle(dry_run=dry_run)


def _domain(mesh: Mesh, options: SubmitOptions) -> str:
    domain = mesh.acting_as(options.domain).domain
    if domain == MESH_DOMAIN:
        raise UsageError("a connector's topics belong to a domain: give --domain NAME")
    return domain
