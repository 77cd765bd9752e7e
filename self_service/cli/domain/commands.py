"""`sdm domain`: who takes part in the mesh."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from mesh_events.intents import DomainRegistered
from mesh_events.meta import milliseconds
from mesh_events.settings import key_path
from projections.identity import Domain
from projections.image import Image
from projections.quotas.kinds import Kind, Used
from self_service.cli.framework import completion
from self_service.cli.framework.options import Reading, SubmitOptions, Until, command, noun
from self_service.cli.framework.output import Detail, Listing, note, show
from self_service.cli.framework.times import parse_time, present, stamp
from self_service.cli.mesh import lookup
from self_service.cli.mesh.callers import OPERATOR, judge
from self_service.cli.mesh.context import Mesh

app = noun("Domains own data and share it as products.")

Name = Annotated[str, typer.Argument(help="The domain.", autocompletion=completion.domains)]


@command(
    app,
    "register",
    "sdm domain register east --cluster east --owner team-east",
    "sdm domain register west --cluster west --owner team-west --description 'Sales, west'",
)
def register(
    options: SubmitOptions,
    name: Annotated[str, typer.Argument(help="Name, a-z, 0-9 and '-'.")],
    cluster: Annotated[
        str, typer.Option("--cluster", help="Home cluster.", autocompletion=completion.clusters)
    ],
    owner: Annotated[str, typer.Option("--owner", help="Id of the accountable owner.")],
    description: Annotated[
        str, typer.Option("--description", help="What the domain is about.")
    ] = "",
) -> None:
    """Register a domain: creates its signing key here, and waits until it can log in.

    Only the operator registers domains. The key is $SDM_HOME/keys/NAME.key, mode 0600.
    """
    from mesh_events.signing import SigningKey
    from self_service.cli.mesh.submitting import IntentRefusedError, submit

    # before anything is read or written under this name
    judge(name)
    mesh = Mesh()
    place = key_path(mesh.home, name)
    # looked up first, so that a mesh that does not answer leaves no key behind
    known = name in mesh.image().identity.domains
    kept = place.exists() or known
    key = SigningKey.generate() if known else SigningKey.load_or_generate(place)
    try:
        submitted = submit(
            mesh,
            OPERATOR,
            options,
            lambda meta: DomainRegistered(
                meta=meta,
                domain=name,
                description=description,
                owner=owner,
                cluster=cluster,
                public_key=key.public,
                proof=key.prove(mesh.profile.root_key, name),
            ),
            default=Until.APPLIED,
        )
    except IntentRefusedError:
        if not kept:
            place.unlink(missing_ok=True)
        raise
    note(f"its signing key is {place}; act as {name} with `sdm switch-domain {name}`")
    show(Detail({**submitted.fields(), "public_key": key.public}), options.output)


@command(app, "list", "sdm domain list", "sdm domain list --as-of '10m ago' -o json")
def list_domains(reading: Reading) -> None:
    """List the domains."""
    image = Mesh().image(reading)
    time = time_of(image, reading)
    items = [_fields(image, found, time) for _, found in sorted(image.identity.domains.items())]
    columns = (
        "domain",
        "cluster",
        "owner",
        "products",
        "ready",
        "frozen_until",
        "quarantined",
        "description",
    )
    show(Listing(columns, items, "no domains yet: `sdm domain register`"), reading.output)


@command(app, "describe", "sdm domain describe east", "sdm domain describe east --at-offset 60")
def describe(reading: Reading, name: Name) -> None:
    """Describe a domain: its resources and their limits, its keys, logins and products."""
    image = Mesh().image(reading)
    found = lookup.domain(image, name)
    identity = image.identity
    keys = [
        {"public_key": key.public, "since": key.since, "revoked": key.revoked}
        for key in sorted(identity.keys.values(), key=lambda one: one.since)
        if key.domain == name
    ]
    logins = [
        {
            "principal": one.principal,
            "cluster": one.cluster,
            "generation": one.generation,
            "issued": one.issued == one.generation,
            "failure": one.failure,
        }
        for _, one in sorted(identity.credentials.items())
        if one.principal == name or one.principal.startswith(f"{name}.")
    ]
    products = [
        {"product": one.id, "topic": one.topic, "version": one.version}
        for _, one in sorted(image.catalog.items())
        if one.domain == name
    ]
    parts = {
        "quotas": Listing(("kind", "standing", "bound", "kept", "kept_bound"), quotas(image, name)),
        "keys": Listing(("public_key", "since", "revoked"), keys),
        "logins": Listing(("principal", "cluster", "generation", "issued", "failure"), logins),
        "data_products": Listing(("product", "topic", "version"), products, "no products yet"),
    }
    show(Detail(_fields(image, found, time_of(image, reading)), parts), reading.output)


def quotas(image: Image, domain: str) -> list[dict[str, Any]]:
    """For each kind what a domain has, ended ones included (`kept`), and may have."""
    found = []
    for kind in Kind:
        used, most = image.counts.get((domain, kind), Used()), image.bounds.quotas.of(kind)
        found.append(
            {
                "kind": kind.value,
                "standing": used.standing,
                "bound": most.standing,
                "kept": used.kept,
                "kept_bound": most.kept,
            }
        )
    return found


def time_of(image: Image, reading: Reading) -> int:
    """The time by which freezes have ended in an answer, ms; see `Image.ended_by`."""
    if reading.at_offset is not None:
        return image.ended_by(image.time)
    now = present(image.time)
    if reading.as_of is None:
        return image.ended_by(now)
    # of what is to come only the state now is known
    return image.ended_by(min(now, milliseconds(parse_time(reading.as_of, datetime.now(UTC)))))


def _fields(image: Image, found: Domain, time: int) -> dict[str, Any]:
    places = {found.cluster, image.identity.governance_cluster}
    freeze = image.identity.freeze_of(found.name, time)
    return {
        "domain": found.name,
        "cluster": found.cluster,
        "owner": found.owner,
        "description": found.description,
        "products": sum(one.domain == found.name for one in image.catalog.values()),
        "ready": places <= set(found.rights),
        "generation": found.generation,
        "frozen_until": stamp(freeze.until) if freeze else None,
        "quarantined": found.name in image.identity.quarantines,
    }
