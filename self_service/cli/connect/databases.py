"""The database that a connector's options name; the local platform's Postgres by default."""

from dataclasses import dataclass
from typing import Annotated

import typer

from local_platform import Endpoints
from mesh_events.errors import InvalidValueError
from self_service.cli.connect.app import Password

_PORT = 5432


@dataclass(frozen=True, kw_only=True)
class Place:
    """Options that name a database."""

    host: Annotated[
        str | None, typer.Option("--host", help="host:port; default: the local Postgres.")
    ] = None
    user: Annotated[str | None, typer.Option("--user", help="User of the database.")] = None
    password: Password = None
    database: Annotated[str | None, typer.Option("--database", help="Database name.")] = None


@dataclass(frozen=True, slots=True)
class Database:
    """Where tables are; `is_shared`: the platform's own, whose password all domains share."""

    host: str
    port: int
    user: str
    name: str
    is_shared: bool


def database(ends: Endpoints, place: Place) -> Database:
    """The database that the options name; raises InvalidValueError."""
    address, port = address_of(place.host or f"{ends.postgres_host}:{ends.postgres_port}")
    needed = {"user": place.user, "password": place.password, "database": place.database}
    missing = [f"--{name}" for name, value in needed.items() if value is None]
    if place.host is not None and missing:
        raise InvalidValueError(f"another database needs {' and '.join(missing)}, too")
    return Database(
        address,
        port,
        place.user or ends.postgres_user,
        place.database or ends.postgres_database,
        is_shared=place.password is None,
    )


def address_of(text: str) -> tuple[str, int]:
    """(host, port) of `host` or `host:port`; raises InvalidValueError."""
    host, colon, port = text.partition(":")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else 0
    if not host or (colon and not 1 <= number <= 65535):
        raise InvalidValueError(
            f"{text!r} is not an address: write host or host:port, port 1 to 65535"
        )
    return host, number if colon else _PORT
