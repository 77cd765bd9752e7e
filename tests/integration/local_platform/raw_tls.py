"""TLS by hand: records that no ordinary client sends."""

import hmac
import os
import socket
import ssl
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ALERT, HANDSHAKE, DATA = 0x15, 0x16, 0x17
KEYS, ASKING = b"\x18\0\0\x01\0", b"\x18\0\0\x01\x01"
"""A message behind which another key holds; the second one asks for the same."""
_VERSION = 0x303
_MAC_KEY, _KEY, _BLOCK = 32, 16, 16
_SUITE, _HASH, _LONG_KEY, _NONCE, _TAG = "TLS_AES_256_GCM_SHA384", "sha384", 32, 12, 16


class TlsStream:
    """A connection by TLS, whose records can be had before they are sent."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self.plain = plain
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._came, self._goes)
        self.handshake = b""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.plain.sendall(self._goes.read())
                self.handshake += self._receive()
            else:
                break
        self.plain.sendall(self._ending(self._goes.read()))

    def records(self, count: int) -> bytes:
        """So many records of a byte each."""
        for _ in range(count):
            self._tls.write(b"x")
        return self._goes.read()

    def sendall(self, data: bytes, /) -> None:
        """Send data as an ordinary client does."""
        self._tls.write(data)
        self.plain.sendall(self._goes.read())

    def recv(self, size: int, /) -> bytes:
        """The next data, "" where the connection was closed."""
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                if not self._receive():
                    return b""

    def settimeout(self, seconds: float, /) -> None:
        """How long to wait for something."""
        self.plain.settimeout(seconds)

    def fileno(self) -> int:
        """That of the socket."""
        return self.plain.fileno()

    def close(self) -> None:
        """Close the socket."""
        self.plain.close()

    def _ending(self, records: bytes) -> bytes:
        """What is sent in place of the records by which the handshake ends."""
        return records

    def _receive(self) -> bytes:
        came = self.plain.recv(1 << 16)
        if came:
            self._came.write(came)
        else:
            self._came.write_eof()
        return came


class EmptyRecords(TlsStream):
    """A connection of TLS 1.2 that sends records without data, once it has shaken hands."""

    def __init__(self, plain: socket.socket) -> None:
        context = trusting()
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256@SECLEVEL=0")
        with _secrets(context) as secrets:
            super().__init__(plain, context)
            client, secret = secrets()["CLIENT_RANDOM"]
        # behind the heads of the record and of the message, and the version
        server = self.handshake[5 + 4 + 2 :][:32]
        keys = _expanded(bytes.fromhex(secret), server + bytes.fromhex(client))
        self._mac, self._key = keys[:_MAC_KEY], keys[2 * _MAC_KEY :][:_KEY]

    def empty(self, count: int) -> bytes:
        """So many records, the first ones behind the handshake."""
        return b"".join(self._empty(number) for number in range(1, count + 1))

    def _empty(self, number: int) -> bytes:
        head = struct.pack(">QBHH", number, DATA, _VERSION, 0)
        mac = hmac.digest(self._mac, head, "sha256")
        padded = mac + bytes([_BLOCK - 1]) * _BLOCK
        start = os.urandom(_BLOCK)
        cipher = Cipher(algorithms.AES(self._key), modes.CBC(start)).encryptor()
        body = start + cipher.update(padded)
        return struct.pack(">BHH", DATA, _VERSION, len(body)) + body


class AnyRecords(TlsStream):
    """A connection of TLS 1.3 that sends records of any kind, once it has shaken hands.

    `behind` stands behind the message by which the handshake ends, in the same record.
    """

    _secret: bytes

    def __init__(self, plain: socket.socket, behind: bytes = b"") -> None:
        context = trusting()
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._behind = behind
        with _secrets(context) as self._secrets:
            super().__init__(plain, context)
            _, secret = self._secrets()["CLIENT_TRAFFIC_SECRET_0"]
        suite = self._tls.cipher()
        assert suite is not None
        assert suite[0] == _SUITE, suite
        self._use(bytes.fromhex(secret))

    def sendall(self, data: bytes, /) -> None:
        """Send data as an ordinary client does."""
        most = 1 << 14
        parts = (data[start : start + most] for start in range(0, len(data), most))
        self.plain.sendall(b"".join(self.record(DATA, part) for part in parts))

    def record(self, kind: int, body: bytes, padding: int = 0) -> bytes:
        """The next record, with so many zeros behind what it says."""
        inner = body + bytes([kind]) + bytes(padding)
        head = struct.pack(">BHH", DATA, _VERSION, len(inner) + _TAG)
        nonce = int.from_bytes(self._start) ^ self._number
        self._number += 1
        return head + self._cipher.encrypt(nonce.to_bytes(_NONCE), inner, head)

    def key_updates(self, count: int = 1, *, asks: bool = False) -> bytes:
        """A record after which the next ones have another key; `asks` for the same of the other."""
        record = self.record(HANDSHAKE, (ASKING if asks else KEYS) * count)
        for _ in range(count):
            self._secret = _labelled(self._secret, b"traffic upd", len(self._secret))
        self._use(self._secret)
        return record

    def _ending(self, records: bytes) -> bytes:
        if not self._behind:
            return records
        _, secret = self._secrets()["CLIENT_HANDSHAKE_TRAFFIC_SECRET"]
        self._use(bytes.fromhex(secret))
        # behind one that is no more than a sign for what stands between
        last = records.rindex(struct.pack(">BH", DATA, _VERSION))
        head, body = records[last:][:5], records[last:][5:]
        nonce, kind = self._start, bytes([HANDSHAKE])
        message = self._cipher.decrypt(nonce, body, head).removesuffix(kind)
        return records[:last] + self.record(HANDSHAKE, message + self._behind)

    def _use(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._cipher = AESGCM(_labelled(secret, b"key", _LONG_KEY))
        self._start = _labelled(secret, b"iv", _NONCE)


def trusting() -> ssl.SSLContext:
    """A client's context that believes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def _secrets(context: ssl.SSLContext) -> Iterator[Callable[[], dict[str, list[str]]]]:
    """What its connections agree on, by name: the client's random number, and the secret."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "secrets"
        context.keylog_filename = os.fspath(file)

        def found() -> dict[str, list[str]]:
            lines = (line.split() for line in file.read_text().splitlines() if line[:1] != "#")
            return {name: values for name, *values in lines}

        yield found


def _labelled(secret: bytes, label: bytes, length: int) -> bytes:
    """A key of a connection by TLS 1.3 (RFC 8446, 7.1), which is no longer than a hash."""
    name = b"tls13 " + label
    info = struct.pack(">HB", length, len(name)) + name + b"\0\1"
    return hmac.digest(secret, info, _HASH)[:length]


def _expanded(secret: bytes, seed: bytes) -> bytes:
    """The keys of a connection (RFC 5246, 6.3): both for MACs, then both for records."""
    seed, found = b"key expansion" + seed, b""
    link = seed
    while len(found) < 2 * (_MAC_KEY + _KEY):
        link = hmac.digest(secret, link, "sha256")
        found += hmac.digest(secret, link + seed, "sha256")
    return found
