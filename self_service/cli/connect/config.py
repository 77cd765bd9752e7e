"""A connector's config as a person gives it: by options, as a file, or as a change of settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.connectors import OWN_SECRET, version_of
from mesh_events.errors import InvalidValueError
from projections.connectors.settings import KEYLESS, POSTGRES
from self_service.cli.connect import debezium, jdbc_sink
from self_service.cli.connect.app import Settings
from self_service.cli.connect.databases import Place, database
from self_service.cli.connect.jdbc_sink import Key
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.mesh.context import Mesh
from self_service.cli.product.promises import not_yaml
from self_service.cli.streaming.wording import topic_of

TYPES = (debezium.TYPE, debezium.OUTBOX, jdbc_sink.TYPE)


@dataclass(frozen=True, kw_only=True)
class Kind(Place):
    """A connector of a known type, and where its tables are."""

    type: Annotated[
        str | None, typer.Option("--type", help=f"Type of connector: {', '.join(TYPES)}.")
    ] = None
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="Table to capture, schema.table; repeatable."),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="Topic or product that a sink reads; repeatable."),
    ] = None
    key: Annotated[
        Key,
        typer.Option(
            "--key", help="Rows of a sink: one for each record, or the latest value of each key."
        ),
    ] = Key.POSITION
    application: Annotated[
        str | None,
        typer.Option(
            "--application",
            help="Application under whose grants other domains' topics are read.",
            autocompletion=completion.applications,
        ),
    ] = None
    settings: Settings = None


def config_of(mesh: Mesh, connector: str, kind: Kind, file: Path | None) -> dict[str, str]:
    """The config that the options or the file describe; raises UsageError, InvalidValueError."""
    if (file is None) == (kind.type is None):
        raise UsageError(f"give either --file or --type {_known('or')}")
    if file is not None:
        return with_settings(read(file), kind.settings)
    place = database(mesh.endpoints, kind)
    if kind.type == debezium.TYPE:
        if not kind.table:
            raise UsageError("which tables? Give --table, once for each")
        config = debezium.config(connector, kind.table, place)
    elif kind.type == debezium.OUTBOX:
        if not kind.table or len(kind.table) > 1:
            raise UsageError("which table is the outbox? Give --table once")
        config = debezium.outbox(connector, kind.table[0], place)
    elif kind.type == jdbc_sink.TYPE:
        if not kind.topic:
            raise UsageError("which topics does the sink read? Give --topic, once for each")
        config = jdbc_sink.config(connector, _topics(mesh, connector, kind.topic), place, kind.key)
    else:
        raise UsageError(f"{kind.type!r} is not a type of connector: known are {_known('and')}")
    return with_settings(config, kind.settings)


def with_settings(config: dict[str, str], settings: list[str] | None) -> dict[str, str]:
    """The config with what `--set` says."""
    changed = dict(config)
    for one in settings or []:
        setting, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--set {one!r}: write it as NAME=VALUE")
        changed[setting] = value
    return changed


def with_own_secret(config: dict[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The config with the version that its own secret has in `known`, where it names none."""
    return {
        name: before if value == OWN_SECRET and version_of(before := known.get(name, "")) else value
        for name, value in config.items()
    }


def with_keyless(config: dict[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """A capture with what `known` says of tables without a key, where it says nothing itself."""
    is_capture = config.get("connector.class") == known.get("connector.class") == POSTGRES
    kept = {KEYLESS: known[KEYLESS]} if is_capture and KEYLESS in known else {}
    return kept | config


def read(path: Path) -> dict[str, str]:
    """A config file: a mapping of settings, or Connect's own {name, config}.

    Settings are texts as they stand there; raises InvalidValueError for what is none.
    """
    import yaml

    from self_service.cli.framework.given_files import read_text
    from self_service.cli.framework.yaml_texts import read_texts

    try:
        found = read_texts(read_text(path))
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidValueError(not_yaml(path, error)) from error
    if isinstance(found, dict) and isinstance(found.get("config"), dict):
        found = found["config"]
    if not isinstance(found, dict) or not found:
        raise InvalidValueError(f"{path} does not hold a mapping of settings")
    # Connect's own files may repeat the name, which is given beside the file
    return {
        _setting(path, name): _text(path, name, value)
        for name, value in found.items()
        if name != "name"
    }


def _known(last: str) -> str:
    return f"{', '.join(TYPES[:-1])} {last} {TYPES[-1]}"


def _topics(mesh: Mesh, connector: str, names: list[str]) -> list[str]:
    """The topics that names mean, where the connector's domain reads them."""
    domain, image = connector.partition(".")[0], mesh.image()
    return [topic_of(image, domain, name) for name in names]


def _setting(path: Path, name: object) -> str:
    if not isinstance(name, str):
        raise InvalidValueError(f"{path} has a setting whose name is not a string")
    return name


def _text(path: Path, name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        raise InvalidValueError(
            f'{path}: {name} is null: leave it out, or write "" for an empty string'
        )
    raise InvalidValueError(
        f"{path}: {name} is not a string: write a list as one string, with commas"
    )
