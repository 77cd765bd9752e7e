"""Which names are allowed: names that can become principals, topics and prefixes without harm."""

import re

from mesh_events.intents import domain_of, intents_login
from mesh_events.meta import MESH_DOMAIN
from mesh_events.topics import INTERNAL_PREFIXES
from projections.deciding.verdict import require

DOMAIN = re.compile(r"[a-z][a-z0-9-]{0,62}")
PART = re.compile(r"[a-z][a-z0-9_-]{0,99}")
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
RESERVED = frozenset(
    {MESH_DOMAIN, "admin", "anonymous", "connect", "controller", "registry"}
    | {"root", "operator", "governor", "controller"}
)
"""Names of the platform's principals and of the mesh's own keys; no domain may take them."""
_PLACES = re.compile(r"connectors|postgres|spark|(?:registry|spark)-.*")
"""Folders of passwords beside those of the clusters: `local_platform.security.credentials`."""
LONGEST_TEXT = 4000
"""Characters that a description or a reason may have."""


def domain(name: str) -> None:
    """Refuse what cannot be a domain's name."""
    require(
        DOMAIN.fullmatch(name),
        "invalid_name",
        f"{name!r} cannot be a domain: use a-z, 0-9 and '-', begin with a letter, at most 63",
    )
    internal = f"{name}.".startswith(INTERNAL_PREFIXES)
    require(
        name not in RESERVED and not internal,
        "reserved_name",
        f"{name!r} is reserved: choose another name",
    )


def cluster(name: str) -> None:
    """Refuse what cannot be a cluster's name."""
    domain(name)
    require(
        not _PLACES.fullmatch(name),
        "reserved_name",
        f"{name!r} is reserved: the passwords of another server are kept under it; choose another",
    )


def dotted(identity: str, what: str) -> None:
    """Refuse what is not `<domain>.<name>`."""
    first, dot, second = identity.partition(".")
    require(
        dot and DOMAIN.fullmatch(first) and PART.fullmatch(second),
        "invalid_name",
        f"{identity!r} cannot be {what}: use <domain>.<name>, the name of a-z, 0-9, '_' and '-'",
    )


def application(name: str) -> None:
    """Refuse what cannot be an application, or is the login of a domain's intents."""
    dotted(name, "an application")
    require(
        name != intents_login(domain_of(name)),
        "reserved_name",
        f"{name!r} is the login that appends the domain's intents: choose another name",
    )


def topic(name: str, owner: str) -> None:
    """Refuse internal topics, and topics outside the owner's prefix `<domain>.`."""
    legal_topic(name)
    require(
        not name.startswith(INTERNAL_PREFIXES),
        "internal_topic",
        f"{name} is an internal topic of the platform and can never be a product",
    )
    require(
        name.startswith(f"{owner}.") and len(name) > len(owner) + 1,
        "foreign_topic",
        f"{name} is not a topic of {owner}: its own topics begin with '{owner}.'",
    )


def legal_topic(name: str) -> None:
    """Refuse what Kafka would refuse."""
    require(TOPIC.fullmatch(name), "invalid_name", f"{name!r} is not a legal Kafka topic name")


def text(value: str, what: str, longest: int = LONGEST_TEXT) -> None:
    """Refuse an empty or overlong text."""
    require(value.strip(), "missing_text", f"{what} is empty: say it in a sentence")
    note(value, what, longest)


def note(value: str, what: str, longest: int = LONGEST_TEXT) -> None:
    """Refuse an overlong text; it may be empty."""
    require(
        len(value) <= longest,
        "text_too_long",
        f"{what} has {len(value)} characters, at most {longest} are kept for ever",
    )
