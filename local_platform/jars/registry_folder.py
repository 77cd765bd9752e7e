"""The schema registry's folder: unpacked, with the classes of `local_platform.registry_jvm`."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from local_platform import registry_jvm
from local_platform.errors import ServiceFailedError
from local_platform.jars.lock import JarStore, joined
from local_platform.jars.scala_jars import compile_for_registry, digest
from local_platform.jars.unpack import build_once, extract

_DEFLATED = zipfile.ZIP_DEFLATED


def registry_folder(store: JarStore, cache: Path) -> Path:
    """Return the folder that the registry runs from (`quarkus-run.jar` lies in it).

    Raises:
        ServiceFailedError: its classes cannot be patched.
    """
    jar = store.one("apicurio-registry-app")

    def build(work: Path) -> None:
        extract(store.path(jar), work)
        _patch(work)

    name = f"registry-{jar.version}-{jar.sha256[:8]}-{digest(registry_jvm.SOURCES)}"
    return build_once(cache / "unpacked" / name, build)


def _patch(folder: Path) -> None:
    """Put the classes into the jars that have the ones which are patched."""
    made = folder / "registry-jvm.jar"
    theirs = [*(folder / "lib" / "main").glob("*.jar"), *(folder / "app").glob("*.jar")]
    compile_for_registry(made, joined(sorted(theirs)))
    with zipfile.ZipFile(made) as ours:
        for pattern, classes in registry_jvm.PATCHED.items():
            found = list(folder.glob(pattern))
            if len(found) != 1:
                raise ServiceFailedError(f"the registry has {len(found)} jars {pattern}")
            _put(ours, [one for one in ours.namelist() if one.startswith(classes)], found[0])
    made.unlink()


def _put(ours: zipfile.ZipFile, names: Sequence[str], patched: Path) -> None:
    whole = patched.with_suffix(".new")
    with zipfile.ZipFile(patched) as theirs, zipfile.ZipFile(whole, "w", _DEFLATED) as opened:
        for name in theirs.namelist():
            if name not in names:
                opened.writestr(name, theirs.read(name))
        for name in names:
            opened.writestr(name, ours.read(name))
    whole.rename(patched)
