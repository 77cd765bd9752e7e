"""`sdm connect connector add|update|deployed|describe|drop`: what brings data in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import RefusedError
from mesh_events.meta import MESH_DOMAIN
from self_service.cli import (
    captured_tables,
    connect_login,
    connector_owner,
    connector_secrets,
)
from self_service.cli.connect_app import DryRun, Name, Settings, Timeout, Wait, connector_app
from self_service.cli.connect_login import ConnectorLogin
from self_service.cli.connector_config import Source, config_of, with_settings
from self_service.cli.connectors import Connectors, plain_secrets, redacted, states_of
from self_service.cli.context import Mesh
from self_service.cli.exits import UsageError
from self_service.cli.options import Acting, Shown, command
from self_service.cli.output import Detail, Listing, note, show


@command(
    connector_app,
    "add",
    "sdm connect connector add east-shop --type debezium-postgres --table users --table products",
    "sdm connect connector add east-shop -f connector.yaml",
)
def add(
    acting: Acting,
    source: Source,
    name: Name,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Config as YAML or JSON.")
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 60.0,
) -> None:
    """Add a connector of the current domain, or change it.

    debezium-postgres captures each change of the named tables into the topics <domain>.<table>,
    with Avro schemas registered. Secrets are named by reference, never written into a config.
    The connector works with the domain's own login, at the cluster where its topics live.
    """
    mesh = Mesh()
    domain = _domain(mesh, acting)
    config = config_of(mesh, domain, name, source, file)
    apply(mesh, Change(domain, name, config, source.password), acting, dry_run, wait, timeout)


@command(
    connector_app,
    "update",
    "sdm connect connector update east-shop --set tasks.max=2",
    "sdm connect connector update east-shop --unset transforms --dry-run",
)
def update(
    acting: Acting,
    name: Name,
    settings: Settings = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Leave a setting out.")
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = True,
    timeout: Timeout = 60.0,
) -> None:
    """Change some settings of a connector; the others stay as they are deployed.

    Connect checks the whole config first: one that it refuses changes nothing.
    """
    if not settings and not unset:
        raise UsageError("what is to change? Give --set NAME=VALUE or --unset NAME")
    mesh = Mesh()
    domain = _domain(mesh, acting)
    before = connect_login.without(Connectors.of(mesh).config(name))
    missing = [one for one in unset or [] if one not in before]
    if missing:
        raise UsageError(f"{name} has no setting {', '.join(missing)}: describe it")
    kept = {one: value for one, value in before.items() if one not in (unset or [])}
    config = with_settings(kept, settings)
    apply(mesh, Change(domain, name, config, None), acting, dry_run, wait, timeout)


@dataclass(frozen=True, slots=True)
class Change:
    """A connector as it is to be deployed; `password` is a reference to one that is to be kept."""

    domain: str
    name: str
    config: dict[str, str]
    password: str | None


def apply(
    mesh: Mesh, change: Change, acting: Acting, dry_run: bool, wait: bool, timeout: float
) -> None:
    """Check a connector, deploy it, and show what became of it."""
    domain, name, config = change.domain, change.name, change.config
    connectors = Connectors.of(mesh)
    if connectors.known(name):
        connector_owner.require_owner(name, connectors.config(name), domain)
    if secrets := plain_secrets(config):
        raise RefusedError(
            "secret_in_config",
            f"{', '.join(secrets)} must be a reference such as ${{dir:FOLDER:FILE}}, "
            "never the secret itself",
        )
    connector_owner.require_own_topics(config, domain)
    connect_login.require_no_login(config)
    connector_secrets.require_own(mesh, name, config)
    captured_tables.require_alone(name, config, connectors.states())
    captured_tables.require_tables(mesh.endpoints, config)
    if dry_run:
        _tell_faults(connectors.faults(name, config), change, acting)
        return
    connectors.require_class(name, config)
    login = ConnectorLogin(mesh, mesh.image(), domain, name)
    connector_secrets.store(mesh, name, change.password)
    config = {**login.settings(), **config}
    _deploy(connectors, login, config)
    shown: dict[str, Any] = {"connector": name, "domain": domain}
    if wait:
        note(f"waiting until {name} runs")
        shown |= states_of(connectors.await_running(name, timeout))
    show(Detail({**shown, "config": redacted(config)}), acting.output)


def _tell_faults(faults: dict[str, str], change: Change, acting: Acting) -> None:
    """What the connector says of its config, which was not deployed."""
    items = [{"setting": name, "fault": fault} for name, fault in sorted(faults.items())]
    fields = {"connector": change.name, "domain": change.domain, "valid": not faults}
    parts = {"faults": Listing(("setting", "fault"), items, "none")}
    show(Detail({**fields, "config": redacted(change.config)}, parts), acting.output)
    if faults:
        name, fault = next(iter(sorted(faults.items())))
        raise RefusedError("invalid_connector", f"{change.name}: {name}: {fault}")


def _domain(mesh: Mesh, acting: Acting) -> str:
    domain = mesh.speaker(acting.domain).domain
    if domain == MESH_DOMAIN:
        raise UsageError("a connector's topics belong to a domain: give --domain NAME")
    return domain


@command(connector_app, "deployed", "sdm connect connector deployed -o json")
def deployed(shown: Shown) -> None:
    """List the connectors that are deployed, with their states."""
    states = Connectors.of(Mesh()).states()
    items = [
        {
            "connector": name,
            "type": found["info"]["type"],
            "class": str(found["info"]["config"].get("connector.class", "")).rpartition(".")[2],
            "domain": connector_owner.owner_of(found["info"]["config"]),
            **states_of(found["status"]),
        }
        for name, found in sorted(states.items())
    ]
    columns = ("connector", "class", "domain", "state", "tasks", "failure")
    show(Listing(columns, items, "no connectors: `sdm connect connector add`"), shown.output)


@command(connector_app, "describe", "sdm connect connector describe east-shop")
def describe(shown: Shown, name: Name) -> None:
    """Describe a connector: state, topics, config without secrets."""
    connectors = Connectors.of(Mesh())
    fields = {
        "connector": name,
        **states_of(connectors.status(name)),
        "topics": connectors.topics(name),
    }
    config = redacted(connectors.config(name))
    settings = [{"setting": one, "value": value} for one, value in config.items()]
    parts = {"config": Listing(("setting", "value"), settings)}
    show(Detail(fields, parts), shown.output)


@command(connector_app, "drop", "sdm connect connector drop east-shop")
def drop(acting: Acting, name: Name) -> None:
    """Remove a connector of the current domain; its topics stay."""
    mesh = Mesh()
    domain = mesh.speaker(acting.domain).domain
    connectors = Connectors.of(mesh)
    config = connectors.config(name)
    connector_owner.require_owner(name, config, domain)
    connectors.drop(name)
    connector_secrets.forget(mesh, name)
    image, owner = mesh.image(), connect_login.domain_of(config)
    if owner is not None and owner in image.identity.domains:
        _take_back(connectors, ConnectorLogin(mesh, image, owner, name))
    slot = config.get("slot.name")
    if slot:
        note(
            f"the database keeps the replication slot {slot} for a connector that comes back: "
            f"drop it there with SELECT pg_drop_replication_slot('{slot}')"
        )
    show(Detail({"connector": name, "dropped": True}), acting.output)


def _deploy(connectors: Connectors, login: ConnectorLogin, config: dict[str, str]) -> None:
    """Hand a connector to Connect, with its rights; one that Connect refuses keeps nothing."""
    new = not connectors.known(login.connector)
    login.allow(connect_login.tasks(config))
    try:
        connectors.put(login.connector, config)
    except RefusedError:
        if new:
            connector_secrets.forget(login.mesh, login.connector)
            _take_back(connectors, login)
        raise
    if not new:
        # the same config again changes nothing, and what failed would stay so
        connectors.restart_failed(login.connector)


def _take_back(connectors: Connectors, login: ConnectorLogin) -> None:
    """Take away the rights of a connector that is gone; after its domain's last, the password."""
    login.forbid()
    # Connect goes on listing what was dropped for a moment
    login.leave({name: found["info"]["config"] for name, found in connectors.states().items()})
