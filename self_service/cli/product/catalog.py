"""`sdm catalog`: finding data products."""

from typing import Annotated, Any

import typer

from projections.access import ENTITLED
from projections.catalog import Product
from projections.image import Image
from self_service.cli.framework import completion
from self_service.cli.framework.options import Reading, command, noun
from self_service.cli.framework.output import Listing, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.product.promises import QUALITIES, told_quality

app = noun("The catalog of data products.")

COLUMNS = ("product", "quality", "sla", "version", "owner", "tags", "consumers", "description")

Of = Annotated[
    str | None,
    typer.Option(
        "--domain",
        "-d",
        metavar="NAME",
        help="Only of this domain.",
        autocompletion=completion.domains,
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", help="With this tag; repeatable, all tags must match.")
]
Wanted = Annotated[str | None, typer.Option("--quality", help=QUALITIES)]
Tier = Annotated[
    int | None,
    typer.Option("--sla", min=1, max=3, help="With this service tier or a better (lower) one."),
]


@command(
    app,
    "list",
    "sdm catalog list",
    "sdm catalog list --domain east --quality standard",
    "sdm catalog list --as-of '10m ago' -o json",
)
def list_products(
    reading: Reading,
    domain: Of = None,
    tag: Tags = None,
    quality: Wanted = None,
    sla: Tier = None,
) -> None:
    """List the published products."""
    _show(reading, "", domain, tag, quality, sla)


@command(
    app,
    "search",
    "sdm catalog search users",
    "sdm catalog search 'customer change' --tag pii --sla 2 -o yaml",
)
def search(
    reading: Reading,
    text: Annotated[
        str, typer.Argument(help="Words to search for; all must match, ignoring case.")
    ],
    domain: Of = None,
    tag: Tags = None,
    quality: Wanted = None,
    sla: Tier = None,
) -> None:
    """Search products by words in their name, description, owner, topic or tags."""
    _show(reading, text, domain, tag, quality, sla)


def _show(
    reading: Reading,
    text: str,
    domain: str | None,
    tags: list[str] | None,
    quality: str | None,
    sla: int | None,
) -> None:
    wanted = told_quality(quality) if quality else None
    image = Mesh().image(reading)
    items = [
        fields(image, product)
        for _, product in sorted(image.catalog.items())
        if domain in (None, product.domain)
        and set(tags or ()) <= set(product.tags)
        and wanted in (None, product.quality)
        and (sla is None or product.sla <= sla)
        and matches(product, text)
    ]
    show(Listing(COLUMNS, items, "no products match"), reading.output)


def matches(product: Product, text: str) -> bool:
    """Whether every word of `text` occurs in what the catalog says about the product."""
    said = " ".join((product.id, product.description, product.owner, product.topic, *product.tags))
    return all(word in said.casefold() for word in text.casefold().split())


def fields(image: Image, product: Product) -> dict[str, Any]:
    """A product as the catalog shows it."""
    consumers = {
        access.application
        for access in image.access.requests.values()
        if access.product == product.id and access.state in ENTITLED
    }
    return {
        "product": product.id,
        "domain": product.domain,
        "description": product.description,
        "owner": product.owner,
        "quality": product.quality,
        "sla": product.sla,
        "tags": list(product.tags),
        "version": product.version,
        "cluster": product.cluster,
        "topic": product.topic,
        "schema_subject": product.schema_subject,
        "schema_id": product.schema_id,
        "consumers": len(consumers),
        "published_at": stamp(product.published_at),
        "updated_at": stamp(product.updated_at),
        "generation": product.generation,
    }
