"""`sdm connect list|describe|plugins`, `sdm connect connector list`: what there is."""

from typing import Annotated, Any

import typer

from mesh_events.errors import InfrastructureError
from processors.connect.principals import group_of
from processors.connect.rest import Connect
from projections.connectors.config import JDBC_SINK, POSTGRES
from self_service.cli.connect import debezium, jdbc_sink, workers
from self_service.cli.connect.app import app, connector_app
from self_service.cli.connect.workers import Worker
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.framework.options import OfDomain, Shown, command
from self_service.cli.framework.output import Detail, Listing, show
from self_service.cli.mesh.callers import current_domain
from self_service.cli.mesh.context import Mesh

_REPOSITORY = (
    {
        "type": debezium.TYPE,
        "direction": "source",
        "class": POSTGRES,
        "brings": "each change of a PostgreSQL table into the topic <domain>.<table>",
        "example": f"sdm connect connector add shop --type {debezium.TYPE} --table users",
    },
    {
        "type": debezium.OUTBOX,
        "direction": "source",
        "class": POSTGRES,
        "brings": "each row of an outbox table into the topic <domain>.<aggregatetype>",
        "example": f"sdm connect connector add events --type {debezium.OUTBOX} --table outbox",
    },
    {
        "type": jdbc_sink.TYPE,
        "direction": "sink",
        "class": JDBC_SINK,
        "brings": "each record of a topic into the table of its name",
        "example": f"sdm connect connector add report --type {jdbc_sink.TYPE} --topic orders",
    },
)
"""Kinds of connectors that `add --type` knows; any other plugin is added with a file."""
_ELSEWHERE = (
    {
        "type": "mirrormaker",
        "direction": "both",
        "class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "brings": "a product into another cluster, as a link of the mesh",
        "example": "sdm access grant 41 --engine mirrormaker",
    },
    {
        "type": "generator",
        "direction": "source",
        "class": "-",
        "brings": "generated clicks, trades or records of a schema, as a job of the mesh",
        "example": "sdm generate east.clicks --kind clickstream --background --name clicks",
    },
)
"""What brings data in and is not added as a connector."""


@command(app, "list", "sdm connect list -o json")
def list_workers(shown: Shown) -> None:
    """List the Connect workers, one for each domain with connectors or MirrorMaker links.

    The mesh starts a worker when its domain first needs it, and stops it when it runs no connector.
    """
    ends = Mesh().endpoints
    items = [_of_domain(domain, one) for domain, one in workers.known().items()]
    if (shared := workers.shared(ends)) is not None:
        items.append(_about({"connect": ends.connect_group, "domain": None}, shared))
    columns = ("connect", "domain", "state", "url", "version", "connectors", "failed")
    none = "no Connect workers: the mesh starts one for a domain's first connector"
    show(Listing(columns, items, none), shown.output)


@command(app, "describe", "sdm connect describe -d shop")
def describe(shown: Shown, of: OfDomain = None) -> None:
    """Describe a domain's Connect worker: its connectors and its plugins."""
    mesh, domain = Mesh(), _domain(of)
    worker = workers.known().get(domain)
    shared = workers.shared(mesh.endpoints)
    if worker is None and shared is not None:
        about = {"connect": mesh.endpoints.connect_group, "domain": None}
        parts = {"plugins": _listed(shared)}
        show(Detail(_about(about, shared), parts), shown.output)
        return
    if worker is None:
        raise NotFoundError(
            f"{domain} has no Connect worker: the mesh starts it for the domain's first connector"
        )
    show(Detail(_of_domain(domain, worker), {"plugins": _listed(worker.api)}), shown.output)


@command(app, "plugins", "sdm connect plugins -d shop", "sdm connect plugins --all -o json")
def plugins(
    shown: Shown,
    of: OfDomain = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also converters, transforms and predicates.")
    ] = False,
) -> None:
    """List the connectors that a domain's Connect worker can run; starts the worker if needed."""
    show(_listed(Mesh().connect_of(_domain(of)).api, every=every), shown.output)


@command(connector_app, "list", "sdm connect connector list")
def repository(shown: Shown) -> None:
    """List the types of connectors that `add --type` accepts, and other sources of data.

    `sdm connect plugins` lists the plugins that can be added with a file, `deployed` the connectors
    that were added.
    """
    columns = ("type", "direction", "class", "example")
    show(Listing(columns, [*_REPOSITORY, *_ELSEWHERE]), shown.output)


def _domain(of: str | None) -> str:
    domain = of or current_domain(Mesh().home)
    if domain is None:
        raise UsageError("which domain's worker? Give --of DOMAIN, or run `sdm switch-domain NAME`")
    return domain


def _of_domain(domain: str, worker: Worker) -> dict[str, Any]:
    status = worker.status
    about = {"connect": group_of(domain), "domain": domain, "state": status.state.value}
    return _about(about, worker.api, status.detail or None)


def _about(about: dict[str, Any], api: Connect | None, detail: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "state": None,
        **about,
        "url": None if api is None else api.url,
        "version": None,
        "kafka_cluster_id": None,
        "connectors": None,
        "failed": [],
        "detail": detail,
    }
    if api is None:
        return found
    try:
        running, deployed = api.worker(), api.deployed()
    except InfrastructureError as error:
        # one that hangs hides none of the others
        return {**found, "detail": str(error)}
    return {
        **found,
        "version": running.get("version"),
        "kafka_cluster_id": running.get("kafka_cluster_id"),
        "connectors": len(deployed),
        "failed": sorted(one.name for one in deployed.values() if one.failed),
    }


def _listed(api: Connect | None, *, every: bool = False) -> Listing:
    """A worker's plugins; none while it does not answer."""
    found = [] if api is None else _plugins(api, every=every)
    return Listing(("class", "type", "version"), found, "no plugins")


def _plugins(api: Connect, *, every: bool) -> list[dict[str, Any]]:
    found = api.plugins(every=every)
    return sorted(found, key=lambda one: (one["type"], one["class"]))
