"""The files that Connect reads secrets from: one folder, and in it what each connector may name.

On the log a secret is `${secret:own/<version>}` or `${secret:shared}`; Connect is told the file.
The folder is readable for the mesh's own account alone.
"""

import os
import secrets
import time
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from pathlib import Path

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET, new_own_secret, version_of
from mesh_events.errors import ConfigurationError, InvalidValueError
from mesh_events.files import write_atomically

SHARED = "postgres-postgres"
"""File of the shared database's password."""
_LOGINS, _OWN = "logins", "own"
UNUSED_S = 3600.0
"""A secret that no config has is kept for so long: one that names it may be on its way."""


class ConnectSecrets:
    """The folder of secrets of one Connect cluster; raises ConfigurationError for its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, connector: str, text: str) -> str:
        """Keep a secret of a connector's own; returns how its config names it.

        Each has a file of its own, so that a config has the secret that came with it, in whatever
        order configs are accepted. Raises InvalidValueError for one that is a reference itself.
        """
        if "${" in text:
            raise InvalidValueError("a password with '${' in it is a reference again")
        reference = new_own_secret()
        self._write(self._own(connector, reference), text)
        return reference

    def remove(self, connector: str, reference: str) -> None:
        """Remove a secret of its own that no config has."""
        self._own(connector, reference).unlink(missing_ok=True)

    def replaced(self, connector: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Note which of its own secrets its config had until now; both as `resolved`."""
        for place in self._owned(connector):
            named = _reference(place)
            if named in before.values() and named not in after.values():
                # whoever updates it at the same time may name it again
                with suppress(FileNotFoundError):
                    os.utime(place)

    def sweep(self, connector: str, named: Container[str]) -> None:
        """Remove its own secrets that were neither stored nor had by a config for an hour.

        Args:
            connector: its id.
            named: values of the configs that it has or may get, as `resolved`.
        """
        for place in self._owned(connector):
            with suppress(FileNotFoundError):
                unused = time.time() - place.stat().st_mtime
                if unused > UNUSED_S and _reference(place) not in named:
                    place.unlink()

    def ensure_login(self, cluster: str, principal: str) -> str:
        """The password of a connector's principal, made now if there is none."""
        place = self._login(cluster, principal)
        if (found := _text(place)) is not None:
            return found
        password = secrets.token_urlsafe(24)
        self._write(place, password)
        return password

    def store_login(self, cluster: str, principal: str, password: str) -> None:
        """Keep the password of a principal that somebody else has chosen."""
        self._write(self._login(cluster, principal), password)

    def principals(self) -> set[str]:
        """Those whose passwords are kept, of every cluster."""
        return {place.name for place in self._logins()}

    def forget_logins(self, whose: Callable[[str], bool]) -> None:
        """Remove the passwords of some principals, of every cluster."""
        for place in self._logins():
            if whose(place.name):
                place.unlink(missing_ok=True)

    def login_reference(self, cluster: str, principal: str) -> str:
        """How a config names that password to Connect."""
        return _reference(self._login(cluster, principal))

    def knows_login(self, cluster: str, principal: str) -> bool:
        """Whether there is a password for it."""
        return self._login(cluster, principal).exists()

    def forget(self, connector: str, cluster: str, principal: str) -> None:
        """Remove all that a connector had which is gone: the next of its name may be another's."""
        for place in (*self._owned(connector), self._login(cluster, principal)):
            place.unlink(missing_ok=True)

    def resolved(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        """The config as Connect takes it: references name files."""
        return {name: self.setting(connector, value) for name, value in config.items()}

    def setting(self, connector: str, value: str) -> str:
        """The same of one value."""
        place = self._place(connector, value)
        return value if place is None else _reference(place)

    def text(self, connector: str, reference: str) -> str | None:
        """What a reference stands for; None if nothing."""
        place = self._place(connector, reference)
        return None if place is None else _text(place)

    def without(self, connector: str, cluster: str, principal: str, text: str) -> str:
        """A text for people, from which the connector's secrets are gone should they be in it."""
        places = (
            *self._owned(connector),
            self._folder / SHARED,
            self._login(cluster, principal),
        )
        for secret in (_text(place) for place in places):
            if secret:
                text = text.replace(secret, "(hidden)")
        return text

    def _place(self, connector: str, reference: str) -> Path | None:
        """The file that a reference names; None for what is no reference."""
        if reference == SHARED_SECRET:
            return self._folder / SHARED
        return None if version_of(reference) is None else self._own(connector, reference)

    def _own(self, connector: str, reference: str) -> Path:
        version = version_of(reference)
        if not version:
            # the only one there was, as long as references named no version
            return self._folder / f"connector-{connector}"
        return self._folder / _OWN / connector / version

    def _owned(self, connector: str) -> list[Path]:
        """The files of its own, those from before there were versions as well."""
        earlier = (self._own(connector, OWN_SECRET), self._folder / f"proposed-{connector}")
        versions = sorted((self._folder / _OWN / connector).glob("[0-9a-f]*"))
        return [*versions, *(one for one in earlier if one.exists())]

    def _logins(self) -> list[Path]:
        return list((self._folder / _LOGINS).glob("*/*"))

    def _login(self, cluster: str, principal: str) -> Path:
        return self._folder / _LOGINS / cluster / principal

    def _write(self, place: Path, text: str) -> None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(place, text, mode=0o600)
        except OSError as error:
            raise ConfigurationError(f"{place} cannot be written: {error.strerror}") from error


def _reference(place: Path) -> str:
    return f"${{dir:{place.parent}:{place.name}}}"


def _text(place: Path) -> str | None:
    try:
        return place.read_text("utf-8").removesuffix("\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be read: {error.strerror}") from error
