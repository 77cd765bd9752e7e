"""The REST API of Kafka Connect: configs in, states out, errors in our own words."""

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mesh_events.errors import InfrastructureError, RefusedError, WaitTimeoutError
from self_service.cli.exits import NotFoundError

if TYPE_CHECKING:
    from self_service.cli.context import Mesh

_TIMEOUT_S = 30
_RESTART_S = 5
_REBALANCING = 409
_HIDDEN = "(hidden)"
_REFERENCE = re.compile(r"""^\$\{[^}]+\}$|password\s*=\s*["']?\$\{[^}]+\}""")
"""A setting that is a reference, or a login line whose password is one."""
_SECRET_WORDS = ("password", "secret", "token", "jaas", "credential", "passphrase", "userinfo")


class Connectors:
    """The connectors of one Connect worker.

    url: base address; login: user and password
    """

    def __init__(self, url: str, login: tuple[str, str]) -> None:
        self._url, self._login = url.rstrip("/"), login

    @classmethod
    def of(cls, mesh: "Mesh") -> "Connectors":
        """The worker of the local platform."""
        from mesh_events.references import resolve

        ends = mesh.endpoints
        return cls(ends.connect_url, (ends.connect_user, resolve(ends.connect_password)))

    def states(self) -> dict[str, Any]:
        """Connector name -> status and info, as Connect tells them."""
        found: dict[str, Any] = self._call("GET", "/connectors?expand=status&expand=info")
        return found

    def config(self, name: str) -> dict[str, str]:
        """A connector's config; raises NotFoundError."""
        found: dict[str, str] = self._call("GET", f"/connectors/{name}/config", name)
        return found

    def status(self, name: str) -> dict[str, Any]:
        """A connector's status; raises NotFoundError."""
        found: dict[str, Any] = self._call("GET", f"/connectors/{name}/status", name)
        return found

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has written."""
        found = self._call("GET", f"/connectors/{name}/topics", name)
        return sorted(found.get(name, {}).get("topics", []))

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make or change a connector; raises RefusedError with Connect's reason."""
        self._call("PUT", f"/connectors/{name}/config", name, dict(config))

    def restart_failed(self, name: str) -> None:
        """Start again what of a connector has failed; raises NotFoundError."""
        failed = "includeTasks=true&onlyFailed=true"
        self._call("POST", f"/connectors/{name}/restart?{failed}", name)
        deadline = time.monotonic() + _RESTART_S
        # until Connect has told the restart to itself, it still answers with the old failure
        while time.monotonic() < deadline and _failed(_parts(self.status(name))):
            time.sleep(0.1)

    def worker(self) -> dict[str, str]:
        """The worker's version, and the id of the Kafka cluster where it keeps its own topics."""
        found: dict[str, str] = self._call("GET", "/")
        return found

    def plugins(self, *, every: bool = False) -> list[dict[str, str]]:
        """Class, type and version of each connector that the worker has; or of every plugin."""
        only = str(not every).lower()
        found: list[dict[str, str]] = self._call("GET", f"/connector-plugins?connectorsOnly={only}")
        return found

    def require_class(self, name: str, config: Mapping[str, str]) -> None:
        """Raise RefusedError for a class that the worker does not have.

        To that Connect itself answers as if something of its own had gone wrong.
        """
        kind = config.get("connector.class")
        if kind not in _names(self.plugins()):
            what = f"the worker has no {kind}" if kind else "it is missing"
            raise RefusedError(
                "invalid_connector",
                f"{name}: connector.class: {what}: see `sdm connect plugins`",
            )

    def faults(self, name: str, config: Mapping[str, str]) -> dict[str, str]:
        """Setting -> what the connector's own definition says against it; {} for a valid config.

        Nothing is deployed; a connector may look at its source to tell. Raises as `require_class`.
        """
        self.require_class(name, config)
        kind = config["connector.class"]
        path = f"/connector-plugins/{quote(kind, safe='')}/config/validate"
        found = self._call("PUT", path, name, {**config, "name": name})
        return {
            one["value"]["name"]: "; ".join(one["value"]["errors"])
            for one in found["configs"]
            if one["value"]["errors"]
        }

    def stop(self, name: str) -> None:
        """Let a connector stand still; its config and its position stay. Raises NotFoundError."""
        self._call("PUT", f"/connectors/{name}/stop", name)

    def resume(self, name: str) -> None:
        """Let a stopped connector go on where it stood; raises NotFoundError."""
        self._call("PUT", f"/connectors/{name}/resume", name)

    def restart(self, name: str) -> None:
        """Start a connector and all of its tasks again; raises NotFoundError."""
        self._call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=false", name)

    def await_stopped(self, name: str, timeout: float) -> dict[str, Any]:
        """Wait until a connector has no task any more; returns the status."""
        deadline = time.monotonic() + timeout
        while True:
            status = self.status(name)
            if status["connector"]["state"] == "STOPPED" and not status["tasks"]:
                return status
            if time.monotonic() > deadline:
                raise WaitTimeoutError(
                    f"connector {name} does not stop within {timeout:g} s: look again with "
                    f"`sdm connect connector describe {name}`"
                )
            time.sleep(0.1)

    def known(self, name: str) -> bool:
        """Whether a connector of this name is deployed."""
        found: list[str] = self._call("GET", "/connectors")
        return name in found

    def drop(self, name: str) -> None:
        """Remove a connector; raises NotFoundError."""
        self._call("DELETE", f"/connectors/{name}", name)

    def await_running(self, name: str, timeout: float) -> dict[str, Any]:
        """Wait until the connector and at least one task run; returns the status.

        Raises:
            InfrastructureError: one has failed; the text is the first line of its trace.
            WaitTimeoutError: not within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while True:
            status = self._status_or_none(name)
            parts = _parts(status) if status else []
            for part in _failed(parts):
                raise InfrastructureError(
                    f"connector {name} failed: {first_line(part)}; mend the cause, then add "
                    "it again, or drop it with `sdm connect connector drop`",
                    retriable=False,
                )
            if status and len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts):
                return status
            if time.monotonic() > deadline:
                seen = ", ".join(part["state"] for part in parts) or "nothing"
                raise WaitTimeoutError(
                    f"connector {name} does not run within {timeout:g} s (seen: {seen}): look "
                    f"again with `sdm connect connector describe {name}`"
                )
            # Connect offers no way to wait for a state
            time.sleep(0.2)

    def _status_or_none(self, name: str) -> dict[str, Any] | None:
        try:
            return self.status(name)
        except NotFoundError:
            # a new connector has no status until a worker has taken it
            return None

    def _call(
        self, method: str, path: str, name: str = "", body: dict[str, str] | None = None
    ) -> Any:
        import requests

        doing = f"Kafka Connect at {self._url}"
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                answer = requests.request(
                    method,
                    self._url + path,
                    auth=self._login,
                    json=body,
                    timeout=_TIMEOUT_S,
                    # Connect sends nobody elsewhere, and a config must not go there
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                raise InfrastructureError(
                    f"{doing} does not answer ({type(error).__name__}): see `sdm status`",
                    retriable=True,
                ) from error
            if answer.status_code != _REBALANCING or time.monotonic() > deadline:
                break
            # the worker takes part in a rebalance; it asks to be asked again
            time.sleep(0.3)
        if answer.status_code == requests.codes.not_found:
            raise NotFoundError(f"no connector {name}: see `sdm connect connector deployed`")
        if answer.status_code == requests.codes.bad_request:
            raise RefusedError("invalid_connector", f"{doing} refuses {name}: {_reason(answer)}")
        if not answer.ok or answer.is_redirect:
            raise InfrastructureError(
                f"{doing} answered {answer.status_code}: {_reason(answer)}", retriable=False
            )
        return answer.json() if answer.content else {}


def _names(plugins: list[dict[str, str]]) -> set[str]:
    """The names by which Connect finds a class: its own, and the short ones."""
    short = {one["class"].rpartition(".")[2] for one in plugins}
    return {one["class"] for one in plugins} | short | {n.removesuffix("Connector") for n in short}


def _reason(answer: Any) -> str:
    try:
        text = str(answer.json().get("message", answer.text))
    except ValueError:
        text = answer.text
    return " ".join(text.split())[:600]


def _parts(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [status["connector"], *status["tasks"]]


def _failed(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if part["state"] == "FAILED"]


def first_line(part: Mapping[str, Any]) -> str:
    """The cause in a failed part's trace: its last `Caused by`, else the first line."""
    lines = str(part.get("trace") or part["state"]).splitlines()
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0]).rstrip(".")


def states_of(status: Mapping[str, Any]) -> dict[str, Any]:
    """State of the connector and of its tasks, and why one of them has failed."""
    failed = _failed(_parts(status))
    return {
        "state": status["connector"]["state"],
        "tasks": [part["state"] for part in status["tasks"]],
        "failure": first_line(failed[0]) if failed else None,
    }


def redacted(config: Mapping[str, str]) -> dict[str, str]:
    """A config for people: what may be a secret is shown only where it is a reference."""
    return {name: _redacted(name, value) for name, value in sorted(config.items())}


def _redacted(name: str, value: str) -> str:
    secret = any(word in name.casefold() for word in _SECRET_WORDS)
    return value if not secret or _REFERENCE.search(value) else _HIDDEN


def plain_secrets(config: Mapping[str, str]) -> list[str]:
    """Names of settings that hold a secret itself instead of a reference."""
    return [name for name, value in sorted(config.items()) if _redacted(name, value) == _HIDDEN]
