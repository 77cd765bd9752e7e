"""`sdm connect list|describe|plugins`, `sdm connect connector list`: what there is."""

from typing import Annotated, Any

import typer

from mesh_events.errors import InfrastructureError
from processors.connect.principals import group_of
from processors.connect.rest import Connect
from projections.connector_config import JDBC_SINK, POSTGRES
from self_service.cli import connect_workers, debezium, jdbc_sink
from self_service.cli.connect_app import app, connector_app
from self_service.cli.context import Mesh
from self_service.cli.exits import NotFoundError
from self_service.cli.options import OfDomain, Shown, command
from self_service.cli.output import Detail, Listing, show

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
        "brings": "a product into another cluster, as a link that the mesh keeps",
        "example": "sdm access grant 41 --engine mirrormaker",
    },
    {
        "type": "generator",
        "direction": "source",
        "class": "-",
        "brings": "made-up clicks, trades or records of a schema, as a job of the mesh",
        "example": "sdm generate east.clicks --kind clickstream --background --name clicks",
    },
)
"""What brings data in and is not added as a connector."""


@command(app, "list", "sdm connect list -o json")
def list_workers(shown: Shown) -> None:
    """List the Connect workers that run: the mesh's own, and one for each domain with connectors.

    The mesh's own copies links by MirrorMaker.
    """
    mesh = Mesh()
    items = [{"connect": mesh.endpoints.connect_group, "domain": None, **_about(mesh.connect)}]
    items += [
        {"connect": group_of(domain), "domain": domain, **_about(api)}
        for domain, api in connect_workers.running().items()
    ]
    columns = ("connect", "domain", "url", "version", "connectors", "failed")
    show(Listing(columns, items, "no Connect worker: run `sdm up`"), shown.output)


@command(app, "describe", "sdm connect describe", "sdm connect describe -d shop")
def describe(shown: Shown, of: OfDomain = None) -> None:
    """Describe a Connect worker, the mesh's own by default: what it runs, which plugins it has."""
    mesh = Mesh()
    api = mesh.connect if of is None else connect_workers.running().get(of)
    if api is None:
        raise NotFoundError(
            f"no Connect worker of {of} runs: it is started for the domain's first connector"
        )
    group = mesh.endpoints.connect_group if of is None else group_of(of)
    fields = {"connect": group, "domain": of, **_about(api)}
    parts = {"plugins": Listing(("class", "type", "version"), _plugins(api, every=False))}
    show(Detail(fields, parts), shown.output)


@command(app, "plugins", "sdm connect plugins", "sdm connect plugins --all -o json")
def plugins(
    shown: Shown,
    every: Annotated[
        bool, typer.Option("--all", help="Also converters, transforms and predicates.")
    ] = False,
) -> None:
    """List the connectors that a Connect worker can run."""
    items = _plugins(Mesh().connect, every=every)
    show(Listing(("class", "type", "version"), items, "no plugins"), shown.output)


@command(connector_app, "list", "sdm connect connector list")
def repository(shown: Shown) -> None:
    """List the kinds of connectors: what `add --type` knows, and the plugins to be had with a file.

    `deployed` lists the connectors that run.
    """
    known = {one["class"] for one in (*_REPOSITORY, *_ELSEWHERE)}
    others = [
        {
            "type": "-",
            "direction": one["type"],
            "class": one["class"],
            "brings": None,
            "example": "sdm connect connector add NAME -f connector.yaml",
        }
        for one in _plugins(Mesh().connect, every=False)
        if one["class"] not in known
    ]
    columns = ("type", "direction", "class", "example")
    show(Listing(columns, [*_REPOSITORY, *_ELSEWHERE, *others]), shown.output)


def _about(api: Connect) -> dict[str, Any]:
    told: dict[str, Any] = {"url": api.url, "version": None, "kafka_cluster_id": None}
    try:
        worker, deployed = api.worker(), api.deployed()
    except InfrastructureError as error:
        # one that hangs hides none of the others
        return {**told, "connectors": None, "failed": [], "detail": str(error)}
    return {
        **told,
        "version": worker.get("version"),
        "kafka_cluster_id": worker.get("kafka_cluster_id"),
        "connectors": len(deployed),
        "failed": sorted(one.name for one in deployed.values() if one.failed),
        "detail": None,
    }


def _plugins(api: Connect, *, every: bool) -> list[dict[str, Any]]:
    found = api.plugins(every=every)
    return sorted(found, key=lambda one: (one["type"], one["class"]))
