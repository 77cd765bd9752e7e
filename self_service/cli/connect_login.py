"""The login with which a connector works: its own domain's, at the cluster of its domain's topics.

So Kafka holds a connector to what its domain owns, whatever the config asks for. Three things
make that work:
- settings that override the worker's own login. The password is named, `${dir:FOLDER:FILE}`;
  FILE is a link to the domain's password, there as long as the domain has a connector.
- an offsets topic of the domain's own: an exactly-once source keeps its position in the same
  transaction as its records, so at the same cluster and with the same login.
- a right on the transactional ids, which the worker chooses: `<group>-<connector>-<task>`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mesh_events.errors import ConfigurationError, InvalidValueError, RefusedError
from mesh_events.kafka import SCRAM, jaas
from self_service.cli import connector_secrets
from self_service.cli.brokers import admin
from self_service.cli.logins import home_of

if TYPE_CHECKING:
    from processors.rights import Binding
    from projections.image import Image
    from self_service.cli.context import Mesh

_CLIENTS = ("producer", "consumer", "admin")
_FOLDER = "logins"
_OWN = re.compile(r"(producer|consumer|admin)\.override\.(bootstrap\.|security\.|sasl\.|ssl\.).*")
_USER = re.compile(r'username="([^"]+)"')


@dataclass(frozen=True, slots=True)
class ConnectorLogin:
    """A domain's login for one connector, at the cluster where the domain's topics live."""

    mesh: "Mesh"
    image: "Image"
    domain: str
    connector: str

    @property
    def cluster(self) -> str:
        """The domain's home cluster."""
        return home_of(self.image, self.domain)

    def settings(self) -> dict[str, str]:
        """What the connector's config needs for it; names the password where Connect finds it.

        Raises ConfigurationError where there is no password, or no place for its link.
        """
        servers = self.image.identity.clusters[self.cluster].bootstrap_servers
        password = connector_secrets.reference(self._linked().parent, self.domain)
        # the worker's own clients know how the brokers of the mesh are reached, under TLS or not
        login = {
            "bootstrap.servers": servers,
            "sasl.mechanism": SCRAM,
            "sasl.jaas.config": jaas(self.domain, password),
        }
        overrides = {
            f"{client}.override.{name}": value
            for client in _CLIENTS
            for name, value in login.items()
        }
        return {**overrides, "offsets.storage.topic": f"{self.domain}.connect-offsets"}

    def allow(self, tasks: int) -> None:
        """Let the domain use the transactional ids of the connector's tasks."""
        from processors.rights import Binding, Operation, Resource

        kind = Resource.TRANSACTIONAL_ID
        admin(self.mesh.administration(self.image, self.cluster)).grant(
            Binding(self.domain, Operation.ALL, kind, f"{self._prefix}{task}")
            for task in range(tasks)
        )

    def forbid(self) -> None:
        """Take those rights away again; there may be none."""
        found = admin(self.mesh.administration(self.image, self.cluster))
        found.withdraw(right for right in found.rights(self.domain) if self._is_for_tasks(right))

    def _is_for_tasks(self, right: "Binding") -> bool:
        from processors.rights import Resource

        task = right.name.removeprefix(self._prefix)
        return (
            right.resource is Resource.TRANSACTIONAL_ID
            and right.name.startswith(self._prefix)
            and task.isdecimal()
        )

    def leave(self, deployed: Mapping[str, Mapping[str, str]]) -> None:
        """Remove the link to the domain's password, unless another of its connectors needs it.

        deployed: connector name -> config; this connector may still be among them
        """
        others = (config for name, config in deployed.items() if name != self.connector)
        if not any(domain_of(config) == self.domain for config in others):
            self._place.unlink(missing_ok=True)

    @property
    def _place(self) -> Path:
        return self.mesh.endpoints.connect_secrets / _FOLDER / self.cluster / self.domain

    @property
    def _prefix(self) -> str:
        return f"{self.mesh.endpoints.connect_group}-{self.connector}-"

    def _linked(self) -> Path:
        """The link to the password's file; the file may be replaced when the login is renewed."""
        target = self.mesh.password_path(self.cluster, self.domain)
        if not target.exists():
            raise ConfigurationError(
                f"no password of {self.domain} for cluster {self.cluster} at {target}: the "
                "connector works with this login, so register the domain here, or copy the file"
            )
        place = self._place
        part = place.with_name(f".{place.name}.{os.getpid()}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.unlink(missing_ok=True)
            part.symlink_to(target)
            part.replace(place)
        except OSError as error:
            raise ConfigurationError(f"{place} cannot be written: {error.strerror}") from error
        return place


def require_no_login(config: Mapping[str, str]) -> None:
    """Refuse a config that brings a login of its own."""
    brought = [name for name in sorted(config) if _OWN.fullmatch(name)]
    if brought:
        raise RefusedError(
            "foreign_login",
            f"leave out {', '.join(brought)}: a connector works with the login of its "
            "domain, which is put in by itself",
        )


def without(config: Mapping[str, str]) -> dict[str, str]:
    """A deployed config as its domain gave it: without the login, and Connect's own `name`."""
    put_in = {"offsets.storage.topic", "name"}
    return {
        name: value
        for name, value in config.items()
        if name not in put_in and not _OWN.fullmatch(name)
    }


def domain_of(config: Mapping[str, str]) -> str | None:
    """The domain with whose login a deployed connector works; None for the worker's own."""
    found = _USER.search(config.get("producer.override.sasl.jaas.config", ""))
    return found[1] if found else None


def tasks(config: Mapping[str, str]) -> int:
    """How many tasks a connector may have; raises InvalidValueError."""
    text = config.get("tasks.max", "1")
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise InvalidValueError(f"tasks.max is {text!r}: give a number from 1 to 1000")
    return int(text)
