"""`sdm access`: asking for products, deciding on it, logins of applications."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mesh_events.intents import (
    AccessDenied,
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    OnRevoke,
)
from projections.access import Access, State
from self_service.cli import completion, explanation, lookup
from self_service.cli.context import Mesh
from self_service.cli.exits import UsageError
from self_service.cli.options import (
    OptionalReason,
    Reading,
    Reason,
    Saying,
    Until,
    command,
    noun,
)
from self_service.cli.output import Detail, Listing, show
from self_service.cli.times import stamp

app = noun("Access to products: request, decide, revoke, and why somebody may read.")

COLUMNS = ("number", "product", "application", "state", "requested_at", "reason")

Which = Annotated[
    str | None,
    typer.Argument(
        metavar="[REQUEST]",
        help="Id, unique prefix, or #OFFSET of the request.",
        autocompletion=completion.requests,
    ),
]
ForProduct = Annotated[
    str | None,
    typer.Option("--product", help="Product.", autocompletion=completion.products),
]
ForApplication = Annotated[
    str | None,
    typer.Option("--application", help="Application.", autocompletion=completion.applications),
]


@command(
    app,
    "request",
    "sdm access request east.users west.analytics --reason 'weekly report'",
    "sdm access request east.users west.analytics -r 'weekly report' --until active --timeout 600",
)
def request(
    saying: Saying,
    product: Annotated[
        str, typer.Argument(help="Product to read.", autocompletion=completion.products)
    ],
    application: Annotated[
        str, typer.Argument(help="Who will read it.", autocompletion=completion.applications)
    ],
    reason: Reason,
) -> None:
    """Request access for an application of the current domain; the owner decides."""
    from self_service.cli.saying import say

    mesh = Mesh()
    said = say(
        mesh,
        mesh.speaker(saying.domain),
        saying,
        lambda meta: AccessRequested(
            meta=meta, product=product, application=application, reason=reason
        ),
    )
    number = f"#{said.receipt.offset}"
    show(Detail({"number": number, "request": said.receipt.id, **said.fields()}), saying.output)


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
    """List requests and what became of them, oldest first."""
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
    "sdm access grant '#41' --reason 'agreed with team-west'",
    "sdm access grant --product east.users --application west.analytics --until active",
)
def grant(
    saying: Saying,
    which: Which = None,
    product: ForProduct = None,
    application: ForApplication = None,
    reason: OptionalReason = "",
    on_revoke: Annotated[
        OnRevoke,
        typer.Option(
            "--on-revoke",
            case_sensitive=False,
            help="The copy's end when the last grant ends: PURGE or RETAIN.",
        ),
    ] = OnRevoke.PURGE,
) -> None:
    """Grant a request, as the product's owner.

    --until applied waits for the reader's rights, --until active also for the copy.
    """
    mesh = Mesh()
    found = _request(mesh, which, product, application)
    _decide(
        mesh,
        saying,
        found,
        lambda meta: AccessGranted(
            meta=meta,
            product=found.product,
            request=found.request,
            reason=reason,
            on_revoke=on_revoke,
        ),
    )


@command(app, "deny", "sdm access deny '#41' --reason 'ask for the masked view instead'")
def deny(
    saying: Saying,
    reason: Reason,
    which: Which = None,
    product: ForProduct = None,
    application: ForApplication = None,
) -> None:
    """Deny a request, as the product's owner."""
    mesh = Mesh()
    found = _request(mesh, which, product, application)
    _decide(
        mesh,
        saying,
        found,
        lambda meta: AccessDenied(
            meta=meta, product=found.product, request=found.request, reason=reason
        ),
    )


@command(
    app,
    "revoke",
    "sdm access revoke '#41' --reason 'project ended'",
    "sdm access revoke '#41' -r 'project ended' --until active",
)
def revoke(
    saying: Saying,
    reason: Reason,
    which: Which = None,
    product: ForProduct = None,
    application: ForApplication = None,
) -> None:
    """Revoke a grant, as the owner, or give it back, as the consumer.

    --until applied waits until the rights are gone, --until active also for the copy's end.
    """
    mesh = Mesh()
    found = _request(mesh, which, product, application)
    _decide(
        mesh,
        saying,
        found,
        lambda meta: AccessRevoked(
            meta=meta, product=found.product, request=found.request, reason=reason
        ),
    )


@command(
    app,
    "credentials",
    "sdm access credentials west.analytics --out analytics.properties",
    "sdm access credentials west.analytics --out client.properties --form java",
    "sdm access credentials west.analytics --show",
)
def credentials(
    saying: Saying,
    principal: Annotated[
        str,
        typer.Argument(
            help="Application id, or the domain's name.", autocompletion=completion.applications
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a client's settings there, mode 0600.")
    ] = None,
    show_once: Annotated[bool, typer.Option("--show", help="Show them on stdout, once.")] = False,
    form: Annotated[
        str, typer.Option("--form", help="java or librdkafka; both log in the same way.")
    ] = "librdkafka",
) -> None:
    """Make a login anew and hand out a client's settings; the old password is refused from now.

    A client that is connected already goes on until it has to connect again.
    """
    from self_service.cli.credentials import Form, hand_out

    if (out is None) == (not show_once):
        raise UsageError("give either --out FILE or --show")
    try:
        wanted = Form(form)
    except ValueError:
        raise UsageError(f"--form is {form!r}: use java or librdkafka") from None
    hand_out(Mesh(), saying, principal, wanted, out)


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

    Entitled is what was decided, enforced what the cluster's rights say now, copied where data is.
    """
    show(explanation.explain(Mesh(), reading, product, application), reading.output)


def fields(access: Access) -> dict[str, Any]:
    """A request as lists show it."""
    return {
        "number": lookup.number(access),
        "request": access.request,
        "offset": access.offset,
        "product": access.product,
        "application": access.application,
        "state": access.state,
        "cluster": access.cluster,
        "topic": access.topic,
        "link": access.link,
        "reason": access.reason,
        "requested_by": access.requested_by,
        "requested_at": stamp(access.requested_at),
        "decided_by": access.decided_by,
        "decided_at": stamp(access.decided_at),
        "decision_reason": access.decision_reason,
        "on_revoke": access.on_revoke,
        "active_at": stamp(access.active_at),
        "revoked_by": access.revoked_by,
        "revoked_at": stamp(access.revoked_at),
        "revoke_reason": access.revoke_reason,
        "removed_at": stamp(access.removed_at),
        "generation": access.generation,
    }


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    try:
        return State(text.upper())
    except ValueError:
        known = ", ".join(state.value for state in State if state is not State.UNKNOWN)
        raise UsageError(f"{text!r} is no state of a request: use {known}") from None


def _request(mesh: Mesh, which: str | None, product: str | None, application: str | None) -> Access:
    return lookup.request(mesh.image(), which, product, application)


def _decide(mesh: Mesh, saying: Saying, found: Access, make: Any) -> None:
    from self_service.cli.saying import say

    who = mesh.speaker(saying.domain)
    said = say(mesh, who, saying, make, default=Until.DECIDED, cause=found.request)
    about = {
        "product": found.product,
        "application": found.application,
        "number": lookup.number(found),
        "request": found.request,
    }
    show(Detail({**about, **said.fields()}), saying.output)
