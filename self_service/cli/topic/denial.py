"""What to do after Kafka refused a login: who owns the topic, and the command that asks for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mesh_events.errors import MeshError, RefusedError
from mesh_events.intents import domain_of
from projections.access import ENTITLED, OPEN
from projections.catalog import Product
from projections.image import Image
from projections.links import destination_topic

if TYPE_CHECKING:
    from self_service.cli.mesh.context import Mesh

_CODE = "kafka_denied"


@contextmanager
def advising(mesh: "Mesh", topic: str, principal: str, *, writing: bool = False) -> Iterator[None]:
    """Add the next step to Kafka's refusal inside the block."""
    try:
        yield
    except RefusedError as error:
        if error.code != _CODE:
            raise
        try:
            step = advice(mesh.image(), topic, principal, writing=writing)
        except MeshError:
            # the client's file may lead to a cluster whose mesh is not this one
            raise error from None
        raise RefusedError(_CODE, f"{error}; {step}") from error


def advice(image: Image, topic: str, principal: str, *, writing: bool = False) -> str:
    """What a principal can do who was refused on a topic: pure."""
    own = domain_of(principal)
    if topic.startswith(f"{own}."):
        home = image.identity.domains[own].cluster if own in image.identity.domains else "its home"
        return (
            f"{own}'s own topics are on cluster {home}, and are written with its login, `-d {own}`"
        )
    product = _on(image, topic)
    if product is None:
        return f"{topic} carries no product: find one with `sdm catalog search TEXT`"
    if writing:
        return (
            f"only {product.domain} may write {topic}: {own}'s own topics begin with '{own}.'; "
            f"`sdm product describe {product.id}` names the owner"
        )
    if principal not in image.identity.applications:
        if granted := _granted(image, product.id, own):
            return f"applications read products, not domains: add --application {granted[0]}"
        reader = _reader(image, own)
        return (
            f"applications read products, not domains: `sdm access request {product.id} {reader} "
            f"--reason WHY -d {own}`, then --application {reader}"
        )
    asked = image.access.open_for(product.id, principal)
    if asked is not None and asked.state in OPEN:
        return f"see why with `sdm access explain {product.id} {principal}`"
    return (
        f"request access with `sdm access request {product.id} {principal} --reason WHY -d {own}`"
    )


def _on(image: Image, topic: str) -> Product | None:
    """The product whose records are on the topic, at home or as a copy."""
    products = image.catalog.values()
    return next((one for one in products if topic in (one.topic, destination_topic(one))), None)


def _granted(image: Image, product: str, domain: str) -> list[str]:
    """Applications of a domain that a product was granted to."""
    known = [name for name in sorted(image.identity.applications) if domain_of(name) == domain]
    asked = {name: image.access.open_for(product, name) for name in known}
    return [name for name, one in asked.items() if one is not None and one.state in ENTITLED]


def _reader(image: Image, domain: str) -> str:
    """The domain's only application, else what to put there."""
    known = [name for name in sorted(image.identity.applications) if domain_of(name) == domain]
    return known[0] if len(known) == 1 else f"{domain}.APPLICATION"
