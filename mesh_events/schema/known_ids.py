"""Ids of the mesh's own schemas, kept in the home, so that intents need no answer of the registry.

Anybody may keep a registry busy, and a freeze is not to wait for it. An id stands for the same
schema for good, in one mesh: in another one the names of the entries are others.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from mesh_events.files import write_atomically

FILE = "schema-ids.json"
"""Its name in a home."""
MOST = 1_000
"""Entries, those of earlier versions among them; with more the file begins anew."""
_LARGEST = 1 << 20
"""Bytes of the file."""


class KnownIds:
    """The ids that a home knows. A file that cannot be read or written is none.

    Args:
        path: of the file, JSON: {digest: id}.
        mesh: public key of the mesh's root.
        url: base address of the registry.
    """

    def __init__(self, path: Path, mesh: str, url: str) -> None:
        self._path, self._mesh, self._url = path, mesh, url

    def find(self, subject: str, text: str) -> int | None:
        """The id of a subject's schema; None if it is not known."""
        return self._read().get(self._name(subject, text))

    def add(self, subject: str, text: str, schema_id: int) -> None:
        """Keep an id that the registry gave."""
        found = self._read()
        if len(found) >= MOST:
            found = {}
        found[self._name(subject, text)] = schema_id
        with suppress(OSError):
            write_atomically(self._path, json.dumps(found), 0o600)

    def _read(self) -> dict[str, int]:
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        ids = found.items() if isinstance(found, dict) else ()
        return {name: one for name, one in ids if type(one) is int}

    def _name(self, subject: str, text: str) -> str:
        parts = json.dumps([self._mesh, self._url, subject, text])
        return hashlib.sha256(parts.encode()).hexdigest()
