"""`sdm access`: asking for products, deciding on it, logins of applications."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.intents import (
    AccessDenied,
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    Engine,
    Intent,
    OnRevoke,
    domain_of,
)
from mesh_events.meta import Meta
from projections.access import Access, State
from projections.image import Image
from self_service.cli.access import explanation
from self_service.cli.access.view import COLUMNS, fields
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.framework.options import (
    OptionalReason,
    Reading,
    Reason,
    SubmitOptions,
    command,
    noun,
    one_of,
)
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh

app = noun("Access to products: request, grant, deny, revoke, and explain who may read.")

ForProduct = Annotated[
    str | None,
    typer.Option("--product", help="Product.", autocompletion=completion.products),
]
ForApplication = Annotated[
    str | None,
    typer.Option("--application", help="Application.", autocompletion=completion.applications),
]


@dataclass(frozen=True, kw_only=True)
class Meant:
    """Which request: by its number or id, or by the pair that it is about."""

    which: Annotated[
        str | None,
        typer.Argument(
            metavar="REQUEST",
            help="Id, unique prefix or offset of the request.",
            autocompletion=completion.requests,
        ),
    ] = None
    product: ForProduct = None
    application: ForApplication = None

    def find(self, mesh: Mesh) -> Access:
        """The one request that is meant, see `lookup.request`."""
        return lookup.request(mesh.image(), self.which, self.product, self.application)


@command(
    app,
    "request",
    "sdm access request east.users west.analytics --reason 'weekly report'",
    "sdm access request east.users west.analytics -r 'weekly report' --until active --timeout 600",
)
def request(
    options: SubmitOptions,
    product: Annotated[
        str, typer.Argument(help="Product to read.", autocompletion=completion.products)
    ],
    application: Annotated[
        str,
        typer.Argument(help="Application that reads it.", autocompletion=completion.applications),
    ],
    reason: Reason,
) -> None:
    """Request access for an application of the current domain; the owner decides."""
    from self_service.cli.mesh.submitting import submit

    mesh = Mesh()
    submitted = submit(
        mesh,
        mesh.acting_as(options.domain),
        options,
        lambda meta: AccessRequested(
            meta=meta, product=product, application=application, reason=reason
        ),
    )
    number = str(submitted.receipt.offset)
    show(
        Detail({"number": number, "request": submitted.receipt.id, **submitted.fields()}),
        options.output,
    )
    if submitted.image is None:
        owner = domain_of(product)
        note(f"{owner} decides: `sdm access grant {number} -d {owner}`, or `deny`")


@command(
    app,
    "list",
    "sdm access list",
    "sdm access list --product east.users --state requested",
    "sdm access list --as-of '1h ago' -o json",
)
def list_accesses(
    reading: Reading,
    product: ForProduct = None,
    application: ForApplication = None,
    state: Annotated[
        str | None, typer.Option("--state", help="REQUESTED, GRANTED, ACTIVE, REVOKED ...")
    ] = None,
) -> None:
    """List access requests and their states, oldest first."""
    wanted = _state(state)
    image = Mesh().image(reading)
    items = [
        fields(one)
        for one in sorted(image.access.requests.values(), key=lambda found: found.offset)
        if product in (None, one.product)
        and application in (None, one.application)
        and wanted in (None, one.state)
    ]
    show(Listing(COLUMNS, items, "no requests"), reading.output)


@command(
    app,
    "grant",
    "sdm access grant 41 --reason 'agreed with team-west'",
    "sdm access grant --product east.users --application west.analytics --until active",
)
def grant(
    options: SubmitOptions,
    meant: Meant,
    reason: OptionalReason = "",
    on_revoke: Annotated[
        OnRevoke,
        typer.Option(
            "--on-revoke",
            **one_of(OnRevoke),
            help="What happens to the copy when the last grant ends: PURGE or RETAIN.",
        ),
    ] = OnRevoke.PURGE,
    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            **one_of(Engine),
            help="Engine of the link, if this grant creates it: SPARK or MIRRORMAKER.",
        ),
    ] = Engine.SPARK,
) -> None:
    """Grant a request as the product's owner.

    --until applied waits for the reader's ACLs; --until active also waits until the copy runs. The
    copy starts with the existing records: `sdm topic consume --follow` shows them as they arrive.
    """
    how = {"reason": reason, "on_revoke": on_revoke, "engine": engine}
    _decide(options, meant, lambda meta, about: AccessGranted(meta=meta, **about, **how))


@command(app, "deny", "sdm access deny 41 --reason 'ask for the masked view instead'")
def deny(options: SubmitOptions, reason: Reason, meant: Meant) -> None:
    """Deny a request as the product's owner."""
    _decide(options, meant, lambda meta, about: AccessDenied(meta=meta, **about, reason=reason))


@command(
    app,
    "revoke",
    "sdm access revoke 41 --reason 'project ended'",
    "sdm access revoke 41 -r 'project ended' --until active",
)
def revoke(options: SubmitOptions, reason: Reason, meant: Meant) -> None:
    """Revoke a grant as the owner or operator, or return it as the consumer.

    --until applied waits until the ACLs are removed; --until active also waits until the copy ends.
    `left` lists the topics and tables that statements and sinks made of the data: a revocation
    does not delete them.
    """
    from self_service.cli.access import revocation

    mesh = Mesh()
    found = meant.find(mesh)
    shown, image = _decided(
        mesh, found, options, lambda meta, about: AccessRevoked(meta=meta, **about, reason=reason)
    )
    image = image or mesh.image()
    show(revocation.answer(image, image.access.requests[found.request], shown), options.output)
    if next_step := revocation.next_step(image, found):
        note(next_step)


@command(
    app,
    "credentials",
    "sdm access credentials west.analytics --out analytics.properties",
    "sdm access credentials west.analytics --out client.properties --form java",
    "sdm access credentials west.analytics --show",
    "sdm access credentials west --cluster east --out log.properties",
)
def credentials(
    options: SubmitOptions,
    principal: Annotated[
        str,
        typer.Argument(
            help="Application id, or the domain's name.", autocompletion=completion.applications
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write the client settings to, mode 0600.")
    ] = None,
    show_once: Annotated[
        bool, typer.Option("--show", help="Print the client settings on stdout, once.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Cluster to log in to; default: the home cluster. A domain may name the log's.",
            autocompletion=completion.clusters,
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--form", help="Format of the settings: java or librdkafka, with the same login."
        ),
    ] = "librdkafka",
) -> None:
    """Issue a new password and client settings with it; the old password is refused from now on.

    A connected client keeps running until it reconnects.
    """
    from self_service.cli.domain.credentials import Form, hand_out

    if (out is None) == (not show_once):
        raise UsageError("give either --out FILE or --show")
    try:
        wanted = Form(form)
    except ValueError:
        raise UsageError(f"--form is {form!r}: use java or librdkafka") from None
    hand_out(Mesh(), options, principal, wanted, out, cluster)


@command(
    app,
    "explain",
    "sdm access explain east.users west.analytics",
    "sdm access explain east.users west.analytics --as-of 2026-01-31T12:00:00Z -o json",
)
def explain(
    reading: Reading,
    product: Annotated[str, typer.Argument(help="Product.", autocompletion=completion.products)],
    application: Annotated[
        str, typer.Argument(help="Application.", autocompletion=completion.applications)
    ],
) -> None:
    """Explain whether an application may read a product: entitled, enforced, copied, and why.

    entitled: the decision on the log. enforced: the ACLs of the cluster now. copied: where data is.
    """
    show(explanation.explain(Mesh(), reading, product, application), reading.output)


@command(
    app,
    "readers",
    "sdm access readers east.users",
    "sdm access readers east.users --as-of 2026-01-31T12:00:00Z -o json",
)
def list_readers(
    reading: Reading,
    product: Annotated[str, typer.Argument(help="Product.", autocompletion=completion.products)],
) -> None:
    """List who can read a product or a copy of it, and why.

    From the log: the owner's domain and applications, grants, statements, sinks and links.
    """
    from self_service.cli.access.readers import detail

    show(detail(Mesh().image(reading), product), reading.output)


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    try:
        return State(text.upper())
    except ValueError:
        known = ", ".join(state.value for state in State if state is not State.UNKNOWN)
        raise UsageError(f"{text!r} is not a state of a request: use {known}") from None


def _decide(
    options: SubmitOptions, meant: Meant, make: Callable[[Meta, dict[str, str]], Intent]
) -> None:
    """Submit what `make` makes of its `meta` and of the product and id of the request."""
    mesh = Mesh()
    shown, _ = _decided(mesh, meant.find(mesh), options, make)
    show(Detail(shown), options.output)


def _decided(
    mesh: Mesh,
    found: Access,
    options: SubmitOptions,
    make: Callable[[Meta, dict[str, str]], Intent],
) -> tuple[dict[str, Any], Image | None]:
    """The fields of the answer, and the state where effects were waited for."""
    from self_service.cli.mesh.submitting import submit

    about = {"product": found.product, "request": found.request}
    who = mesh.acting_as(options.domain)
    submitted = submit(mesh, who, options, lambda meta: make(meta, about), cause=found.request)
    shown = {
        "product": found.product,
        "application": found.application,
        "number": lookup.number(found),
        "request": found.request,
    }
    return {**shown, **submitted.fields()}, submitted.image
