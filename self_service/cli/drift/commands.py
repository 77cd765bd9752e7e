"""`sdm drift`: where the clusters are not as the log says, and what was told about it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesh_events.errors import ConfigurationError
from projections.clocks import if_wrong
from self_service.cli.drift.log import DriftLog, Told, read
from self_service.cli.framework import completion
from self_service.cli.framework.exits import FindingError, NotFoundError
from self_service.cli.framework.options import Shown, command, noun
from self_service.cli.framework.output import Format, Listing, note_appended, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.callers import OPERATOR
from self_service.cli.mesh.context import Mesh

if TYPE_CHECKING:
    from processors.clusters.kafka import KafkaAdmin
    from projections.image import Image

app = noun("Differences between the clusters and the log; without a command: `sdm drift show`.")
app.info.no_args_is_help = False

COLUMNS = ("cluster", "kind", "subject", "principal", "topics", "told_since", "next")
TOLD = ("offset", "time", "cluster", "kind", "remedy", "subject", "bindings")

Place = Annotated[
    str | None,
    typer.Option("--cluster", help="Only on this cluster.", autocompletion=completion.clusters),
]


@command(app, "show", "sdm drift", "sdm drift show --cluster east", "sdm drift show -o json")
def show_drift(shown: Shown, cluster: Place = None) -> None:
    """List the ACLs and topics on the clusters that differ from the log now.

    The same as `sdm drift`. Needs the operator's login of each cluster. The exit code is 8 if
    drift is found. An ACL that the controllers are about to set is not drift.
    """
    from self_service.cli.drift.look import rights, topics

    mesh = Mesh()
    said = _said(mesh)
    image = said.image
    chosen = _clusters(image, cluster)
    admins = {name: _admin(mesh, image, name) for name in sorted(image.identity.clusters)}
    items = [one for name in chosen for one in rights(image, name, admins[name])]
    items += [one for one in topics(said, admins) if cluster in (None, one["cluster"])]
    where = cluster or f"{len(image.identity.clusters)} clusters"
    empty = f"no drift on {where}: ACLs and topics match the log"
    show(Listing(COLUMNS, items, empty), shown.output)
    if items:
        raise FindingError(
            f"{len(items)} {'finding' if len(items) == 1 else 'findings'}: "
            "docs/operating/drift.md explains each and the next step"
        )


@command(app, "history", "sdm drift history", "sdm drift history --cluster west -o yaml")
def history(shown: Shown, cluster: Place = None) -> None:
    """List the drift on the log: what was found, and what was done."""
    said = _said(Mesh())
    if cluster is not None:
        _clusters(said.image, cluster)
    items = [_told(one) for one in said.told if cluster in (None, one.fact.cluster)]
    show(Listing(TOLD, items, "no drift on the log"), shown.output)
    if shown.output is Format.TABLE:
        note_appended(items)


@app.callback(invoke_without_command=True)
def _default(
    context: typer.Context,
    cluster: Place = None,
    output: Annotated[
        Format, typer.Option("--output", "-o", help="Form of the answer on stdout.")
    ] = Format.TABLE,
) -> None:
    """Show the drift if no command is given."""
    if context.invoked_subcommand is None:
        show_drift(Shown(output=output), cluster)


def _said(mesh: Mesh) -> DriftLog:
    with mesh.log() as reader:
        said = mesh.fold(reader, read)
    completion.remember(mesh.home, said.image)
    return said


def _clusters(image: "Image", name: str | None) -> list[str]:
    known = sorted(image.identity.clusters)
    if name is not None and name not in known:
        raise NotFoundError(f"there is no cluster {name}: known are {', '.join(known) or 'none'}")
    return known if name is None else [name]


def _admin(mesh: Mesh, image: "Image", cluster: str) -> "KafkaAdmin":
    """The operator's login: nobody else may list all rights."""
    from processors.clusters.kafka import KafkaAdmin

    found = image.identity.clusters[cluster]
    try:
        login = mesh.login(image, cluster, OPERATOR.principal)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"listing the ACLs on cluster {cluster} needs the operator's login "
            f"{found.admin_user}, which is not available here: {error}; run `sdm drift` where the "
            "operator's passwords are"
        ) from error
    return KafkaAdmin(cluster, login)


def _told(one: Told) -> dict[str, Any]:
    fact = one.fact
    return {
        "offset": one.offset,
        "time": stamp(one.time),
        "appended": stamp(if_wrong(one.appended, one.time)),
        "cluster": fact.cluster,
        "kind": fact.drift,
        "remedy": fact.remedy,
        "subject": fact.subject,
        "principal": fact.principal,
        "topics": fact.topics,
        "generation": fact.generation,
        "untold": fact.untold,
        "bindings": fact.bindings,
    }
