"""HTTP with a bound of the time that a server may take, and of the size of what it answers.

A timeout of `requests` is for each part of an answer: a status line that comes letter by letter has
none.
"""

import socket
import threading
from contextlib import suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

IDENTITY = {"Accept-Encoding": "identity"}
"""Headers of a request whose answer `read_whole` reads."""
_PIECE = 65_536


def new_session(most_s: float) -> requests.Session:
    """A session that cuts a connection so many seconds after a request began on it.

    What is asked then ends with `requests.RequestException` or urllib3's `HTTPError`, as where the
    server closes the connection.
    """
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(most_s))
    return session


class AnswerTooLargeError(requests.RequestException):
    """A server sends more than is read of one answer."""


def read_whole(answer: requests.Response, most_bytes: int) -> bytes:
    """Return the body of an answer asked for with `stream`; it must be sent as it is.

    Raises:
        AnswerTooLargeError: it is longer; what follows is not read.
        requests.ConnectionError: it ends too early.
        requests.exceptions.ContentDecodingError: it is packed, and may unpack to nothing for ever.
    """
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise requests.exceptions.ContentDecodingError(answer.headers["Content-Encoding"])
    content = bytearray()
    try:
        # what has come by now: a whole piece may never come
        while piece := answer.raw.read1(_PIECE, decode_content=True):
            content += piece
            if len(content) > most_bytes:
                raise AnswerTooLargeError(f"more than {most_bytes} bytes")
    except HTTPError as error:
        raise requests.ConnectionError(error) from error
    return bytes(content)


class _Bounded:
    """A connection whose requests end by themselves."""

    most_s: float
    sock: Any
    _timer: threading.Timer | None = None
    _is_answered = False

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]  # the connection's
        self._start()

    def request(self, *args: Any, **kwargs: Any) -> None:
        # of one that was used before; a new one connects in here
        self._start()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def getresponse(self) -> Any:
        # one that is not kept is closed in here, and its body is still to come
        self._is_answered = True
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            self._is_answered = False

    def close(self) -> None:
        if not self._is_answered:
            self.stop()
        super().close()  # type: ignore[misc]

    def _start(self) -> None:
        self.stop()
        self._timer = threading.Timer(self.most_s, _cut, [self.sock])
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut(sock: Any) -> None:
    # whoever reads from it sees its end; closing it here would give its number to another one
    with suppress(OSError, AttributeError):
        sock.shutdown(socket.SHUT_RDWR)


class _Pool:
    """Connections that are kept for the next request, and are not cut meanwhile."""

    def _put_conn(self, connection: Any) -> None:
        if connection is not None:
            connection.stop()
        super()._put_conn(connection)  # type: ignore[misc]  # the pool's


class _Adapter(HTTPAdapter):
    def __init__(self, most_s: float) -> None:
        plain = type("Plain", (_Bounded, HTTPConnection), {"most_s": most_s})
        tls = type("Tls", (_Bounded, HTTPSConnection), {"most_s": most_s})
        self._pools = {
            "http": type("PlainPool", (_Pool, HTTPConnectionPool), {"ConnectionCls": plain}),
            "https": type("TlsPool", (_Pool, HTTPSConnectionPool), {"ConnectionCls": tls}),
        }
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pools

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self._pools
        return manager
