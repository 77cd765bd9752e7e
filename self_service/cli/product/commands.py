"""`sdm product`: offering a topic as a data product, and keeping the offer true."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from mesh_events.errors import RefusedError
from mesh_events.intents import ProductPublished, ProductUpdated
from self_service.cli.access.view import COLUMNS as ACCESS_COLUMNS
from self_service.cli.access.view import fields as access_fields
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import Reading, SubmitOptions, command, noun
from self_service.cli.framework.output import Detail, Listing, Multiline, note, show
from self_service.cli.link.commands import COLUMNS as LINK_COLUMNS
from self_service.cli.link.commands import fields as link_fields
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.failures import COLUMNS as FAILED_COLUMNS
from self_service.cli.mesh.failures import missing_topics
from self_service.cli.product.catalog import fields as product_fields
from self_service.cli.product.promises import (
    QUALITIES,
    Promise,
    read_promise,
    tier_of,
    told_quality,
)

app = noun("Data products: topics with an owner, a schema and a promise.")

Name = Annotated[
    str, typer.Argument(help="Product id, <domain>.<name>.", autocompletion=completion.products)
]
PROMISE = "A published product is a promise: its owner keeps topic, schema and service as described"


@dataclass(frozen=True, kw_only=True)
class ProductOptions:
    """What options say about a product."""

    description: Annotated[
        str | None, typer.Option("--description", help="What the product contains, for consumers.")
    ] = None
    owner: Annotated[str | None, typer.Option("--owner", help="Id of the accountable owner.")] = (
        None
    )
    quality: Annotated[
        str | None,
        typer.Option("--quality", help=QUALITIES),
    ] = None
    sla: Annotated[str | None, typer.Option("--sla", help="Service tier 1 (best) to 3.")] = None
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="Tag to find the product by; repeatable.")
    ] = None
    version: Annotated[str | None, typer.Option("--version", help="Version, such as 1.0.0.")] = None

    def promise(self) -> Promise:
        """The same as a promise."""
        return Promise(**{**asdict(self), "tags": self.tags or None})


File = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", help="YAML or JSON file with these fields; options take precedence."
    ),
]


@command(
    app,
    "publish",
    "sdm product publish east.users --topic east.users --description 'Customers, every change'"
    " --owner team-east --quality standard --sla 2 --tag customers --acknowledge",
    "sdm product publish -f product.yaml",
)
def publish(
    options: SubmitOptions,
    product: ProductOptions,
    name: Annotated[str | None, typer.Argument(help="Product id, <domain>.<name>.")] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Topic; default: the name of the product.")
    ] = None,
    file: File = None,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Acknowledge that a product is a promise.")
    ] = False,
) -> None:
    """Publish a topic of the current domain as a data product.

    The topic must exist and its values must have a schema, subject <topic>-value.
    """
    from self_service.cli.mesh.submitting import submit

    given = product.promise().over(read_promise(file) if file else Promise())
    given = Promise(product=name, topic=topic).over(given)
    values = given.need("product", "description", "owner", "quality", "sla")
    mesh = Mesh()
    who = mesh.acting_as(options.domain)
    quality, tier = told_quality(values["quality"]), tier_of(values["sla"])
    _acknowledged(values["product"], given=acknowledge)
    done = submit(
        mesh,
        who,
        options,
        lambda meta: ProductPublished(
            meta=meta,
            product=values["product"],
            topic=given.topic or values["product"],
            description=values["description"],
            owner=values["owner"],
            quality=quality,
            sla=tier,
            tags=given.tags or [],
            version=given.version or "1.0.0",
            acknowledged=True,
        ),
    )
    show(Detail({**done.fields(), "quality": quality, "sla": tier}), options.output)


@command(
    app,
    "update",
    "sdm product update east.users --sla 1 --version 1.1.0",
    "sdm product update east.users -f product.yaml",
    "sdm product update east.users --topic-replaced",
)
def update(
    options: SubmitOptions,
    product: ProductOptions,
    name: Name,
    file: File = None,
    topic_replaced: Annotated[
        bool,
        typer.Option(
            "--topic-replaced",
            help="Offer the topic as it is now, recreated or with other partitions.",
        ),
    ] = False,
) -> None:
    """Change the catalog entry of a product; fields that are not given stay unchanged.

    --topic-replaced resolves `TOPIC_RECREATED` and `PARTITIONS_CHANGED` in `sdm drift`: topic and
    schema are checked as at publication. Links of a recreated topic must be deleted and created
    again.
    """
    from self_service.cli.mesh.submitting import submit

    given = product.promise().over(read_promise(file) if file else Promise())
    if given.product not in (None, name):
        raise UsageError(f"the file describes {given.product}, not {name}")
    if not topic_replaced and not any(
        value is not None for field, value in given if field not in ("product", "topic")
    ):
        raise UsageError("nothing to change: give an option such as --description")
    quality = None if given.quality is None else told_quality(given.quality)
    mesh = Mesh()
    done = submit(
        mesh,
        mesh.acting_as(options.domain),
        options,
        lambda meta: ProductUpdated(
            meta=meta,
            product=name,
            description=given.description,
            owner=given.owner,
            quality=quality,
            sla=None if given.sla is None else tier_of(given.sla),
            tags=given.tags,
            version=given.version,
            topic_replaced=topic_replaced,
        ),
    )
    show(Detail(done.fields()), options.output)


@command(
    app,
    "describe",
    "sdm product describe east.users",
    "sdm product describe east.users --schema -o json",
)
def describe(
    reading: Reading,
    name: Name,
    schema: Annotated[
        bool, typer.Option("--schema", help="Include the text of its schema.")
    ] = False,
) -> None:
    """Describe a product: its promise, schema, readers, copies and failures."""
    mesh = Mesh()
    image = mesh.image(reading)
    product = lookup.product(image, name)
    shown = product_fields(image, product)
    if schema:
        shown["schema"] = Multiline(mesh.registry.schema_text(product.schema_id))
    accesses = sorted(image.access.requests.values(), key=lambda one: one.offset)
    readers = [access_fields(one) for one in accesses if one.product == name]
    copies = [link_fields(one) for _, one in sorted(image.links.items()) if one.product == name]
    whole = "nothing: there is a topic of its name (`sdm drift` compares the id)"
    parts = {
        "access": Listing(ACCESS_COLUMNS, readers, "no requests yet"),
        "links": Listing(LINK_COLUMNS, copies, "no copies"),
        "failed": Listing(FAILED_COLUMNS, missing_topics(image, name), whole),
    }
    show(Detail(shown, parts), reading.output)


def _acknowledged(product: str, *, given: bool) -> None:
    """Ask for the acknowledgement; raises RefusedError where it is not given."""
    if given:
        return
    if not sys.stdin.isatty():
        raise RefusedError("not_acknowledged", f"{PROMISE}: add --acknowledge to publish {product}")
    note(PROMISE + ".")
    if not typer.confirm(f"Publish {product}?", err=True):
        raise RefusedError("not_acknowledged", f"{product} was not published")
