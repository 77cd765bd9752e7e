"""`sdm link`: the copies of products in other clusters."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from mesh_events.intents import (
    Engine,
    LinkCreated,
    LinkDeleted,
    LinkIntent,
    LinkPaused,
    LinkResumed,
)
from mesh_events.meta import Meta
from projections.access import ENTITLED, Access
from projections.image import Image
from projections.links import Copy, Link, link_id
from self_service.cli.framework import completion
from self_service.cli.framework.options import (
    OptionalReason,
    Reading,
    SubmitOptions,
    command,
    noun,
    one_of,
)
from self_service.cli.framework.output import Detail, Listing, show
from self_service.cli.framework.times import stamp
from self_service.cli.link.lag import lag_of, stands_still
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh

app = noun("Links copy a product to the cluster of its readers.")

COLUMNS = ("link", "state", "copy", "engine", "changed_at", "failure")

Name = Annotated[
    str,
    typer.Argument(help="Link id, <product>@<cluster>.", autocompletion=completion.links),
]


WhatCopies = Annotated[
    Engine,
    typer.Option("--engine", **one_of(Engine), help="Engine of the link: SPARK or MIRRORMAKER."),
]


@command(app, "list", "sdm link list", "sdm link list --cluster west -o json")
def list_links(
    reading: Reading,
    of: Annotated[
        str | None,
        typer.Option("--cluster", help="Only to this cluster.", autocompletion=completion.clusters),
    ] = None,
    product: Annotated[
        str | None,
        typer.Option("--product", help="Only of this product.", autocompletion=completion.products),
    ] = None,
) -> None:
    """List the links."""
    image = Mesh().image(reading)
    items = [
        fields(one)
        for _, one in sorted(image.links.items())
        if of in (None, one.cluster) and product in (None, one.product)
    ]
    show(
        Listing(COLUMNS, items, "no links: a grant to another cluster creates one"), reading.output
    )


@command(app, "describe", "sdm link describe east.users@west")
def describe(reading: Reading, name: Name) -> None:
    """Describe a link: its state, positions, lag (now only) and the grants that need it.

    Lag is the number of offsets per partition, read from the topics of both clusters. While a
    transaction is open in the source, the copy waits at the last stable offset, which is shown.
    """
    mesh = Mesh()
    image = mesh.image(reading)
    found = lookup.link(image, name)
    grants = [
        {
            "number": lookup.number(one),
            "offset": one.offset,
            "application": one.application,
            "state": one.state,
        }
        for one in _asked(image, name)
    ]
    now: dict[str, Any] = {}
    if reading.is_now:
        now["lag"] = lag_of(mesh, image, found)
    if reading.is_now and found.copy is Copy.PRESENT:
        topics = [found.source_topic]
        now["open_transactions"] = stands_still(mesh, image, found.source_cluster, topics)
    shown = {
        **fields(found),
        "failure_file": mesh.error_file("link", found.id, found.failure_code),
        "positions": dict(sorted(found.positions.items(), key=lambda pair: int(pair[0]))),
        **now,
        "source_topic_id": found.source_topic_id,
        "destination_topic_id": found.destination_topic_id,
        "principal": found.principal,
        "copied_from": stamp(found.copied_from),
        "copied_to": stamp(found.copied_to),
    }
    parts = {"grants": Listing(("number", "application", "state"), grants)}
    show(Detail(shown, parts), reading.output)


@command(
    app,
    "create",
    "sdm link create east.users --cluster west",
    "sdm link create east.users --cluster west --until active",
    "sdm link create east.users --cluster west --engine mirrormaker",
)
def create(
    options: SubmitOptions,
    product: Annotated[str, typer.Argument(help="Product.", autocompletion=completion.products)],
    cluster: Annotated[
        str,
        typer.Option("--cluster", help="Cluster of the copy.", autocompletion=completion.clusters),
    ],
    reason: OptionalReason = "",
    engine: WhatCopies = Engine.SPARK,
) -> None:
    """Create a deleted link again; accepted only while a grant needs it.

    A grant to another cluster creates its link automatically.
    """
    mesh = Mesh()
    lookup.product(mesh.image(), product)
    more = {"product": product, "cluster": cluster, "reason": reason}
    name = link_id(product, cluster)
    _submit(mesh, options, name, lambda meta: LinkCreated(meta=meta, **more, engine=engine))


@command(app, "pause", "sdm link pause east.users@west --reason 'maintenance'")
def pause(options: SubmitOptions, name: Name, reason: OptionalReason = "") -> None:
    """Pause a link; the readers keep their ACLs.

    A domain that is the only reader may pause it as well; a grant to another domain ends the pause.
    """
    mesh, place = _standing(name)
    _submit(mesh, options, name, lambda meta: LinkPaused(meta=meta, **place, reason=reason))


@command(
    app,
    "resume",
    "sdm link resume east.users@west --until active",
    "sdm link resume east.users@west --engine mirrormaker",
)
def resume(
    options: SubmitOptions,
    name: Name,
    reason: OptionalReason = "",
    engine: Annotated[
        Engine | None,
        typer.Option("--engine", **one_of(Engine), help="Engine of the link from now on."),
    ] = None,
) -> None:
    """Resume a paused link where it stopped, also with the other engine."""
    mesh, place = _standing(name)
    more = {**place, "reason": reason}
    _submit(mesh, options, name, lambda meta: LinkResumed(meta=meta, **more, engine=engine))


@command(
    app, "delete", "sdm link delete east.users@west --reason 'not needed any more'", alias="remove"
)
def delete(options: SubmitOptions, name: Name, reason: OptionalReason = "") -> None:
    """Delete a link; the grants remain and determine whether its data is purged or retained.

    `sdm link create` creates it again while a grant needs it.
    """
    mesh, place = _standing(name)
    _submit(mesh, options, name, lambda meta: LinkDeleted(meta=meta, **place, reason=reason))


def fields(link: Link) -> dict[str, Any]:
    """A link as lists show it."""
    return {
        "link": link.id,
        "product": link.product,
        "source_cluster": link.source_cluster,
        "source_topic": link.source_topic,
        "cluster": link.cluster,
        "topic": link.topic,
        "state": link.state,
        "desired": link.desired,
        "paused_by": link.paused_by,
        "held": link.held,
        "copy": link.copy,
        "engine": link.engine,
        "incarnation": link.incarnation,
        "run": link.run,
        "failure_code": link.failure_code,
        "failure": link.failure,
        "created_at": stamp(link.created_at),
        "changed_at": stamp(link.changed_at),
        "generation": link.generation,
    }


def _standing(name: str) -> tuple[Mesh, dict[str, str]]:
    """The mesh, and the product and the cluster of a link that must be there."""
    mesh = Mesh()
    found = lookup.link(mesh.image(), name)
    return mesh, {"product": found.product, "cluster": found.cluster}


def _submit(
    mesh: Mesh, options: SubmitOptions, name: str, make: Callable[[Meta], LinkIntent]
) -> None:
    from self_service.cli.mesh.submitting import submit

    cause = _cause(mesh.image(), name)
    submitted = submit(mesh, mesh.acting_as(options.domain), options, make, cause=cause)
    show(Detail({"link": name, **submitted.fields()}), options.output)


def _asked(image: Image, name: str) -> list[Access]:
    """Every access whose data would come over a link, granted or not, oldest first."""
    found = (one for one in image.access.requests.values() if one.link == name)
    return sorted(found, key=lambda one: one.offset)


def _cause(image: Image, name: str) -> str | None:
    """The request whose conversation goes on: the newest grant that needs the link."""
    needing = [one for one in image.access.of_link(name) if one.state in ENTITLED]
    return max(needing, key=lambda one: one.changed).request if needing else None
