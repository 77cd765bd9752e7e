"""Turn fetched archives into folders that servers can run from.

Each folder appears in one step under its final name, so an interrupted unpacking is
simply done again.
"""

import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from local_platform.files import public_folder
from local_platform.jars import JarStore

# Connect finds plugins by service manifests, and this converter was built without one.
_MANIFEST = "META-INF/services/org.apache.kafka.connect.storage.Converter"
_CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter\n"


def build_once(target: Path, build: Callable[[Path], object]) -> Path:
    """Let `build` fill a new folder and give it the name `target`, unless that exists."""
    if target.is_dir():
        return target
    public_folder(target.parent)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        build(work)
        work.chmod(0o755)
        work.rename(target)
    except OSError:
        # another process may have built it meanwhile; then theirs is as good
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def registry_folder(store: JarStore, cache: Path) -> Path:
    """Return the unpacked schema registry (`quarkus-run.jar` lies in it)."""
    jar = store.one("apicurio-registry-app")
    return build_once(
        cache / "unpacked" / f"registry-{jar.version}-{jar.sha256[:8]}",
        lambda work: _extract(store.path(jar), work),
    )


def connect_plugins(store: JarStore, cache: Path) -> Path:
    """Return Connect's plugin folder: Debezium's Postgres source and JDBC sink, Avro."""
    debezium = store.one("debezium-connector-postgres")
    sink = store.one("debezium-connector-jdbc")
    converter = store.of("plugins/apicurio")

    def build(work: Path) -> None:
        _extract(store.path(debezium), work)
        _extract(store.path(sink), work)
        folder = work / "apicurio-converter"
        folder.mkdir()
        for jar in converter:
            shutil.copyfile(store.path(jar), folder / Path(jar.path).name)
        with zipfile.ZipFile(folder / "manifest.jar", "w") as manifest:
            manifest.writestr(_MANIFEST, _CONVERTER)

    version = store.one("apicurio-registry-utils-converter").version
    return build_once(
        cache / "unpacked" / f"plugins-{debezium.version}-{sink.version}-{version}", build
    )


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
