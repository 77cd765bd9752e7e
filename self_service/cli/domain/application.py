"""`sdm application`: the programs of a domain that read products."""

from typing import Annotated

import typer

from mesh_events.intents import ApplicationRegistered, domain_of
from self_service.cli.framework.options import (
    OfDomain,
    Reading,
    SubmitOptions,
    Until,
    command,
    noun,
)
from self_service.cli.framework.output import Detail, Listing, show
from self_service.cli.mesh.context import Mesh

app = noun("Applications read products. Each has its own login.")


@command(
    app,
    "register",
    "sdm application register west.analytics",
    "sdm application register west.analytics --description 'Weekly figures' --domain west",
)
def register(
    options: SubmitOptions,
    name: Annotated[str, typer.Argument(help="Application id, <domain>.<name>.")],
    description: Annotated[
        str, typer.Option("--description", help="Purpose of the application.")
    ] = "",
) -> None:
    """Register an application of the current domain, and wait until it can log in."""
    from self_service.cli.mesh.submitting import submit

    mesh = Mesh()
    submitted = submit(
        mesh,
        mesh.acting_as(options.domain),
        options,
        lambda meta: ApplicationRegistered(meta=meta, application=name, description=description),
        default=Until.APPLIED,
    )
    show(Detail(submitted.fields()), options.output)


@command(app, "list", "sdm application list", "sdm application list --of west -o yaml")
def list_applications(
    reading: Reading,
    of: OfDomain = None,
) -> None:
    """List the applications."""
    image = Mesh().image(reading)
    items = []
    for name, found in sorted(image.identity.applications.items()):
        domain = domain_of(name)
        home = image.identity.domains[domain].cluster
        if of in (None, domain):
            login = image.identity.credentials[name, home]
            items.append(
                {
                    "application": name,
                    "cluster": home,
                    "ready": home in found.rights and login.issued == login.generation,
                    "failure": login.failure,
                    "description": found.description,
                    "generation": found.generation,
                }
            )
    columns = ("application", "cluster", "ready", "failure", "description")
    empty = "no applications: `sdm application register`"
    show(Listing(columns, items, empty), reading.output)
