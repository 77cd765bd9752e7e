"""The REST API of Kafka Connect: configs in, states out, errors in our own words."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import requests

from mesh_events.errors import InfrastructureError, RefusedError
from processors.connect.failures import reason_of
from processors.http_deadline import IDENTITY, new_session, read_whole

_TIMEOUT_S = 30.0
_WHOLE = 3
"""Times the patience with a part of an answer in which all of it has come."""
LONGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer: each connector's config and states, and what its failed tasks say."""
_REBALANCING = 409
_PATIENCE_S = 15
"""For so long a worker that takes part in a rebalance is asked again, as it wants to be."""


@dataclass(frozen=True, slots=True)
class Part:
    """A connector (`task` None) or one of its tasks; `trace` tells why it has failed."""

    task: int | None
    state: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A connector as Connect has it: its config without `name`, and the states of its parts.

    `planned`: how many tasks it is to have; one that has not started yet has no state.
    """

    name: str
    kind: str
    config: Mapping[str, str]
    connector: Part
    tasks: tuple[Part, ...]
    planned: int = 0

    @property
    def failed(self) -> list[Part]:
        """What of it has failed, the connector itself first."""
        return [part for part in (self.connector, *self.tasks) if part.state == "FAILED"]

    @property
    def runs(self) -> bool:
        """Whether it and all of its tasks run, and there is a task."""
        return bool(self.tasks) and all(
            part.state == "RUNNING" for part in (self.connector, *self.tasks)
        )

    @property
    def is_still(self) -> bool:
        """Whether it is stopped, and no task of it is left."""
        return self.connector.state == "STOPPED" and not self.tasks

    @property
    def failure(self) -> str | None:
        """Why a part of it has failed."""
        return cause(self.failed[0]) if self.failed else None


class Connect:
    """One Connect cluster.

    Every method raises InfrastructureError where it does not answer, and RefusedError
    `unknown_connector` or `invalid_connector`; what Connect said stands in the error's `text`.

    Args:
        url: base address.
        login: user and password.
    """

    def __init__(self, url: str, login: tuple[str, str]) -> None:
        self.url, self._login = url.rstrip("/"), login

    @property
    def is_stopped(self) -> bool:
        """Whether nothing runs there until somebody needs it."""
        return False

    def _locate(self) -> None:
        """Find where it answers, before each call."""

    def _lose(self) -> None:
        """Whoever answered, or did not, was not this worker."""

    def deployed(self, patience_s: float = _TIMEOUT_S) -> dict[str, Deployed]:
        """Every connector, by name; each part of an answer is waited for so many seconds.

        One that is not there need not be gone: a worker lists none before it has read its configs.
        """
        path = "/connectors?expand=status&expand=info"
        told: dict[str, Any] = self._call("GET", path, patience_s=patience_s)
        try:
            return {
                name: _deployed(name, found)
                for name, found in told.items()
                # one that is just being made has no status yet, or no config
                if "status" in found and "info" in found
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise self._strange("/connectors") from error

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        found = self._call("GET", f"/connectors/{_quoted(name)}/topics", name)
        return sorted(found.get(name, {}).get("topics", []))

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector, or change its config."""
        self._call("PUT", f"/connectors/{_quoted(name)}/config", name, dict(config))

    def delete(self, name: str) -> bool:
        """Remove a connector; whether there was one, also where it is not listed yet."""
        return self._ended("DELETE", f"/connectors/{_quoted(name)}", name)

    def stop(self, name: str) -> bool:
        """Let a connector stand still, with its config and position; whether there is one."""
        return self._ended("PUT", f"/connectors/{_quoted(name)}/stop", name)

    def resume(self, name: str) -> None:
        """Let a stopped or paused connector go on where it stood."""
        self._call("PUT", f"/connectors/{_quoted(name)}/resume", name)

    def restart(self, name: str, *, failed_only: bool) -> None:
        """Start a connector and its tasks again, or what of it has failed."""
        only = str(failed_only).lower()
        path = f"/connectors/{_quoted(name)}/restart?includeTasks=true&onlyFailed={only}"
        self._call("POST", path, name)

    def worker(self) -> dict[str, str]:
        """The worker's version, and the id of the Kafka cluster where it keeps its own topics."""
        found: dict[str, str] = self._call("GET", "/")
        return found

    def _strange(self, path: str) -> InfrastructureError:
        return InfrastructureError(
            f"what answers at {self.url}{path} is not Kafka Connect as it is known here",
            retriable=True,
        )

    def plugins(self, *, every: bool = False) -> list[dict[str, str]]:
        """Class, type and version of each connector that there is; or of every plugin."""
        only = str(not every).lower()
        found: list[dict[str, str]] = self._call("GET", f"/connector-plugins?connectorsOnly={only}")
        return found

    def plugin(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """The plugin that a config names; raises RefusedError for one that there is not.

        To that Connect itself answers as if something of its own had gone wrong.
        """
        kind = config.get("connector.class", "")
        found = next((one for one in self.plugins() if kind in _names(one["class"])), None)
        if found is None:
            raise RefusedError(
                "invalid_connector",
                f"{name}: connector.class: the worker has no {kind}: see `sdm connect plugins`",
            )
        return found

    def faults(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """Setting -> what the connector's own definition says against it; {} for a valid config.

        Nothing is deployed; a connector may look at its database to tell.
        """
        kind = config["connector.class"]
        path = f"/connector-plugins/{_quoted(kind)}/config/validate"
        found = self._call("PUT", path, name, {**config, "name": name})
        try:
            return {
                one["value"]["name"]: "; ".join(one["value"]["errors"])
                for one in found["configs"]
                if one["value"]["errors"]
            }
        except (KeyError, TypeError) as error:
            raise self._strange(path) from error

    def _ended(self, method: str, path: str, name: str) -> bool:
        try:
            self._call(method, path, name)
        except RefusedError as error:
            if error.code != "unknown_connector":
                raise
            return False
        return True

    def _call(
        self,
        method: str,
        path: str,
        name: str = "",
        body: dict[str, str] | None = None,
        *,
        patience_s: float = _TIMEOUT_S,
    ) -> Any:
        self._locate()
        doing = f"Kafka Connect at {self.url}"
        deadline = time.monotonic() + min(_PATIENCE_S, patience_s)
        while True:
            try:
                answer = self._reply(method, path, body, patience_s)
            except requests.RequestException as error:
                self._lose()
                raise InfrastructureError(
                    f"{doing} does not answer ({type(error).__name__}): see `sdm status`",
                    retriable=True,
                ) from error
            if answer.status != _REBALANCING or time.monotonic() > deadline:
                break
            time.sleep(0.3)
        if answer.status == requests.codes.unauthorized:
            self._lose()
        if answer.status == requests.codes.not_found:
            raise RefusedError("unknown_connector", f"{doing} has no connector {name}")
        if answer.status == requests.codes.bad_request:
            refusal = RefusedError("invalid_connector", f"{name}: Connect refuses the config")
            refusal.text = _reason(answer)
            raise refusal
        if not answer.is_good:
            fault = InfrastructureError(
                f"{doing} answered {answer.status} to {method} {path}", retriable=False
            )
            fault.text = _reason(answer)
            raise fault
        try:
            return json.loads(answer.content) if answer.content else {}
        except (ValueError, RecursionError) as error:
            raise self._strange(path) from error

    def _reply(
        self, method: str, path: str, body: dict[str, str] | None, patience_s: float
    ) -> "_Answer":
        """One answer, whatever its status.

        Raises requests.RequestException where none comes, or too much.
        """
        whole_s = _WHOLE * patience_s
        until = time.monotonic() + whole_s
        with (
            new_session(whole_s) as session,
            session.request(
                method,
                self.url + path,
                auth=self._login,
                json=body,
                timeout=patience_s,
                headers=IDENTITY,
                # Connect sends nobody elsewhere, and a config must not go there
                allow_redirects=False,
                stream=True,
            ) as found,
        ):
            content = read_whole(found, LONGEST_ANSWER)
            answer = _Answer(found.status_code, found.ok and not found.is_redirect, content)
        # one that was cut looks like one that is short
        if time.monotonic() > until:
            raise requests.Timeout
        return answer


class _Answer(NamedTuple):
    status: int
    is_good: bool
    content: bytes


def cause(part: Part) -> str:
    """Why a part has failed; its state where Connect gives no trace."""
    return reason_of(part.trace) if part.trace else part.state


def _deployed(name: str, found: Mapping[str, Any]) -> Deployed:
    status, info = found["status"], found["info"]
    return Deployed(
        name=name,
        kind=info["type"],
        config={setting: value for setting, value in info["config"].items() if setting != "name"},
        connector=_part(None, status["connector"]),
        tasks=tuple(_part(one["id"], one) for one in status["tasks"]),
        planned=len(info["tasks"]),
    )


def _part(task: int | None, found: Mapping[str, Any]) -> Part:
    return Part(task, found["state"], str(found.get("trace") or ""))


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _names(kind: str) -> set[str]:
    """The names by which Connect finds a class: its own, and the short ones."""
    short = kind.rpartition(".")[2]
    return {kind, short, short.removesuffix("Connector")}


def _reason(answer: _Answer) -> str:
    text = answer.content.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError, AttributeError):
        text = str(json.loads(answer.content).get("message", text))
    return " ".join(text.split())
