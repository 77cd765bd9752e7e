"""`sdm connect list|describe|plugins`, `sdm connect connector list`: what there is."""

from typing import Annotated, Any

import typer

from projections.connector_config import JDBC_SINK, POSTGRES
from self_service.cli import debezium, jdbc_sink
from self_service.cli.connect_app import app, connector_app
from self_service.cli.context import Mesh
from self_service.cli.options import Shown, command
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
    """List the Connect clusters of the mesh."""
    mesh = Mesh()
    items = [{"connect": mesh.endpoints.connect_group, **_about(mesh)}]
    columns = ("connect", "url", "version", "connectors", "failed")
    show(Listing(columns, items, "no Connect cluster: run `sdm up`"), shown.output)


@command(app, "describe", "sdm connect describe")
def describe(shown: Shown) -> None:
    """Describe the Connect cluster: where it answers, what it runs, which plugins it has."""
    mesh = Mesh()
    fields = {"connect": mesh.endpoints.connect_group, **_about(mesh)}
    parts = {"plugins": Listing(("class", "type", "version"), _plugins(mesh, every=False))}
    show(Detail(fields, parts), shown.output)


@command(app, "plugins", "sdm connect plugins", "sdm connect plugins --all -o json")
def plugins(
    shown: Shown,
    every: Annotated[
        bool, typer.Option("--all", help="Also converters, transforms and predicates.")
    ] = False,
) -> None:
    """List the connectors that the Connect cluster can run."""
    items = _plugins(Mesh(), every=every)
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
        for one in _plugins(Mesh(), every=False)
        if one["class"] not in known
    ]
    columns = ("type", "direction", "class", "example")
    show(Listing(columns, [*_REPOSITORY, *_ELSEWHERE, *others]), shown.output)


def _about(mesh: Mesh) -> dict[str, Any]:
    api = mesh.connect.api
    worker, deployed = api.worker(), api.deployed()
    return {
        "url": api.url,
        "version": worker.get("version"),
        "kafka_cluster_id": worker.get("kafka_cluster_id"),
        "connectors": len(deployed),
        "failed": sorted(one.name for one in deployed.values() if one.failed),
    }


def _plugins(mesh: Mesh, *, every: bool) -> list[dict[str, Any]]:
    found = mesh.connect.api.plugins(every=every)
    return sorted(found, key=lambda one: (one["type"], one["class"]))
