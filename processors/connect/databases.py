"""Asking a connector's database, from the machine of the person who adds the connector."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Thread
from typing import Any, TypeVar

import psycopg

from mesh_events.errors import RefusedError

Connection = psycopg.Connection[tuple[Any, ...]]
Found = TypeVar("Found")
_PATIENCE_S = 15
"""A laptop that starts a Connect worker at the same time takes more than five seconds."""
_NO_FILE = "/dev/null/none"
"""There can be no such file: a password that somebody keeps in ~/.pgpass is not for this server."""
_NOT_NOW = (
    "starting up",
    "shutting down",
    "recovery",
    "too many",
    "slots are reserved",
    "not yet accepting",
)
"""Of what PostgreSQL says where it lets nobody in for a while, whoever it is."""
_LONGEST = 200
"""Characters of what a database says."""


@dataclass(frozen=True, slots=True)
class Login:
    """Where a PostgreSQL database is, and as whom it is asked.

    `sslmode` is libpq's; None for that of the machine, which is `prefer` where nobody has set it.
    """

    host: str
    port: str
    user: str
    database: str
    password: str = field(repr=False)
    sslmode: str | None = None

    @property
    def place(self) -> str:
        """The database's name and address, for people."""
        return f"{self.database} at {self.host}:{self.port}"


def ask(look: Callable[[Connection], Found], login: Login) -> Found | None:
    """What a look into the database finds; None where it does not answer in time.

    The server is somebody's: it may take the connection and never send a byte.

    Raises RefusedError `database_refused` where it answers that nobody gets in so, and what `look`
    refuses.
    """
    answers: Queue[Found | RefusedError | None] = Queue()
    opened: list[Connection] = []

    def run() -> None:
        try:
            with psycopg.connect(
                host=login.host,
                port=login.port,
                user=login.user,
                password=login.password,
                dbname=login.database,
                connect_timeout=_PATIENCE_S,
                sslmode=login.sslmode,
                passfile=_NO_FILE,
            ) as connection:
                opened.append(connection)
                answers.put(look(connection))
        except psycopg.OperationalError as error:
            answers.put(None if opened else _refusal(login, str(error)))
        except RefusedError as refusal:
            answers.put(refusal)
        except Exception:  # noqa: BLE001 - what answers there need not be PostgreSQL
            answers.put(None)

    Thread(target=run, name="database", daemon=True).start()
    try:
        found = answers.get(timeout=2 * _PATIENCE_S)
    except Empty:
        for connection in opened:
            with suppress(OSError, psycopg.Error):
                # what waits for its answer ends with an error
                shutdown(connection.fileno())
        return None
    if isinstance(found, RefusedError):
        raise found
    return found


def _refusal(login: Login, text: str) -> RefusedError | None:
    """What the server itself answered, None where there is no such answer."""
    _, fatal, told = text.partition("FATAL:")
    # the database may let Connect in, and nobody from here
    if not fatal or "pg_hba.conf" in told or any(one in told for one in _NOT_NOW):
        return None
    reason = " ".join(told.split())[:_LONGEST]
    if login.password:
        reason = reason.replace(login.password, "(hidden)")
    return RefusedError(
        "database_refused",
        f"the database {login.place} refuses the login: {reason}: give the user, the password and "
        "the name of the database that it knows",
    )


def shutdown(fileno: int) -> None:
    """End a connection under whoever waits on it."""
    with socket.socket(fileno=os.dup(fileno)) as copy:
        copy.shutdown(socket.SHUT_RDWR)
