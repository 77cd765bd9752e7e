"""Asking a database takes no password of a file, and tells nothing about such files."""

import socket
import struct
import threading
from pathlib import Path

import pytest

from processors.connect.databases import Login, ask

_REFUSE_ENCRYPTION = {80877103, 80877104}
_ASK_PASSWORD = b"R" + struct.pack("!ii", 8, 3)


def passwords(server: socket.socket, found: list[bytes]) -> None:
    """Ask whoever connects for a password in plain text."""
    connection, _ = server.accept()
    with connection:
        while True:
            (length, code) = struct.unpack("!ii", connection.recv(8))
            if code not in _REFUSE_ENCRYPTION:
                break
            connection.sendall(b"N")
        connection.recv(length - 8)
        connection.sendall(_ASK_PASSWORD)
        found.append(connection.recv(1000))


def test_a_login_without_a_password_takes_none_from_a_file_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / ".pgpass"
    kept.write_text("*:*:*:*:kept\n")
    kept.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(kept))
    found: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=passwords, args=(server, found), daemon=True)
        thread.start()
        port = str(server.getsockname()[1])
        assert ask(lambda _: True, Login("127.0.0.1", port, "who", "db", "")) is None
        thread.join(10)

    assert found == [b""]
    assert "password file" not in capfd.readouterr().err
