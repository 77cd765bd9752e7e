"""Finding things of the image by what people type: names, ids, unique prefixes, offsets."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from mesh_events.errors import InvalidValueError
from mesh_events.spelling import asked
from projections.access import OPEN, Access
from projections.catalog import Product
from projections.connectors.state import Connector
from projections.identity import Application, Domain
from projections.image import Image
from projections.links import Link
from projections.statements import Statement
from self_service.cli.framework.exits import NotFoundError, UsageError

Thing = TypeVar("Thing")
_LONGEST_REFERENCE = 40
"""More than an id has, and than the digits of Kafka's greatest offset."""


def product(image: Image, name: str) -> Product:
    """The product, or NotFoundError."""
    return _named(image.catalog, name, "product", "search with `sdm catalog search TEXT`")


def domain(image: Image, name: str) -> Domain:
    """The domain, or NotFoundError."""
    return _named(image.identity.domains, name, "domain", "see `sdm domain list`")


def application(image: Image, name: str) -> Application:
    """The application, or NotFoundError."""
    return _named(image.identity.applications, name, "application", "see `sdm application list`")


def link(image: Image, name: str) -> Link:
    """The link, or NotFoundError."""
    return _named(image.links, name, "link", "see `sdm link list`")


def connector(image: Image, name: str) -> Connector:
    """The connector, or NotFoundError."""
    return _named(image.connectors, name, "connector", "see `sdm connect connector deployed`")


def identity(name: str, domain: str) -> str:
    """The id of a domain's thing, `<domain>.<name>`, from what somebody typed."""
    return name if "." in name else f"{domain}.{name}"


def statement(image: Image, name: str) -> Statement:
    """The statement, or NotFoundError."""
    return _named(image.statements, name, "statement", "see `sdm streaming sql list`")


def request(
    image: Image, reference: str | None, product_id: str | None, application_id: str | None
) -> Access:
    """The one request meant by an id, a unique prefix, `offset`, or product and application.

    Without a reference, the open request of the pair is meant, else the latest one.

    Raises:
        NotFoundError: none is meant.
        UsageError: nothing was given, or several are meant.
    """
    fitting = [
        one
        for one in image.access.requests.values()
        if product_id in (None, one.product) and application_id in (None, one.application)
    ]
    if reference is not None and not reference.strip("# "):
        raise UsageError("which request? Give its id, a unique prefix of it, or its offset")
    if reference is not None:
        return _single(_referred(fitting, reference), f"request {reference}")
    if product_id is None and application_id is None:
        raise UsageError("which request? Give its id, its offset, or --product and --application")
    what = f"request of {application_id or 'any application'} for {product_id or 'any product'}"
    still_open = [one for one in fitting if one.state in OPEN]
    if still_open or product_id is None or application_id is None:
        return _single(still_open or fitting, what)
    return _single(sorted(fitting, key=lambda one: one.offset)[-1:], what)


def _referred(accesses: Iterable[Access], reference: str) -> list[Access]:
    offset = offset_of(reference)
    if offset is not None:
        return [one for one in accesses if one.offset == offset]
    return [one for one in accesses if one.request.startswith(reference.lower())]


def number(access: Access) -> str:
    """`41`: the request as people give it to a command."""
    return str(access.offset)


def offset_of(reference: str) -> int | None:
    """41 for `41` and `#41`, 0 for `0`; None for no offset; raises InvalidValueError for `#x`.

    Offsets are shown without the #, which begins a comment in a shell.
    """
    if len(reference) > _LONGEST_REFERENCE:
        raise InvalidValueError(
            f"{reference[:_LONGEST_REFERENCE]}... is neither an id nor an offset"
        )
    if not reference.startswith("#"):
        # an id's prefix of digits alone begins with a zero: no offset but the first is written so
        plain = reference.isdecimal() and (reference[0] != "0" or reference == "0")
        return int(reference) if plain else None
    if not reference[1:].isdecimal():
        raise InvalidValueError(f"{reference!r} is not an offset: write it as 41")
    return int(reference[1:])


def _single(found: list[Access], what: str) -> Access:
    if not found:
        raise NotFoundError(f"there is no {what}: see `sdm access list`")
    if len(found) > 1:
        several = ", ".join(f"{number(one)} {one.request}" for one in found[:4])
        raise UsageError(f"{len(found)} match {what}: use one of {several}")
    return found[0]


def _named(things: Mapping[str, Thing], name: str, kind: str, advice: str) -> Thing:
    found = things.get(name)
    if found is None:
        raise NotFoundError(f"there is no {kind} {name}: {asked(name, things)}{advice}")
    return found
