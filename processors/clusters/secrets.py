"""Passwords of the principals that the mesh makes: 0600 files, named by reference on the log.

`<home>/secrets/<cluster>/<principal>` holds one password and nothing else, and beside it
`.<principal>.next` the one that is being set.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from mesh_events.files import write_atomically


class SecretStore:
    """A folder of passwords; another store (a vault) would keep the same methods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reference(self, cluster: str, principal: str) -> str:
        """The reference under which the password is found."""
        return f"file:{self._current(cluster, principal).absolute()}"

    def known(self, cluster: str, principal: str) -> list[str]:
        """The passwords that may have been set: the stored one, and the one that is being set."""
        places = (self._next(cluster, principal), self._current(cluster, principal))
        return [text for place in places if (text := _text(place)) is not None]

    def prepare(self, cluster: str, principal: str) -> str:
        """The password to be set next. It is stored before it is set, and stays until `promote`.

        Who repeats what another has begun gets the same one, so that either finds it set.
        """
        place = self._next(cluster, principal)
        if (found := _text(place)) is not None:
            return found
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = place.with_name(f"{place.name}.{os.getpid()}.{secrets.token_hex(4)}")
        write_atomically(part, secrets.token_urlsafe(24), mode=0o600)
        # the first one counts
        with suppress(FileExistsError):
            os.link(part, place)
        part.unlink()
        return place.read_text("ascii")

    def prepared(self, cluster: str, principal: str) -> str:
        """Where the password to be set next lies, for people."""
        return str(self._next(cluster, principal).absolute())

    def promote(self, cluster: str, principal: str, password: str) -> None:
        """The password was set: it is the stored one from now on."""
        pending = self._next(cluster, principal)
        if _text(pending) == password:
            with suppress(FileNotFoundError):
                pending.replace(self._current(cluster, principal))
        if _text(self._current(cluster, principal)) != password:
            write_atomically(self._current(cluster, principal), password, mode=0o600)

    def forget(self, cluster: str, principal: str) -> None:
        """Remove a password."""
        self._current(cluster, principal).unlink(missing_ok=True)

    def _current(self, cluster: str, principal: str) -> Path:
        return self._folder / cluster / principal

    def _next(self, cluster: str, principal: str) -> Path:
        return self._folder / cluster / f".{principal}.next"


def _text(place: Path) -> str | None:
    try:
        return place.read_text("ascii")
    except FileNotFoundError:
        return None
