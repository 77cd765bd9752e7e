"""The schema registry's folder: unpacked, with the class of `local_platform.registry_jvm`."""

import zipfile
from pathlib import Path

from local_platform import registry_jvm
from local_platform.errors import ServiceFailedError
from local_platform.jars import JarStore, joined
from local_platform.own_jars import compile_for_registry, digest
from local_platform.unpack import build_once, extract


def registry_folder(store: JarStore, cache: Path) -> Path:
    """Return the folder that the registry runs from (`quarkus-run.jar` lies in it).

    Raises:
        ServiceFailedError: its class cannot be patched.
    """
    jar = store.one("apicurio-registry-app")

    def build(work: Path) -> None:
        extract(store.path(jar), work)
        _patch(work)

    name = f"registry-{jar.version}-{jar.sha256[:8]}-{digest(registry_jvm.SOURCES)}"
    return build_once(cache / "unpacked" / name, build)


def _patch(folder: Path) -> None:
    """Put the classes into the jar that has the one which is patched."""
    found = list(folder.glob(registry_jvm.PATCHED))
    if len(found) != 1:
        raise ServiceFailedError(f"the registry has {len(found)} jars {registry_jvm.PATCHED}")
    [patched] = found
    made = folder / "whole-bodies.jar"
    compile_for_registry(made, joined(sorted(patched.parent.glob("*.jar"))))
    whole = patched.with_suffix(".new")
    with zipfile.ZipFile(made) as ours, zipfile.ZipFile(patched) as theirs:
        names = [one for one in ours.namelist() if one.startswith(registry_jvm.CLASSES)]
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as opened:
            for name in theirs.namelist():
                if name not in names:
                    opened.writestr(name, theirs.read(name))
            for name in names:
                opened.writestr(name, ours.read(name))
    whole.rename(patched)
    made.unlink()
