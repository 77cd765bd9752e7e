"""A connector's config as a person gives it: by options, as a file, or as a change of settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.errors import InvalidValueError
from self_service.cli import debezium
from self_service.cli.connect_app import Settings
from self_service.cli.context import Mesh
from self_service.cli.exits import UsageError
from self_service.cli.promises import not_yaml


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
    settings: Settings = None


def config_of(
    mesh: Mesh, domain: str, name: str, source: Source, file: Path | None
) -> dict[str, str]:
    """The config that the options or the file describe; raises UsageError, InvalidValueError."""
    if (file is None) == (source.type is None):
        raise UsageError(f"give either --file or --type {debezium.TYPE}")
    if file is not None:
        config = read(file)
    elif source.type == debezium.TYPE:
        if not source.table:
            raise UsageError("which tables? Give --table, once for each")
        place = debezium.database(
            mesh, name, source.host, source.user, source.password, source.database
        )
        config = debezium.config(name, domain, source.table, place)
    else:
        raise UsageError(f"{source.type!r} is no kind of connector: known is {debezium.TYPE}")
    return with_settings(config, source.settings)


def with_settings(config: dict[str, str], settings: list[str] | None) -> dict[str, str]:
    """The config with what `--set` says."""
    changed = dict(config)
    for one in settings or []:
        setting, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--set {one!r}: write it as NAME=VALUE")
        changed[setting] = value
    return changed


def read(path: Path) -> dict[str, str]:
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
