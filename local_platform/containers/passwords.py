"""Write the passwords of the composed mesh: `python -m local_platform.containers.passwords FILE`.

Compose hands each one to its containers as a file under /run/secrets. A second run adds what is
missing and changes nothing.
"""

import secrets
import sys
from pathlib import Path

from mesh_events.files import write_atomically

NAMES = (
    "EAST_ADMIN_PASSWORD",
    "EAST_REGISTRY_PASSWORD",
    "EAST_CONNECT_PASSWORD",
    "WEST_ADMIN_PASSWORD",
    "REGISTRY_WRITER_PASSWORD",
    "REGISTRY_ADMIN_PASSWORD",
    "CONNECT_ADMIN_PASSWORD",
    "POSTGRES_PASSWORD",
    "SPARK_TOKEN",
)


def read(path: Path) -> dict[str, str]:
    """Return what an earlier run wrote: name -> password."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line)


def complete(path: Path) -> None:
    """Make `path` a 0600 file with a password for every name."""
    found = read(path)
    lines = [f"{name}={found.get(name) or secrets.token_urlsafe(24)}\n" for name in NAMES]
    write_atomically(path, "".join(lines), mode=0o600)


def main() -> int:
    """Write the file named by the only argument; return 2 where there is none."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m local_platform.containers.passwords FILE\n")
        return 2
    complete(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
