"""Passwords of the principals that the mesh makes: 0600 files, named by reference on the log.

`<home>/secrets/<cluster>/<principal>` holds one password and nothing else.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path


class SecretStore:
    """A folder of passwords; another store (a vault) would keep the same three methods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reference(self, cluster: str, principal: str) -> str:
        """The reference under which the password is found."""
        return f"file:{(self._folder / cluster / principal).absolute()}"

    def issue(
        self, cluster: str, principal: str, use: Callable[[str], None] = lambda _: None
    ) -> str:
        """Make a new password; it replaces the stored one once `use` has taken it, and is returned.

        Raises what `use` raises; the stored one stays then.
        """
        password = secrets.token_urlsafe(24)
        place = self._folder / cluster
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = place / f".{principal}.{os.getpid()}"
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(password)
        try:
            use(password)
        except BaseException:
            part.unlink()
            raise
        part.replace(place / principal)
        return password

    def ensure(self, cluster: str, principal: str) -> str:
        """The stored password, made now if there is none."""
        place = self._folder / cluster / principal
        return place.read_text("ascii") if place.exists() else self.issue(cluster, principal)

    def forget(self, cluster: str, principal: str) -> None:
        """Remove a password."""
        (self._folder / cluster / principal).unlink(missing_ok=True)
