"""A schema registry over HTTP, for what its client's library does not offer."""

import json
import time
from typing import Any

import requests

from mesh_events.errors import InfrastructureError
from processors.http_deadline import IDENTITY, AnswerTooLargeError, new_session, read_whole

_TIMEOUT_S = 10
_WHOLE = 3
"""Times the timeout in which all of an answer has come, its status line and headers among it."""
LONGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer; a schema has a million characters, a list of subjects less than this."""
_REFUSED = (requests.codes.unauthorized, requests.codes.forbidden)


class RegistryRest:
    """A registry with the Confluent API; methods raise InfrastructureError.

    Args:
        url: base address of the Confluent API.
        user, password: who asks.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url, self._login = url.rstrip("/"), (user, password)

    def ask(self, method: str, place: str, *, conflict: bool = False, **more: Any) -> Any:
        """The answer's JSON, {} for an empty one.

        None for 404, and for 409 where a `conflict` is an answer.
        """
        answer = self.call(method, place, conflict=conflict, **more)
        if not answer:
            return None if answer is None else {}
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise self.unexpected() from error

    def call(self, method: str, place: str, *, conflict: bool = False, **more: Any) -> bytes | None:
        """The answer itself; `place` is below the base, or an address of its own."""
        doing = f"the registry at {self.url}"
        until = time.monotonic() + _WHOLE * _TIMEOUT_S
        try:
            with (
                new_session(_WHOLE * _TIMEOUT_S) as session,
                session.request(
                    method,
                    place if "://" in place else self.url + place,
                    auth=self._login,
                    timeout=_TIMEOUT_S,
                    headers={**IDENTITY, **more.pop("headers", {})},
                    # a login is for this server, and no other
                    allow_redirects=False,
                    stream=True,
                    **more,
                ) as answer,
            ):
                content = read_whole(answer, LONGEST_ANSWER)
        except AnswerTooLargeError as error:
            raise self._endless() from error
        except requests.exceptions.ContentDecodingError as error:
            # it was asked for as it is
            raise self.unexpected() from error
        except requests.RequestException as error:
            if time.monotonic() > until:
                raise self._endless() from error
            raise InfrastructureError(
                f"{doing} does not answer ({type(error).__name__})", retriable=True
            ) from error
        # one that was cut looks like one that is empty
        if time.monotonic() > until:
            raise self._endless()
        if answer.status_code == requests.codes.not_found:
            return None
        if conflict and answer.status_code == requests.codes.conflict:
            return None
        if answer.status_code in _REFUSED:
            raise InfrastructureError(
                f"{doing} refuses the login {self._login[0]}", retriable=False
            )
        if not answer.ok or answer.is_redirect:
            raise InfrastructureError(
                f"{doing} answered {answer.status_code} to {method} {place}", retriable=False
            )
        return content

    def _endless(self) -> InfrastructureError:
        return InfrastructureError(
            f"the registry at {self.url} answers more than {LONGEST_ANSWER} bytes, or for longer "
            f"than {_WHOLE * _TIMEOUT_S} s: see what answers there",
            retriable=True,
        )

    def unexpected(self) -> InfrastructureError:
        """It answers what no registry would."""
        return InfrastructureError(
            f"what answers at {self.url} is no schema registry: give the base of its Confluent "
            "API, such as http://host:port/apis/ccompat/v7",
            retriable=False,
        )
