"""`sdm connect connector`: what brings data in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.meta import MESH_DOMAIN
from self_service.cli import (
    captured_tables,
    connect_login,
    connector_owner,
    connector_secrets,
    debezium,
)
from self_service.cli.connect_login import ConnectorLogin
from self_service.cli.connectors import Connectors, first_line, plain_secrets, redacted
from self_service.cli.context import Mesh
from self_service.cli.exits import UsageError
from self_service.cli.options import Acting, Shown, command, noun
from self_service.cli.output import Detail, Listing, note, show
from self_service.cli.promises import not_yaml

app = noun("Kafka Connect: what brings data in.")
connector_app = noun("Connectors of the worker.")
app.add_typer(connector_app, name="connector")

Name = Annotated[str, typer.Argument(help="The connector.", callback=debezium.legal)]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A database whose tables are captured."""

    type: Annotated[
        str | None, typer.Option("--type", help=f"Kind of connector: {debezium.TYPE}.")
    ] = None
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Table, schema.table; several times.")
    ] = None
    host: Annotated[
        str | None, typer.Option("--host", help="host:port; default: the local Postgres.")
    ] = None
    user: Annotated[str | None, typer.Option("--user", help="Its user.")] = None
    password: Annotated[
        str | None,
        typer.Option("--password", help="Reference to the password: file:/path or ${dir:...}."),
    ] = None
    database: Annotated[str | None, typer.Option("--database", help="Database name.")] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another setting; wins over all."),
    ] = None


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
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it runs.")] = True,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long to wait.")
    ] = 60.0,
) -> None:
    """Add a connector of the current domain, or change it.

    debezium-postgres captures each change of the named tables into the topics <domain>.<table>,
    with Avro schemas registered. Secrets are named by reference, never written into a config.
    The connector works with the domain's own login, at the cluster where its topics live.
    """
    mesh = Mesh()
    domain = mesh.speaker(acting.domain).domain
    if domain == MESH_DOMAIN:
        raise UsageError("a connector's topics belong to a domain: give --domain NAME")
    config = _config(mesh, domain, name, source, file)
    if secrets := plain_secrets(config):
        raise RefusedError(
            "secret_in_config",
            f"{', '.join(secrets)} must be a reference such as ${{dir:FOLDER:FILE}}, "
            "never the secret itself",
        )
    connector_owner.require_own_topics(config, domain)
    connect_login.require_no_login(config)
    connector_secrets.require_own(mesh, name, config)
    connectors = Connectors.of(mesh)
    if connectors.known(name):
        connector_owner.require_owner(name, connectors.config(name), domain)
    captured_tables.require_alone(name, config, connectors.states())
    captured_tables.require_tables(mesh.endpoints, config)
    login = ConnectorLogin(mesh, mesh.image(), domain, name)
    connector_secrets.store(mesh, name, source.password)
    config = {**login.settings(), **config}
    _deploy(connectors, login, config)
    shown: dict[str, Any] = {"connector": name, "domain": domain}
    if wait:
        note(f"waiting until {name} runs")
        shown |= _states(connectors.await_running(name, timeout))
    show(Detail({**shown, "config": redacted(config)}), acting.output)


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
            **_states(found["status"]),
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
        **_states(connectors.status(name)),
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


def _config(
    mesh: Mesh, domain: str, name: str, source: Source, file: Path | None
) -> dict[str, str]:
    if (file is None) == (source.type is None):
        raise UsageError(f"give either --file or --type {debezium.TYPE}")
    if file is not None:
        config = _read(file)
    elif source.type == debezium.TYPE:
        if not source.table:
            raise UsageError("which tables? Give --table, once for each")
        place = debezium.database(
            mesh, name, source.host, source.user, source.password, source.database
        )
        config = debezium.config(name, domain, source.table, place)
    else:
        raise UsageError(f"{source.type!r} is no kind of connector: known is {debezium.TYPE}")
    for one in source.settings or []:
        setting, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--set {one!r}: write it as NAME=VALUE")
        config[setting] = value
    return config


def _read(path: Path) -> dict[str, str]:
    """A config file: a mapping of settings, or Connect's own {name, config}."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidValueError(not_yaml(path, error)) from error
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        found = found["config"]
    if not isinstance(found, dict) or not found:
        raise InvalidValueError(f"{path} holds no mapping of settings")
    return {str(name): _text(value) for name, value in found.items()}


def _text(value: object) -> str:
    """A setting as Connect takes it: YAML's true is Kafka's "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _states(status: dict[str, Any]) -> dict[str, Any]:
    parts = [status["connector"], *status["tasks"]]
    failed = [part for part in parts if part["state"] == "FAILED"]
    return {
        "state": status["connector"]["state"],
        "tasks": [part["state"] for part in status["tasks"]],
        "failure": first_line(failed[0]) if failed else None,
    }
