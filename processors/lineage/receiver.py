"""An OpenLineage receiver over HTTP, such as Marquez: what it is sent, and what its answer means.

OpenLineage's own transport is not used: it writes an event anew before it sends it, drops the path
of a base address, tries again by itself, and follows a redirect, by which a POST becomes a GET.
"""

import re
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from mesh_events.emit import software
from mesh_events.errors import ConfigurationError
from processors.http_deadline import new_session

CONNECT_S, ANSWER_S = 5.0, 10.0
"""A connection is waited for so long, and each part of an answer."""
_WHOLE = 3
"""Times an answer's part in which all of it has come, letter by letter or not."""
_LATE = "no answer in time"
_SMALL = 64 * 1024
_LENGTH = re.compile(r"[0-9]{1,9}")
"""An answer up to so many bytes is read, so that the connection can be used again."""
_LATER = frozenset({408, 429, 502, 503, 504})


class Outcome(Enum):
    """What became of one event."""

    TAKEN = auto()
    REFUSED = auto()
    """The receiver does not want it, now or later."""
    FAILED = auto()
    """The receiver may have got it, and failed over it."""
    AWAY = auto()
    """The receiver is not there, or asks to wait: that has nothing to do with the event."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`reason` is for people, and holds nothing that the receiver wrote: it may quote the event."""

    outcome: Outcome
    reason: str


class Receiver(Protocol):
    """Who takes lineage."""

    def send(self, event: bytes) -> Answer:
        """Send one event, as JSON in UTF-8; raises nothing, and takes some seconds at most."""


class HttpReceiver:
    """A receiver at an address.

    Proxies and CA bundle of the environment count, as for everything that speaks HTTP here; a login
    of `~/.netrc` does not.

    Args:
        url: base address, http or https; a path in it stays.
        endpoint: path below it.
        key: API key, sent as a bearer's token; None for none.
        answer_s: each part of an answer is waited for so long, seconds, all of it three times that.

    Raises ConfigurationError for an address or a key that cannot be used; the text shows no key.
    """

    def __init__(
        self, url: str, endpoint: str, key: str | None, answer_s: float = ANSWER_S
    ) -> None:
        self._address = _address(url, endpoint)
        self._timeout, self._whole_s = (CONNECT_S, answer_s), _WHOLE * answer_s
        self._session = new_session(self._whole_s)
        self._session.auth = _Bearer(key)
        self._session.headers["User-Agent"] = software()
        self._session.headers["Content-Type"] = "application/json"

    def send(self, event: bytes) -> Answer:
        """Send one event; see `Receiver`."""
        until = time.monotonic() + self._whole_s
        try:
            response = self._session.post(
                self._address,
                data=event,
                timeout=self._timeout,
                allow_redirects=False,
                # how much comes is the receiver's choice
                stream=True,
            )
            _finish(response)
        except requests.RequestException as error:
            return _unanswered(error)
        # an answer that was cut looks like one that is short
        if time.monotonic() > until:
            return Answer(Outcome.FAILED, _LATE)
        return Answer(_meaning(response.status_code), f"answered {response.status_code}")

    def close(self) -> None:
        """Leave the receiver."""
        self._session.close()


class _Bearer(AuthBase):
    """Sets the key; with any other login, or none at all, requests would look into `~/.netrc`."""

    def __init__(self, key: str | None) -> None:
        # what cannot stand in a header would be quoted in an error
        if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key):
            raise ConfigurationError(
                "the key that SDM_LINEAGE_API_KEY names cannot be sent: it must be one line of "
                "printable ASCII without spaces around it"
            )
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key is not None:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _address(url: str, endpoint: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            "SDM_LINEAGE_URL must be http(s)://host[:port][/path], without a login: a key is named "
            "by SDM_LINEAGE_API_KEY"
        )
    return f"{url.rstrip('/')}/{endpoint.lstrip('/')}"


def _finish(response: requests.Response) -> None:
    length = response.headers.get("Content-Length", "")
    if _LENGTH.fullmatch(length) and int(length) <= _SMALL:
        _ = response.content
    response.close()


def _meaning(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome.TAKEN
    # a redirect tells that the address is not the receiver's
    if status in _LATER or 300 <= status < 400:
        return Outcome.AWAY
    return Outcome.REFUSED if 400 <= status < 500 else Outcome.FAILED


def _unanswered(error: requests.RequestException) -> Answer:
    if isinstance(error, requests.exceptions.SSLError):
        return Answer(Outcome.AWAY, "no TLS with it")
    cause = getattr(error.args[0], "reason", None) if error.args else None
    if isinstance(error, requests.exceptions.ProxyError):
        return Answer(Outcome.AWAY, "no way through the proxy")
    if isinstance(cause, NewConnectionError | ConnectTimeoutError):
        return Answer(Outcome.AWAY, "cannot be reached")
    if isinstance(error, requests.Timeout):
        return Answer(Outcome.FAILED, _LATE)
    return Answer(Outcome.FAILED, f"no answer ({type(error).__name__})")
