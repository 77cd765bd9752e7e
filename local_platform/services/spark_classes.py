"""Make the archive of Spark's classes: `python -m local_platform.services.spark_classes`.

Settings come from `SDM_*` variables, as the supervisor sets them.
"""

import os
import subprocess
import sys
import time

import structlog

from local_platform.errors import NotReadyError, PlatformError
from local_platform.files import empty_folder
from local_platform.services.spark import SparkConnect
from local_platform.settings import PlatformSettings
from local_platform.site import Site

TIMEOUT_S = 120.0
"""For so long its server may take to answer a first query."""
log = structlog.get_logger(__name__)


def make(site: Site) -> None:
    """Make the archive if there is none and the cache can be written.

    Raises:
        PlatformError: its server did not start, or wrote none.
    """
    server = SparkConnect(site)
    server.prepare()
    if not server.class_archive.is_wanted():
        return
    empty_folder(server.scratch)
    command = server.command()
    with subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env={**os.environ, **command.environment},
        stdin=subprocess.DEVNULL,
    ) as process:
        try:
            _await(server, process)
            server.class_archive.make(process.pid, server.data)
            if not server.class_archive.path.exists():
                raise NotReadyError(f"{server.name} wrote no archive")
        finally:
            process.kill()


def _await(server: SparkConnect, process: "subprocess.Popen[bytes]") -> None:
    """Wait until it has answered a query."""
    deadline = time.monotonic() + TIMEOUT_S
    while process.poll() is None:
        try:
            server.probe()
        except NotReadyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return
    raise NotReadyError(f"{server.name} ended with exit code {process.returncode}")


def main() -> int:
    """Make it; return 1 where it failed."""
    try:
        make(Site.of(PlatformSettings()))
    except (PlatformError, OSError) as error:
        log.warning("class_archive_not_made", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
