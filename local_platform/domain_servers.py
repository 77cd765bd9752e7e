"""Which domains have a server of their own here: recorded when one is first needed.

A domain keeps its number, and with it its port, until another domain needs it: those of servers
that do not run are given away when there is no other one left.
"""

import json
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from local_platform.errors import ServiceFailedError
from local_platform.layout import Layout
from local_platform.settings import MOST_CONNECT_WORKERS
from mesh_events.files import write_atomically


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of server that each domain has one of.

    prefix: a domain's is the service `<prefix><domain>`
    first_offset: of its ports, relative to the base
    most: the number of its ports
    what: in a sentence
    """

    prefix: str
    first_offset: int
    most: int
    what: str

    def record(self, layout: Layout) -> Path:
        """Where it is written which domains have one."""
        return layout.run / f"{self.prefix}servers.json"


# the ports between that of the class archive's job and the database
SPARK = Kind("spark-", 3, 29, "Spark server")
# those between the two clusters of Kafka
CONNECT = Kind("connect-", 100, MOST_CONNECT_WORKERS, "Kafka Connect worker")
KINDS = (SPARK, CONNECT)


def command(name: str) -> list[str]:
    """The command line of `python -m local_platform <name>`, which takes a domain as well."""
    return [sys.executable, "-m", "local_platform", name]


def numbers(layout: Layout, kind: Kind) -> dict[str, int]:
    """Domain -> its number."""
    try:
        found: dict[str, int] = json.loads(kind.record(layout).read_bytes())
    except FileNotFoundError:
        return {}
    return found


def port_offset(layout: Layout, service: str) -> int | None:
    """The port of a domain's server relative to the base; None for what is none."""
    for kind in KINDS:
        number = numbers(layout, kind).get(service.removeprefix(kind.prefix))
        if service.startswith(kind.prefix) and number is not None:
            return kind.first_offset + number
    return None


def remember(layout: Layout, domain: str, kind: Kind, running: Collection[str] = ()) -> None:
    """Give a domain its number, if it has none yet; callers take turns.

    running: services that run, or are to.

    Raises:
        ServiceFailedError: there are too many already.
    """
    known = numbers(layout, kind)
    if domain in known:
        return
    if len(known) >= kind.most:
        known = {one: n for one, n in known.items() if f"{kind.prefix}{one}" in running}
    free = set(range(kind.most)) - set(known.values())
    if not free:
        raise ServiceFailedError(
            f"{kind.most} domains have a {kind.what} here already, which is all that there are "
            f"ports for: {domain} cannot have one on this mesh"
        )
    text = json.dumps({**known, domain: min(free)})
    write_atomically(kind.record(layout), text, mode=0o600)
