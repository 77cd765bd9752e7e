"""`sdm connect connector stop|start|restart`: a deployed connector stands still, or goes on."""

from self_service.cli import connector_owner
from self_service.cli.connect_app import Name, Timeout, Wait, connector_app
from self_service.cli.connectors import Connectors, states_of
from self_service.cli.context import Mesh
from self_service.cli.options import Acting, command
from self_service.cli.output import Detail, note, show


@command(connector_app, "stop", "sdm connect connector stop east-shop")
def stop(acting: Acting, name: Name, wait: Wait = True, timeout: Timeout = 60.0) -> None:
    """Let a connector of the current domain stand still; `start` lets it go on where it stood.

    A database keeps what it still has to tell, which takes space there, until the connector goes on
    or is dropped.
    """
    connectors = _owned(acting, name)
    connectors.stop(name)
    status = connectors.await_stopped(name, timeout) if wait else connectors.status(name)
    show(Detail({"connector": name, **states_of(status)}), acting.output)


@command(connector_app, "start", "sdm connect connector start east-shop")
def start(acting: Acting, name: Name, wait: Wait = True, timeout: Timeout = 60.0) -> None:
    """Let a stopped connector go on where it stood."""
    connectors = _owned(acting, name)
    connectors.resume(name)
    _running(connectors, acting, name, wait=wait, timeout=timeout)


@command(connector_app, "restart", "sdm connect connector restart east-shop")
def restart(acting: Acting, name: Name, wait: Wait = True, timeout: Timeout = 60.0) -> None:
    """Start a connector and its tasks again; what has failed included."""
    connectors = _owned(acting, name)
    connectors.restart(name)
    _running(connectors, acting, name, wait=wait, timeout=timeout)


def _owned(acting: Acting, name: str) -> Connectors:
    mesh = Mesh()
    domain = mesh.speaker(acting.domain).domain
    connectors = Connectors.of(mesh)
    connector_owner.require_owner(name, connectors.config(name), domain)
    return connectors


def _running(
    connectors: Connectors, acting: Acting, name: str, *, wait: bool, timeout: float
) -> None:
    if wait:
        note(f"waiting until {name} runs")
        status = connectors.await_running(name, timeout)
    else:
        status = connectors.status(name)
    show(Detail({"connector": name, **states_of(status)}), acting.output)
