"""Running a program as an ordinary user of this machine, with the packages of the tests."""

import os
import pwd
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from local_platform.security.accounts import NOBODY, blocked

# any account without rights will do; initdb asks that it has a name
UID = next(one.pw_uid for one in pwd.getpwall() if one.pw_uid not in {0, NOBODY})
_ROOT_FOLDER = Path(__file__).parents[1]


def require() -> None:
    """Skip the test where this run is no root's, and so cannot become anybody else."""
    if os.geteuid() != 0:
        pytest.skip("this run is an ordinary user's already, so every other test shows it")


def run(
    module: str, *arguments: str, home: Path, timeout: float, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of Python to its end, in a home that is the user's, with these variables."""
    environment: Mapping[str, str] = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONPATH": f"{_ROOT_FOLDER}:{sysconfig.get_paths()['purelib']}",
        "LANG": "C.UTF-8",
        **variables,
    }
    return subprocess.run(
        [_interpreter(), "-m", module, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=home,
        env=environment,
        user=UID,
        group=UID,
        extra_groups=[],
    )


def _interpreter() -> str:
    """A Python of this version that an ordinary user can start."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if Path(path).exists() and blocked(Path(path).resolve().parent) is None:
            return path
    pytest.skip(f"no {version} on this machine is reachable by an ordinary user")
