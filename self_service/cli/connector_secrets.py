"""The secrets that a connector's config may name: its own, and where it is needed only.

Connect resolves a reference in any setting, and what it resolved can leave it again: a transform
writes it into a record, a driver sends it to another host. So a reference is compared as a whole
with the few that are allowed. Nothing of it is taken apart: Connect's way of reading one, and
Java's of reading a path, are not ours.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mesh_events.errors import ConfigurationError, InvalidValueError, RefusedError

if TYPE_CHECKING:
    from local_platform import Endpoints
    from self_service.cli.context import Mesh

POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
_SETTINGS = {POSTGRES: frozenset({"database.password"})}
"""Connector class -> the settings in which it takes a secret."""
_LOCAL = "postgres-postgres"
_PLAIN = frozenset({f"database.{one}" for one in ("hostname", "port", "user", "password")})
_DATABASE = re.compile(r"[A-Za-z0-9_-]+")
_STATEMENT = re.compile(r"(database|driver)\..*|.*(query|statement).*", re.IGNORECASE | re.DOTALL)
_SHOWN = 60


def reference(folder: Path, file: str) -> str:
    """How a config names a file's text to Connect."""
    return f"${{dir:{folder}:{file}}}"


def own(folder: Path, connector: str) -> str:
    """How a connector's config names the connector's own secret."""
    return reference(folder, _file(connector))


def local(folder: Path) -> str:
    """How a config names the password of the local platform's Postgres."""
    return reference(folder, _LOCAL)


def require_own(mesh: "Mesh", connector: str, config: Mapping[str, str]) -> None:
    """Refuse a config that a person gave if it names a secret that is not the connector's.

    What sdm itself puts in is added afterwards.
    """
    ends = mesh.endpoints
    kind = config.get("connector.class", "")
    settings = _SETTINGS.get(kind, frozenset())
    allowed = {own(ends.connect_secrets, connector)}
    if _is_local(ends, config):
        allowed.add(local(ends.connect_secrets))
    wrong = [
        _short(name)
        for name, value in sorted(config.items())
        if "${" in name or ("${" in value and not (name in settings and value in allowed))
    ]
    if not wrong:
        return
    place = ", ".join(sorted(settings))
    may = (
        f"only {place} may name one, as the whole value, and only {' or '.join(sorted(allowed))}"
        if place
        else f"no setting of {kind[:_SHOWN] or 'a connector without connector.class'} may name one"
    )
    raise RefusedError(
        "foreign_secret",
        f"{', '.join(wrong)}: a reference to a secret that is not this connector's, or not in its "
        f"place; {may}. `--password file:PATH` stores the connector's own; the local Postgres's "
        "is for that database alone, without settings of the driver and statements of one's own",
    )


def store(mesh: "Mesh", connector: str, password: str | None) -> None:
    """Copy the text of `file:PATH` (0600) to where the connector may read it; else do nothing.

    Raises ConfigurationError where the file cannot be read, or its copy not be written.
    """
    if password is None or not password.startswith("file:"):
        return
    from mesh_events.files import write_atomically
    from mesh_events.references import resolve

    place = mesh.endpoints.connect_secrets / _file(connector)
    text = resolve(password)
    if "${" in text:
        raise InvalidValueError(f"{password}: a password with '${{' in it is a reference again")
    try:
        write_atomically(place, text, mode=0o600)
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be written: {error.strerror}") from error


def forget(mesh: "Mesh", connector: str) -> None:
    """Remove the secret of a connector that is gone: the next of its name may be another's."""
    (mesh.endpoints.connect_secrets / _file(connector)).unlink(missing_ok=True)


def _file(connector: str) -> str:
    return f"connector-{connector}"


def _is_local(ends: "Endpoints", config: Mapping[str, str]) -> bool:
    """Whether the password goes to the local Postgres, and serves to read tables only.

    The name of a database ends up in an address, where it could name another host; a setting of
    the driver can as well, and a statement would run with all rights.
    """
    others = set(config) - _PLAIN - {"database.dbname"}
    return (
        config.get("database.hostname") == ends.postgres_host
        and config.get("database.port") == str(ends.postgres_port)
        and _DATABASE.fullmatch(config.get("database.dbname", "")) is not None
        and not any(_STATEMENT.fullmatch(name) for name in others)
    )


def _short(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
