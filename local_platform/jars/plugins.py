"""Connect's plugins: Debezium, with its driver and sink patched, and the converter of Avro."""

import shutil
import zipfile
from pathlib import Path

from local_platform.jars.lock import JarStore
from local_platform.jars.scala_jars import patch_plugins, plugins_digest
from local_platform.jars.unpack import build_once, extract

# Connect finds plugins by service manifests, and this converter was built without one.
_MANIFEST = "META-INF/services/org.apache.kafka.connect.storage.Converter"
_DRIVERS = ("mariadb-java-client", "mssql-jdbc", "mysql-connector", "ojdbc")
"""Of databases that no connector may lead to. Nothing bounds what they take of Connect's memory."""
_CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter\n"


def connect_plugins(store: JarStore, cache: Path) -> Path:
    """Return Connect's plugin folder: Debezium's Postgres source and JDBC sink, Avro.

    Raises:
        ServiceFailedError: what patches drivers and sinks does not compile.
    """
    debezium = store.one("debezium-connector-postgres")
    sink = store.one("debezium-connector-jdbc")
    converter = store.of("plugins/apicurio")

    def build(work: Path) -> None:
        extract(store.path(debezium), work)
        extract(store.path(sink), work)
        for driver in _DRIVERS:
            for unused in work.glob(f"*/{driver}*.jar"):
                unused.unlink()
        folder = work / "apicurio-converter"
        folder.mkdir()
        for jar in converter:
            shutil.copyfile(store.path(jar), folder / Path(jar.path).name)
        with zipfile.ZipFile(folder / "manifest.jar", "w") as manifest:
            manifest.writestr(_MANIFEST, _CONVERTER)
        patch_plugins(work, store.class_path("kafka"))

    version = store.one("apicurio-registry-utils-converter").version
    name = f"plugins-{debezium.version}-{sink.version}-{version}-{plugins_digest()}"
    return build_once(cache / "unpacked" / name, build)
