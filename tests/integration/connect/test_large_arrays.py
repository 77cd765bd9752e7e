"""An array takes a bounded part of Connect's memory, which all domains share.

An element has some bytes on the way and a hundred in memory; in binary form an array says how many
it has before they come, and what a server says need not be true.
"""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import psycopg
import pytest
from psycopg import sql

from local_platform import Endpoints, PlatformSettings
from local_platform.services.connect import DEBEZIUM
from tests.integration.connect.hanging import (
    TLS_ASKED,
    Serve,
    accepting,
    address_faults,
    asked,
    connected,
    failure,
    message,
)
from tests.integration.connect_owner import as_administrator, owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.integration.test_cli_connect import drop_slots
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_service, connect_worker, pid_of

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.slow
NOUN = ("connect", "connector")
FEW, MANY = 50_000, 210_000
TEXTS = 1009
"""PostgreSQL's number of the type text[]."""
Change = Callable[[bytes, bytes], bytes]


@pytest.fixture
def table(mesh: Endpoints) -> Iterator[tuple[str, Any]]:
    """A table with arrays, and a connection to it."""
    name = fresh("arrays").replace("-", "_")
    with psycopg.connect(**mesh.postgres_login(), autocommit=True) as connection:
        names = {"name": sql.Identifier(name)}
        connection.execute(
            sql.SQL("CREATE TABLE {name} (id int PRIMARY KEY, a text[], b text[])").format(**names)
        )
        connection.execute(sql.SQL("ALTER TABLE {name} REPLICA IDENTITY FULL").format(**names))
        yield name, connection
        connection.execute(sql.SQL("DROP TABLE {name}").format(**names))
        drop_slots(connection, name)


def insert(table: tuple[str, Any], key: int, *counts: int) -> None:
    """A row with two arrays of so many texts."""
    name, connection = table
    connection.execute(
        sql.SQL(
            "INSERT INTO {} VALUES (%s, array_fill('x'::text, ARRAY[%s]), "
            "array_fill('y'::text, ARRAY[%s]))"
        ).format(sql.Identifier(name)),
        [key, *counts],
    )


def test_a_row_whose_arrays_are_too_large_fails_its_connector_alone(
    sdm: Sdm, owner: Party, table: tuple[str, Any], settings: PlatformSettings
) -> None:
    name, of = table[0], ("-d", owner.name)
    insert(table, 1, FEW, FEW)
    sdm(*NOUN, "add", name, "--type", "debezium-postgres", "--table", name, *of)
    try:
        before = pid_of(settings, connect_service(owner.name))
        insert(table, 2, FEW, FEW)
        insert(table, 3, MANY // 2, MANY // 2)
        describe = (*NOUN, "describe", f"{owner.name}.{name}")
        eventually(lambda: sdm(*describe).document["state"] == "FAILED", "it fails", 120)
        assert "more than 200 000 elements" in sdm(*describe).document["failure"]
        leave_out = f"column.exclude.list=public.{name}.a"
        sdm(*NOUN, "update", name, "--set", leave_out, *of, "--timeout", "120")
        insert(table, 4, 1, 1)
        captured = ("topic", "consume", f"{owner.name}.{name}", "-o", "json", *of)
        eventually(lambda: '"id": 4' in sdm(*captured).out, "the rows behind it come", 120)
        assert pid_of(settings, connect_service(owner.name)) == before
    finally:
        sdm(*NOUN, "delete", name, *of)


def between(place: tuple[str, int], change: Callable[[], Change]) -> Serve:
    """The database at `place`, with what it says changed: (kind, body of a message) -> bytes."""

    def exactly(database: socket.socket, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = database.recv(count - len(found))
            if not more:
                raise OSError("the database is gone")
            found += more
        return found

    def answer(database: socket.socket, client: socket.socket) -> None:
        changed = change()
        with suppress(OSError):
            while True:
                kind, length = struct.unpack("!ci", exactly(database, 5))
                client.sendall(changed(kind, exactly(database, length - 4)))

    def serve(client: socket.socket) -> None:
        with connected(place) as database:
            if struct.unpack("!4xi", client.recv(8, socket.MSG_PEEK))[0] == TLS_ASKED:
                client.recv(8)
                client.sendall(b"N")
            Thread(target=answer, args=(database, client), daemon=True).start()
            while asked_of := client.recv(65536):
                database.sendall(asked_of)

    return serve


class Described:
    """What a server says, but that an enum among its types has so many values, in binary form."""

    def __init__(self, count: int) -> None:
        self._array = struct.pack("!iiiii", 1, 0, 25, count, 1)
        self._columns: list[bytes] = []

    def __call__(self, kind: bytes, body: bytes) -> bytes:
        """The message in the place of one."""
        if kind == b"T":
            body = self._description(body)
        elif kind == b"D" and b"enum_values" in self._columns:
            body, self._columns = self._row(body), []
        return message(kind, body)

    def _description(self, body: bytes) -> bytes:
        self._columns, out, at = [], body[:2], 2
        while at < len(body):
            end = body.index(b"\0", at)
            name, about, at = body[at:end], body[end + 1 : end + 19], end + 19
            if name == b"enum_values":
                # its type, its size, its modifier, and that it comes in binary form
                about = about[:6] + struct.pack("!ihih", TEXTS, -1, -1, 1)
            self._columns.append(name)
            out += name + b"\0" + about
        return out

    def _row(self, body: bytes) -> bytes:
        told = {b"enum_values": self._array, b"category": b"E"}
        out, at = body[:2], 2
        for name in self._columns:
            (length,) = struct.unpack_from("!i", body, at)
            end = at + 4 + max(length, 0)
            value = told.get(name)
            out += body[at:end] if value is None else struct.pack("!i", len(value)) + value
            at = end
        return out


def test_an_array_whose_length_is_not_true_fails_its_connector_alone(
    mesh: Endpoints, table: tuple[str, Any], settings: PlatformSettings
) -> None:
    name, login = fresh("probe"), mesh.postgres_login()
    place = str(login["host"]), int(login["port"])
    # the first that asks starts it
    connect_worker(mesh)
    before = pid_of(settings, connect_service())
    with accepting(between(place, lambda: Described(2**31 - 2))) as port:
        try:
            config = capture(login, port, table[0], name) | as_administrator(mesh)
            put = asked(mesh, "PUT", f"{name}/config", json=config)
            assert put.ok, put.text
            eventually(lambda: failure(mesh, name), "the task fails", 120)
            assert "mesh.ArraysTooLargeError" in str(failure(mesh, name))
            assert pid_of(settings, connect_service()) == before
        finally:
            asked(mesh, "DELETE", name)


def capture(login: dict[str, Any], port: int, table: str, name: str) -> dict[str, str]:
    """The config of a capture as Connect has it."""
    return {
        "connector.class": DEBEZIUM,
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": table,
        "publication.name": table,
        "publication.autocreate.mode": "disabled",
        "table.include.list": f"public.{table}",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": login["user"],
        "database.password": login["password"],
        "database.dbname": login["dbname"],
        "errors.max.retries": "0",
    }


def settings_at_each_question(kind: bytes, body: bytes) -> bytes:
    """What a server says, and a long setting before each of its answers ends."""
    more = message(b"S", b"long\0" + b"v" * 9_000 + b"\0") if kind == b"Z" else b""
    return more + message(kind, body)


def test_a_setting_that_is_too_long_ends_the_connection(mesh: Endpoints) -> None:
    """The driver keeps what a server reports for as long as the connection lasts."""
    login = mesh.postgres_login()
    place = str(login["host"]), int(login["port"])

    def faults(change: Change) -> list[str]:
        with accepting(between(place, lambda: change)) as port:
            return address_faults(mesh, {**capture(login, port, "t", "probe"), "name": "probe"})

    assert faults(message) == []
    [fault] = faults(settings_at_each_question)
    assert "The connection attempt failed" in fault or "An I/O error occurred" in fault
