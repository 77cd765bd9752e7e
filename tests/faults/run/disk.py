"""The brokers' disk fills up under load, and has room again."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.run.fault import Fault, SkippedError
from tests.faults.run.judge import log_is_right
from tests.faults.run.own_mesh import OwnMesh, own_mesh

SIZE_MB = 512
FULL_S = 60
"""So long the disk stays full at most before the brokers must have noticed."""
BOUND_S = 420


def fill(_: None) -> float:
    """Fill the disk of all servers' data, see the log refuse, make room; seconds from there."""
    with mounted() as data, own_mesh(BOUND_S, prepare=data.mount) as ground:
        ballast = data.folder / "ballast"
        filled(ballast)
        until_refused(ground)
        ballast.unlink()
        began = time.monotonic()
        recovery = ground.pulse(began, 180)
        wrong = log_is_right(ground)
        assert not wrong, "; ".join(wrong)
        return recovery


class SmallDisk:
    """A file system in memory, mounted as the folder of a home's data."""

    def __init__(self) -> None:
        self.folder = Path("/nonexistent")
        self.mounted = False

    def mount(self, home: Path) -> None:
        """Mount it below a home."""
        self.folder = home / "data"
        self.folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(self.folder)],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SkippedError(f"a small file system cannot be mounted: {done.stderr.strip()}")
        self.folder.chmod(0o755)
        self.mounted = True

    def unmount(self) -> None:
        """Unmount it, also while a file of it is still open, and remove the home."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)
            shutil.rmtree(self.folder.parent, ignore_errors=True)


@contextmanager
def mounted() -> Iterator[SmallDisk]:
    """A small disk that is gone at the end, and with it what lies on it."""
    if os.geteuid() != 0:
        raise SkippedError("mounting a small file system needs root: run it as root")
    disk = SmallDisk()
    try:
        yield disk
    finally:
        disk.unmount()


def filled(ballast: Path) -> None:
    """Leave no byte free."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
    with suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))


def until_refused(ground: OwnMesh) -> None:
    """Wait until nothing is acknowledged any more."""
    deadline = time.monotonic() + FULL_S
    count = -1
    while time.monotonic() < deadline:
        now = sum(len(each.said) for each in ground.speaking)
        if now == count:
            return
        count = now
        time.sleep(5)
    raise AssertionError(f"the log takes records for {FULL_S} s without a free byte")


FAULTS = (
    Fault(
        "disk-full",
        "no byte free for the servers' data, then room again",
        fill,
        lambda _: [],
        BOUND_S,
    ),
)
