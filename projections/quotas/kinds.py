"""The kinds of things that are counted for each domain, and their bounds."""

from enum import StrEnum
from typing import NamedTuple, Self

from mesh_events.decisions import (
    APPLICATIONS_PER_DOMAIN,
    CONNECTORS_PER_DOMAIN,
    KEYS_PER_DOMAIN,
    LINKS_PER_DOMAIN,
    PRODUCTS_PER_DOMAIN,
    REQUESTS_PER_DOMAIN,
    STATEMENTS_PER_DOMAIN,
)
from projections.table import Table

KEPT = 10
"""Ended and standing things of a kind that are kept, as a multiple of the bound of the kind."""


class Kind(StrEnum):
    """What is counted; a request counts to the domain that asks, a link to the product's."""

    APPLICATIONS = "applications"
    PRODUCTS = "products"
    KEYS = "keys"
    REQUESTS = "requests"
    STATEMENTS = "statements"
    CONNECTORS = "connectors"
    LINKS = "links"

    @property
    def bound(self) -> str:
        """Name of the bound in `GovernorStarted` and among the worker's settings."""
        return f"{self}_per_domain"

    @property
    def setting(self) -> str:
        """The environment variable that sets the bound."""
        return f"SDM_{self.bound}".upper()


class Used(NamedTuple):
    """How many things of a kind a domain has: those that stand, and all that the image keeps.

    A thing stands until the log says that it is gone: a key until it is revoked, a request until
    it is denied or its rights are removed, a statement, connector or link until it was stopped for
    good. What is gone is kept under its name or id for ever, and so is what an earlier text of a
    statement or config of a connector has read: each of its steps is one more that is kept.
    """

    standing: int = 0
    kept: int = 0


Counts = Table[tuple[str, Kind], Used]
"""(domain, kind) -> what the domain has of it."""


class Quotas(NamedTuple):
    """How many things of each kind may stand for a domain; `KEPT` times as many are kept."""

    applications: int = APPLICATIONS_PER_DOMAIN
    products: int = PRODUCTS_PER_DOMAIN
    keys: int = KEYS_PER_DOMAIN
    requests: int = REQUESTS_PER_DOMAIN
    statements: int = STATEMENTS_PER_DOMAIN
    connectors: int = CONNECTORS_PER_DOMAIN
    links: int = LINKS_PER_DOMAIN

    def of(self, kind: Kind) -> Used:
        """The bounds of a kind, as the counts that are not to be exceeded."""
        bound: int = getattr(self, kind)
        return Used(bound, KEPT * bound)

    @classmethod
    def read(cls, source: object) -> Self:
        """The bounds that a GovernorStarted, or the worker's settings, have."""
        return cls(**{kind: getattr(source, kind.bound) for kind in Kind})

    def named(self) -> dict[str, int]:
        """The fields of GovernorStarted."""
        return {kind.bound: getattr(self, kind) for kind in Kind}


DEFAULT_QUOTAS = Quotas()
