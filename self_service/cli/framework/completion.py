"""Shell completion of names: what the last command saw, from a small file in the home.

Asking Kafka at every press of Tab would take a second; names that are a little old do no harm,
since every command checks them anyway.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesh_events.files import write_atomically

if TYPE_CHECKING:
    from projections.image import Image

_OPEN = 200
"""As many of the latest requests are offered."""


def remember(home: Path, image: "Image") -> None:
    """Keep the names of an image; a home that cannot be written is no error."""
    requests = sorted(image.access.requests.values(), key=lambda one: -one.offset)
    names = {
        "products": sorted(image.catalog),
        "domains": sorted(image.identity.domains),
        "applications": sorted(image.identity.applications),
        "clusters": sorted(image.identity.clusters),
        "links": sorted(image.links),
        "statements": sorted(one.id for one in image.statements.values() if one.stands),
        "connectors": sorted(one.id for one in image.connectors.values() if one.stands),
        "requests": [one.request for one in requests[:_OPEN]],
    }
    with suppress(OSError):
        write_atomically(_place(home), json.dumps(names), mode=0o600)


def products(incomplete: str) -> list[str]:
    """Known products that begin so."""
    return _names("products", incomplete)


def domains(incomplete: str) -> list[str]:
    """Known domains that begin so."""
    return _names("domains", incomplete)


def applications(incomplete: str) -> list[str]:
    """Known applications that begin so."""
    return _names("applications", incomplete)


def clusters(incomplete: str) -> list[str]:
    """Known clusters that begin so."""
    return _names("clusters", incomplete)


def links(incomplete: str) -> list[str]:
    """Known links that begin so."""
    return _names("links", incomplete)


def statements(incomplete: str) -> list[str]:
    """Known statements that begin so."""
    return _names("statements", incomplete)


def connectors(incomplete: str) -> list[str]:
    """Known connectors that begin so."""
    return _names("connectors", incomplete)


def requests(incomplete: str) -> list[str]:
    """The latest requests that begin so."""
    return _names("requests", incomplete)


def _names(kind: str, incomplete: str) -> list[str]:
    from mesh_events.settings import HomeSettings

    try:
        known: dict[str, Any] = json.loads(_place(HomeSettings().home).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in known.get(kind, []) if name.startswith(incomplete)]


def _place(home: Path) -> Path:
    from mesh_events.settings import names_path

    return names_path(home)
