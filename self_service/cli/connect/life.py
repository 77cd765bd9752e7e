"""`sdm connect connector stop|start|restart|delete`: a connector stands still, goes on, or ends."""

from mesh_events.connectors import (
    ConnectorDeleted,
    ConnectorIntent,
    ConnectorStarted,
    ConnectorStopped,
)
from self_service.cli.connect.app import Name, connector_app
from self_service.cli.connect.submitting import shown, standing, submit_about
from self_service.cli.framework.options import OptionalReason, StartOptions, SubmitOptions, command
from self_service.cli.framework.output import note
from self_service.cli.mesh.context import Mesh
from self_service.cli.topic.readers import left_dry


@command(connector_app, "stop", "sdm connect connector stop shop --reason 'maintenance'")
def stop(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Stop a connector and revoke its ACLs. `start` resumes from the last offset.

    A captured database retains the changes that the connector has not read, which takes disk space,
    until the connector resumes or is deleted.
    """
    _direct(options, name, ConnectorStopped, reason)


@command(connector_app, "start", "sdm connect connector start shop")
def start(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Start a stopped connector from its last offset."""
    _direct(options, name, ConnectorStarted, reason)


@command(connector_app, "restart", "sdm connect connector restart shop")
def restart(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Restart a connector and all of its tasks."""
    mesh = Mesh()
    found = standing(mesh, options, name)
    if found.desired == "RUNNING":
        # the controller starts anew what was decided anew: nobody has to wait until it stands still
        submit_about(mesh, options, found.id, ConnectorStopped, {"reason": reason}, active=False)
    submitted = submit_about(mesh, options, found.id, ConnectorStarted, {"reason": reason})
    shown(options, found.id, submitted)


@command(
    connector_app, "delete", "sdm connect connector delete shop --reason 'replaced'", alias="drop"
)
def delete(options: StartOptions, name: Name, reason: OptionalReason = "") -> None:
    """Delete a connector with its login and its secrets; the domain keeps its topics.

    Kafka keeps its offsets: a connector that is added under the same name resumes from them and
    takes no snapshot. Under another name it starts from the beginning.
    """
    mesh = Mesh()
    found = standing(mesh, options, name)
    for told in left_dry(mesh.image(), found.writes):
        note(told)
    submitted = submit_about(mesh, options, found.id, ConnectorDeleted, {"reason": reason})
    shown(options, found.id, submitted)
    if submitted.image is None:
        return
    if slot := found.config.get("slot.name"):
        publication = found.config.get("publication.name")
        note(
            f"the database keeps the replication slot {slot} in case the connector is added again: "
            f"to drop it, run SELECT pg_drop_replication_slot('{slot}') there"
            + (f", and DROP PUBLICATION {publication}" if publication else "")
        )


def _direct(options: SubmitOptions, name: str, kind: type[ConnectorIntent], reason: str) -> None:
    mesh = Mesh()
    found = standing(mesh, options, name)
    shown(options, found.id, submit_about(mesh, options, found.id, kind, {"reason": reason}))
