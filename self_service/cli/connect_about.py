"""`sdm connect list|describe|plugins`, `sdm connect connector list`: what there is."""

from typing import Annotated, Any

import typer

from self_service.cli import debezium
from self_service.cli.connect_app import app, connector_app
from self_service.cli.connectors import Connectors
from self_service.cli.context import Mesh
from self_service.cli.options import Shown, command
from self_service.cli.output import Detail, Listing, show

_REPOSITORY = (
    {
        "type": debezium.TYPE,
        "direction": "source",
        "class": "io.debezium.connector.postgresql.PostgresConnector",
        "brings": "each change of a PostgreSQL table into the topic <domain>.<table>",
        "example": f"sdm connect connector add shop --type {debezium.TYPE} --table users",
    },
)
"""Kinds of connectors that `add --type` knows; any other plugin is added with a file."""


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
    known = {one["class"] for one in _REPOSITORY}
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
    show(Listing(columns, [*_REPOSITORY, *others]), shown.output)


def _about(mesh: Mesh) -> dict[str, Any]:
    connectors = Connectors.of(mesh)
    worker, states = connectors.worker(), connectors.states()
    failed = [
        name
        for name, found in states.items()
        if any(
            part["state"] == "FAILED"
            for part in (found["status"]["connector"], *found["status"]["tasks"])
        )
    ]
    return {
        "url": mesh.endpoints.connect_url,
        "version": worker.get("version"),
        "kafka_cluster_id": worker.get("kafka_cluster_id"),
        "connectors": len(states),
        "failed": sorted(failed),
    }


def _plugins(mesh: Mesh, *, every: bool) -> list[dict[str, Any]]:
    found = Connectors.of(mesh).plugins(every=every)
    return sorted(found, key=lambda one: (one["type"], one["class"]))
