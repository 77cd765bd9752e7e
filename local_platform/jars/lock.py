"""The pinned jars: what the lock file says, and where each one lies in the cache."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from local_platform.errors import BadLockFileError

LOCK_FILE = Path(__file__).parent / "jars.lock.json"


@dataclass(frozen=True)
class Jar:
    """One pinned artifact.

    coordinate: "group:artifact:version:packaging:classifier"
    group: which servers need it ("kafka", "spark", "registry", "plugins", "plugins/apicurio")
    sha256: 64 hexadecimal digits
    size: bytes
    """

    coordinate: str
    group: str
    sha256: str
    size: int

    @cached_property
    def path(self) -> str:
        """The path in a Maven repository, relative, by Maven's standard layout."""
        group, artifact, version, packaging, classifier = self.coordinate.split(":")
        name = f"{artifact}-{version}" + (f"-{classifier}" if classifier else "")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{name}.{packaging}"

    @property
    def version(self) -> str:
        """The artifact's version."""
        return self.coordinate.split(":")[2]

    @property
    def artifact(self) -> str:
        """The artifact's name without group and version."""
        return self.coordinate.split(":")[1]


def read_lock(path: Path = LOCK_FILE) -> tuple[Jar, ...]:
    """Read the lock file.

    Raises:
        BadLockFileError: missing or malformed.
    """
    try:
        return tuple(_jar(entry) for entry in _entries(path))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise BadLockFileError(f"lock file {path} cannot be read ({fault}): reinstall") from fault


def _entries(path: Path) -> list[dict[str, Any]]:
    entries = json.loads(path.read_bytes())
    if not isinstance(entries, list):
        raise TypeError("a list of artifacts is expected")
    return entries


def _jar(entry: dict[str, Any]) -> Jar:
    jar = Jar(str(entry["c"]), str(entry["to"]), str(entry["sha256"]), int(entry["size"]))
    if jar.coordinate.count(":") != 4 or len(jar.sha256) != 64:
        raise ValueError(f"malformed entry {jar.coordinate}")
    return jar


@dataclass(frozen=True)
class JarStore:
    """The cache folder `<cache>/jars`, laid out as a Maven repository."""

    folder: Path
    jars: tuple[Jar, ...]

    def path(self, jar: Jar) -> Path:
        """Return where a jar lies once fetched."""
        return self.folder / jar.path

    def of(self, *groups: str) -> list[Jar]:
        """Return the jars of some groups, in the lock file's order."""
        return [jar for jar in self.jars if jar.group in groups]

    def class_path(self, *groups: str) -> str:
        """Return the jars of some groups as Java's class path, sorted: order decides there."""
        return joined(self.path(jar) for jar in self.of(*groups))

    def one(self, artifact: str) -> Jar:
        """Return the jar of an artifact.

        Raises:
            BadLockFileError: the lock file lacks it.
        """
        for jar in self.jars:
            if jar.artifact == artifact:
                return jar
        raise BadLockFileError(f"the lock file has no {artifact}: reinstall")


def joined(paths: Iterable[Path]) -> str:
    """Join paths to a Java class path, sorted."""
    return ":".join(sorted(str(path) for path in paths))
