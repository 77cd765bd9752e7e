"""`sdm connect connector deployed|describe`: the connectors, and how each is."""

from typing import Annotated, Any

import typer

from mesh_events.errors import MeshError
from mesh_events.intents import domain_of
from projections.connectors.state import Connector
from self_service.cli.connect import workers
from self_service.cli.connect.app import Name, connector_app
from self_service.cli.connect.submitting import settings_of
from self_service.cli.framework.options import OfDomain, Reading, command
from self_service.cli.framework.output import Detail, Listing, show
from self_service.cli.framework.times import stamp
from self_service.cli.mesh import lookup
from self_service.cli.mesh.callers import current_domain
from self_service.cli.mesh.context import Mesh

COLUMNS = ("connector", "direction", "class", "state", "tasks", "restarts", "failure")


@command(
    connector_app,
    "deployed",
    "sdm connect connector deployed",
    "sdm connect connector deployed --as-of '1h ago' -o json",
)
def deployed(
    reading: Reading,
    of: OfDomain = None,
    every: Annotated[bool, typer.Option("--all", help="Also list deleted connectors.")] = False,
) -> None:
    """List the connectors with their types and states."""
    image = Mesh().image(reading)
    if of is not None:
        lookup.domain(image, of)
    items = [
        fields(one)
        for _, one in sorted(image.connectors.items())
        if of in (None, one.domain) and (every or not one.is_over)
    ]
    show(Listing(COLUMNS, items, "no connectors: `sdm connect connector add`"), reading.output)


@command(connector_app, "describe", "sdm connect connector describe shop")
def describe(reading: Reading, name: Name) -> None:
    """Describe a connector: its state, its topics, and its config without secrets."""
    mesh = Mesh()
    image = mesh.image(reading)
    found = lookup.connector(image, lookup.identity(name, current_domain(mesh.home) or ""))
    file = mesh.error_file("connector", found.id, found.failure_code)
    told = {
        **fields(found),
        "failure_file": file,
        "reads": list(found.reads),
        "topic_ids": {topic: found.topic_ids.get(topic) for topic in found.reads},
    }
    if reading.is_now and found.stands:
        told |= _in_connect(mesh, found.id)
    parts = {"config": settings_of(found.config)}
    show(Detail(told, parts), reading.output)


def fields(found: Connector) -> dict[str, Any]:
    """A connector as lists show it."""
    return {
        "connector": found.id,
        "domain": found.domain,
        "description": found.description,
        "cluster": found.cluster,
        "direction": "sink" if found.is_sink else "source",
        "class": found.config.get("connector.class", "").rpartition(".")[2],
        "application": found.application,
        "state": found.state,
        "desired": found.desired,
        "held": found.held,
        "tasks": found.tasks,
        "restarts": found.restarts,
        "run": found.run,
        "principal": found.principal,
        "failure_code": found.failure_code,
        "failure": found.failure,
        "created_at": stamp(found.created_at),
        "changed_at": stamp(found.changed_at),
        "generation": found.generation,
    }


def _in_connect(mesh: Mesh, name: str) -> dict[str, Any]:
    """What Connect itself says of it now, and the topics that it has used."""
    try:
        api = workers.running(mesh.endpoints, domain_of(name))
        if api is None:
            return {"in_connect": "the domain's worker is not ready", "topics": None}
        found = api.deployed().get(name)
        if found is None:
            return {"in_connect": "not there", "topics": []}
        tasks = ", ".join(one.state for one in found.tasks) or "none"
        states = f"{found.connector.state}, tasks {tasks}"
        return {"in_connect": states, "topics": api.topics(name)}
    except MeshError as error:
        return {"in_connect": f"not checked: {error}", "topics": None}
