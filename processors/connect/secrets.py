"""The files that Connect reads secrets from: one folder, and in it what each connector may name.

On the log a secret is `${secret:own}` or `${secret:shared}`; Connect is told the file. The folder
is readable for the mesh's own account alone.
"""

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from mesh_events.connectors import OWN_SECRET, SHARED_SECRET
from mesh_events.errors import ConfigurationError, InvalidValueError
from mesh_events.files import write_atomically

SHARED = "postgres-postgres"
"""File of the shared database's password."""
_LOGINS = "logins"


class ConnectSecrets:
    """The folder of secrets of one Connect cluster; raises ConfigurationError for its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, connector: str, text: str) -> None:
        """Keep a connector's own secret; raises InvalidValueError for one that is a reference."""
        self._require_plain(text)
        self._write(self._own(connector), text)

    def propose(self, connector: str, text: str) -> None:
        """Keep a secret that is the connector's own as soon as a config is accepted with it."""
        self._require_plain(text)
        self._write(self._proposed(connector), text)

    def promote(self, connector: str) -> None:
        """What was proposed is the connector's own from now on, if anything was."""
        try:
            self._proposed(connector).replace(self._own(connector))
        except FileNotFoundError:
            return
        except OSError as error:
            place = self._own(connector)
            raise ConfigurationError(f"{place} cannot be written: {error.strerror}") from error

    def withdraw(self, connector: str) -> None:
        """What was proposed is not needed."""
        self._proposed(connector).unlink(missing_ok=True)

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

    def forget_logins(self, whose: Callable[[str], bool]) -> None:
        """Remove the passwords of some principals, of every cluster."""
        for place in (self._folder / _LOGINS).glob("*/*"):
            if whose(place.name):
                place.unlink(missing_ok=True)

    def login_reference(self, cluster: str, principal: str) -> str:
        """How a config names that password to Connect."""
        return _reference(self._login(cluster, principal))

    def knows_login(self, cluster: str, principal: str) -> bool:
        """Whether there is a password for it."""
        return self._login(cluster, principal).exists()

    def forget(self, connector: str, cluster: str, principal: str) -> None:
        """Remove all of a connector that is gone: the next of its name may be another's."""
        for place in (self._own(connector), self._login(cluster, principal)):
            place.unlink(missing_ok=True)

    def resolved(
        self, connector: str, config: Mapping[str, str], *, proposed: bool = False
    ) -> dict[str, str]:
        """The config as Connect takes it: references name files, proposed ones if asked."""
        own = self._own_or_proposed(connector) if proposed else self._own(connector)
        named = {
            OWN_SECRET: _reference(own),
            SHARED_SECRET: _reference(self._folder / SHARED),
        }
        return {name: named.get(value, value) for name, value in config.items()}

    def text(self, connector: str, reference: str) -> str | None:
        """What a reference stands for, by what is proposed, if anything is; None if nothing."""
        own = self._own_or_proposed(connector)
        places = {OWN_SECRET: own, SHARED_SECRET: self._folder / SHARED}
        return _text(places[reference]) if reference in places else None

    def without(self, connector: str, cluster: str, principal: str, text: str) -> str:
        """A text for people, from which the connector's secrets are gone should they be in it."""
        places = (
            self._own(connector),
            self._proposed(connector),
            self._folder / SHARED,
            self._login(cluster, principal),
        )
        for secret in (_text(place) for place in places):
            if secret:
                text = text.replace(secret, "(hidden)")
        return text

    def _require_plain(self, text: str) -> None:
        if "${" in text:
            raise InvalidValueError("a password with '${' in it is a reference again")

    def _proposed(self, connector: str) -> Path:
        return self._folder / f"proposed-{connector}"

    def _own_or_proposed(self, connector: str) -> Path:
        proposed = self._proposed(connector)
        return proposed if proposed.exists() else self._own(connector)

    def _own(self, connector: str) -> Path:
        return self._folder / f"connector-{connector}"

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
