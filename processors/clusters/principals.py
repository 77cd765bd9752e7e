"""Whose a principal is: of the links, statements and connectors that the mesh makes them for. Pure.

An incarnation of a link or statement is `mesh.link.<link>.<8 hex>` or `mesh.sql.<statement>.<8
hex>`; a connector is always `mesh.connect.<connector>`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from processors.clusters.rights import Binding, Resource
from processors.connect.principals import PRINCIPALS, principal_of
from projections.connectors.state import Connector
from projections.image import Image
from projections.links import Link
from projections.statements import Statement

LINKS, STATEMENTS = "mesh.link.", "mesh.sql."
PREFIXES = (LINKS, STATEMENTS)
_INCARNATION = re.compile(r"(?P<flow>.+)\.[0-9a-f]{8}")
Holder = Statement | Connector


def flow_name(principal: str, kind: str) -> str | None:
    """The link or statement, as `kind` says, that a principal is called after."""
    if not principal.startswith(kind):
        return None
    found = _INCARNATION.fullmatch(principal, len(kind))
    return found["flow"] if found else None


def job_name(principal: str) -> str | None:
    """The link, statement or connector that a principal is called after; None of any other one."""
    start = next((one for one in (*PREFIXES, PRINCIPALS) if principal.startswith(one)), None)
    return None if start is None else principal.removeprefix(start)


def flow_of(image: Image, principal: str) -> Link | Statement | None:
    """The link or statement that a principal is called after, if there is one."""
    if (link := flow_name(principal, LINKS)) is not None:
        return image.links.get(link)
    return image.statements.get(flow_name(principal, STATEMENTS) or "")


def connector_of(image: Image, principal: str) -> Connector | None:
    """The connector that reads and writes as a principal."""
    found = image.connectors.get(principal.removeprefix(PRINCIPALS))
    known = found is not None and principal_of(found.id) == principal
    return found if known else None


def job_of(image: Image, principal: str) -> Holder | None:
    """The statement or connector that reads and writes as a principal."""
    if principal.startswith(PRINCIPALS):
        return connector_of(image, principal)
    return image.statements.get(flow_name(principal, STATEMENTS) or "")


@dataclass(frozen=True, slots=True)
class Held:
    """The rights on topics that are there on a cluster.

    Args:
        jobs: those of statements and connectors, with whose each is.
        others: (principal, topic) of all others.
    """

    jobs: tuple[tuple[Binding, Holder], ...]
    others: frozenset[tuple[str, str]]


def held(image: Image, actual: Iterable[Binding]) -> Held:
    """Whose the rights of a cluster are: each principal is looked up once, in one pass."""
    known: dict[str, Holder | None] = {}
    jobs, others = list[tuple[Binding, Holder]](), set[tuple[str, str]]()
    for right in actual:
        if right.resource is not Resource.TOPIC:
            continue
        if right.principal not in known:
            known[right.principal] = job_of(image, right.principal)
        if (job := known[right.principal]) is None:
            others.add((right.principal, right.name))
        else:
            jobs.append((right, job))
    return Held(tuple(jobs), frozenset(others))
