"""The full texts of errors of Spark, Connect and databases, in local files for the operator.

Such a text can quote a record. So the log has the name of an error only, and its text stays at the
worker: one file for each thing and code, the newest text in it, readable for the worker's account.
"""

from dataclasses import dataclass
from pathlib import Path

import structlog

from mesh_events.files import write_atomically
from mesh_events.meta import spelt
from mesh_events.settings import error_path

log = structlog.get_logger(__name__)
MOST_CHARACTERS = 65_536
"""Of one text; a longer one keeps its beginning and its end."""
MOST_FILES = 200
"""Of one domain; the oldest ones beyond are deleted: its failures push out no other domain's."""
_CUT = "\n[... cut ...]\n"


@dataclass(frozen=True, slots=True)
class ErrorFiles:
    """Writes the texts below the home of a worker."""

    home: Path

    def path(self, kind: str, thing: str, code: str) -> Path:
        """Where the text of a failure of a thing (such as a `link`) is."""
        return error_path(self.home, kind, thing, code)

    def save(self, kind: str, thing: str, code: str, text: str) -> None:
        """Write the text of an error, if there is one, and log the file's path. Never raises."""
        if not text:
            return
        path = self.path(kind, thing, code)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.parent.chmod(0o700)
            write_atomically(path, _bounded(spelt(text)), mode=0o600)
            for old in _surplus(path):
                old.unlink(missing_ok=True)
        except OSError as fault:
            log.warning("error_text_not_saved", kind=kind, id=thing, error=fault.strerror)
            return
        log.warning("error_text_saved", kind=kind, id=thing, code=code, file=str(path))


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    half = (MOST_CHARACTERS - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


def _domain(file: Path) -> str:
    """Whose a file is: a thing's id begins with its domain."""
    thing = file.name.partition("-")[2]
    return thing.partition(".")[0]


def _surplus(new: Path) -> list[Path]:
    """All but the newest MOST_FILES of the domain whose file `new` is."""
    files = [each for each in new.parent.glob("*.txt") if _domain(each) == _domain(new)]
    return sorted(files, key=lambda file: file.stat().st_mtime_ns, reverse=True)[MOST_FILES:]
