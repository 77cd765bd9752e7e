"""TLS by hand: records that no ordinary client sends."""

import hmac
import os
import socket
import ssl
import struct
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

_DATA, _VERSION = 0x17, 0x303
_MAC_KEY, _KEY, _BLOCK = 32, 16, 16


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
        self.plain.sendall(self._goes.read())

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

    def _receive(self) -> bytes:
        came = self.plain.recv(1 << 16)
        self._came.write(came)
        return came


class EmptyRecords(TlsStream):
    """A connection of TLS 1.2 that sends records without data, once it has shaken hands."""

    def __init__(self, plain: socket.socket) -> None:
        context = trusting()
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256@SECLEVEL=0")
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "secrets"
            context.keylog_filename = os.fspath(told)
            super().__init__(plain, context)
            _, client, secret = told.read_text().partition("CLIENT_RANDOM")[2].split(" ")
        # behind the heads of the record and of the message, and the version
        server = self.handshake[5 + 4 + 2 :][:32]
        keys = _expanded(bytes.fromhex(secret), server + bytes.fromhex(client))
        self._mac, self._key = keys[:_MAC_KEY], keys[2 * _MAC_KEY :][:_KEY]

    def empty(self, count: int) -> bytes:
        """So many records, the first ones behind the handshake."""
        return b"".join(self._empty(number) for number in range(1, count + 1))

    def _empty(self, number: int) -> bytes:
        head = struct.pack(">QBHH", number, _DATA, _VERSION, 0)
        mac = hmac.digest(self._mac, head, "sha256")
        padded = mac + bytes([_BLOCK - 1]) * _BLOCK
        start = os.urandom(_BLOCK)
        cipher = Cipher(algorithms.AES(self._key), modes.CBC(start)).encryptor()
        body = start + cipher.update(padded)
        return struct.pack(">BHH", _DATA, _VERSION, len(body)) + body


def trusting() -> ssl.SSLContext:
    """A client's context that believes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _expanded(secret: bytes, seed: bytes) -> bytes:
    """The keys of a connection (RFC 5246, 6.3): both for MACs, then both for records."""
    seed, found = b"key expansion" + seed, b""
    link = seed
    while len(found) < 2 * (_MAC_KEY + _KEY):
        link = hmac.digest(secret, link, "sha256")
        found += hmac.digest(secret, link + seed, "sha256")
    return found
