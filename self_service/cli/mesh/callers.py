"""Who is at the keyboard: the operator or a domain, its key, its Kafka login, its actor id."""

import os
from dataclasses import dataclass
from pathlib import Path

from mesh_events.errors import ConfigurationError, RefusedError
from mesh_events.intents import intents_login
from mesh_events.meta import MESH_DOMAIN, require_actor
from mesh_events.settings import caller_path, key_path


@dataclass(frozen=True, slots=True)
class Caller:
    """In whose name a command acts.

    domain: `meta.domain` of what it says
    principal: its Kafka user
    key: name of its signing key, see `mesh_events.settings.key_path`
    """

    domain: str
    principal: str
    key: str

    @property
    def writer(self) -> str:
        """The Kafka user that appends what it submits to the log."""
        return self.principal if self.domain == MESH_DOMAIN else intents_login(self.domain)


OPERATOR = Caller(MESH_DOMAIN, "mesh.operator", "operator")


ROLES = frozenset({"root", "operator", "governor", "controller"})
"""Names of the mesh's own signing keys; no domain may have its key there."""


def caller(domain: str) -> Caller:
    """The caller that a domain's name stands for; `mesh` is the operator.

    Raises RefusedError for what cannot be a domain, see `judge`.
    """
    if domain == MESH_DOMAIN:
        return OPERATOR
    judge(domain)
    return Caller(domain, domain, domain)


def judge(name: str) -> None:
    """Refuse what cannot be a domain's name: it becomes the name of a key file and a login.

    Raises RefusedError with the governor's own code and sentence.
    """
    from projections.deciding.verdict import Refusal
    from projections.rules import names

    try:
        names.domain(name)
    except Refusal as refusal:
        raise RefusedError(refusal.rejected.code, refusal.rejected.reason) from refusal


def current_domain(home: Path) -> str | None:
    """`$SDM_DOMAIN`, else what `sdm switch-domain` stored, else None."""
    if chosen := os.environ.get("SDM_DOMAIN"):
        return chosen
    try:
        return _place(home).read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None


def choose_domain(home: Path, domain: str) -> None:
    """Store the current domain."""
    from mesh_events.files import write_atomically

    write_atomically(_place(home), f"{domain}\n")


def acting_as(home: Path, domain: str | None) -> Caller:
    """Who says an intent; raises ConfigurationError where no domain is chosen."""
    name = domain or current_domain(home)
    if name is None:
        raise ConfigurationError(
            "no current domain: run `sdm switch-domain NAME`, or give --domain NAME"
        )
    return caller(name)


def known_keys(home: Path) -> list[str]:
    """Domains whose signing key lies here, `mesh` for the operator's."""
    found = sorted(path.stem for path in key_path(home, "root").parent.glob("*.key"))
    operators = [MESH_DOMAIN] if "operator" in found else []
    return [name for name in found if name not in ROLES] + operators


def actor_id(given: str | None) -> str:
    """The id of who acts: given, `$SDM_ACTOR`, or the OS user's number; never a personal name.

    Raises RefusedError for what is no id; that no domain acts as the mesh, `Emitter` checks.
    """
    found = given or os.environ.get("SDM_ACTOR") or f"uid-{os.getuid()}"
    require_actor(found, MESH_DOMAIN)
    return found


def _place(home: Path) -> Path:
    return caller_path(home)
