"""Make the platform's principals: `python -m local_platform.containers.principals`.

Reads `$SDM_HOME/platform.json` for the addresses, and each principal's password from
`/run/secrets/<cluster>_<principal>_password`. Also fills the folder of connectors' secrets, which
Connect cannot do: it only reads there.
"""

import sys
from pathlib import Path

from local_platform.endpoints import Endpoints
from local_platform.security.principals import ensure_principals, principals_of
from local_platform.services.connect import hand_secrets_to_connectors
from local_platform.settings import PlatformSettings
from mesh_events.errors import MeshError
from mesh_events.references import resolve

SECRETS = Path("/run/secrets")


def password(cluster: str, principal: str) -> str:
    """Return the password that compose handed over."""
    return resolve(f"file:{SECRETS / f'{cluster}_{principal}_password'}")


def main() -> int:
    """Make principals and connectors' secrets; return 1 with a clear sentence on failure."""
    try:
        endpoints = Endpoints.load(PlatformSettings().home)
        for name in endpoints.clusters:
            ensure_principals(endpoints.administration(name), principals_of(name, password))
        hand_secrets_to_connectors(endpoints)
    except MeshError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
