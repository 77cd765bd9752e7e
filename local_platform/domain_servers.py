"""Which domains have a Spark Connect server of their own here: recorded when one is first needed.

A domain keeps its number, and with it its port, for the life of the mesh.
"""

import json

from local_platform.errors import ServiceFailedError
from local_platform.layout import Layout
from mesh_events.files import write_atomically

PREFIX = "spark-"
"""A domain's server is the service `spark-<domain>`."""
FIRST_OFFSET = 3
MOST = 29
"""The ports between that of the class archive's job and the database."""


def numbers(layout: Layout) -> dict[str, int]:
    """Domain -> its number, in the order in which they came."""
    try:
        found: dict[str, int] = json.loads(layout.domain_servers.read_bytes())
    except FileNotFoundError:
        return {}
    return found


def remember(layout: Layout, domain: str) -> None:
    """Give a domain its number, if it has none yet; callers take turns.

    Raises:
        ServiceFailedError: there are too many already.
    """
    known = numbers(layout)
    if domain in known:
        return
    if len(known) >= MOST:
        raise ServiceFailedError(
            f"{MOST} domains have a Spark server here already, which is all that there are ports "
            f"for: {domain} cannot have one on this mesh"
        )
    write_atomically(layout.domain_servers, json.dumps({**known, domain: len(known)}))
