"""Generated passwords: made once, kept in 0600 files, named by reference.

`<secrets>/<place>/<principal>` holds one password and nothing else; a place is a cluster
("east"), "registry", "connect", "postgres" or "spark".
"""

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from local_platform.files import private_folder
from mesh_events.files import write_atomically


@dataclass(frozen=True)
class Credentials:
    """The passwords of one mesh.

    folder: `$SDM_HOME/secrets`
    """

    folder: Path

    def path(self, place: str, principal: str) -> Path:
        """Return the file of a password, generating it on first use."""
        private_folder(self.folder)
        path = private_folder(self.folder / place) / principal
        if not path.exists():
            _write_once(path, secrets.token_urlsafe(24))
        return path

    def password(self, place: str, principal: str) -> str:
        """Return a password, generating it on first use."""
        return self.path(place, principal).read_text(encoding="utf-8")

    def renew(self, place: str, principal: str) -> None:
        """Make another password for somebody who takes it up now."""
        write_atomically(self.path(place, principal), secrets.token_urlsafe(24), mode=0o600)

    def reference(self, place: str, principal: str) -> str:
        """Return the reference "file:/abs/path" of a password."""
        return f"file:{self.path(place, principal).absolute()}"


def _write_once(path: Path, text: str) -> None:
    """Make a complete 0600 file; of two that write at once, the first one's text stays."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        path.hardlink_to(name)
    except FileExistsError:
        pass
    finally:
        Path(name).unlink()
