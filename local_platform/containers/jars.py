"""Fetch what the public images lack: `python -m local_platform.containers.jars FOLDER`.

Leaves Connect's plugins in FOLDER/plugins and Spark's Kafka and Avro jars in FOLDER/spark, all
pinned by the same lock file as the local platform's.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from local_platform.fetch import Fetcher
from local_platform.jars import JarStore, read_lock
from local_platform.settings import PlatformSettings
from local_platform.unpack import connect_plugins


def collect(store: JarStore, folder: Path) -> None:
    """Fill FOLDER/plugins and FOLDER/spark from a complete store."""
    shutil.copytree(connect_plugins(store, folder / "work"), folder / "plugins")
    (folder / "spark").mkdir()
    for jar in store.of("spark"):
        shutil.copyfile(store.path(jar), folder / "spark" / Path(jar.path).name)
    shutil.rmtree(folder / "work")


def main() -> int:
    """Fetch and collect into the only argument; return 2 where there is none."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m local_platform.containers.jars FOLDER\n")
        return 2
    settings, folder = PlatformSettings(), Path(sys.argv[1])
    every = JarStore(folder / "store", read_lock())
    needed = replace(every, jars=tuple(every.of("plugins", "plugins/apicurio", "spark")))
    Fetcher(needed, settings.maven_url).fetch()
    collect(needed, folder)
    shutil.rmtree(needed.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
