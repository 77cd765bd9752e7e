"""The Kafka Connect workers of domains: which run here, and one to be asked."""

from dataclasses import dataclass

from local_platform import Endpoints, domain_servers
from local_platform.domain_servers import CONNECT
from local_platform.platform import LocalPlatform
from local_platform.ports import HOST
from local_platform.services.connect import Connect as Service
from local_platform.settings import read_settings
from local_platform.site import Site
from local_platform.supervision.state import ServiceStatus, State
from mesh_events.references import resolve
from processors.connect.own_worker import OwnWorker
from processors.connect.principals import group_of
from processors.connect.rest import Connect
from processors.settings import ConnectReach
from self_service.cli.framework.output import note


@dataclass(frozen=True)
class Worker:
    """A domain's own worker on the local platform; `api` is None while it does not answer."""

    status: ServiceStatus
    api: Connect | None


def known() -> dict[str, Worker]:
    """Domain -> its own worker, of those that the local mesh keeps now."""
    settings = read_settings()
    site = Site.of(settings)
    found: dict[str, Worker] = {}
    for one in LocalPlatform(settings).status():
        if not one.name.startswith(CONNECT.prefix):
            continue
        domain, api = one.name.removeprefix(CONNECT.prefix), None
        if one.state == State.READY:
            password = resolve(Service(site, domain).password_reference())
            api = Connect(f"http://{HOST}:{one.port}", (domain, password))
        found[domain] = Worker(one, api)
    return dict(sorted(found.items()))


def shared(ends: Endpoints) -> Connect | None:
    """The cluster of all domains that have no worker of their own; None where each has one."""
    if ends.connect_url is None:
        return None
    return Connect(ends.connect_url, (ends.connect_user, resolve(ends.connect_password)))


def running(ends: Endpoints, domain: str) -> Connect | None:
    """What runs a domain's connectors; None while its own worker is not ready."""
    worker = known().get(domain)
    return shared(ends) if worker is None else worker.api


def started(ends: Endpoints, domain: str) -> tuple[Connect, str]:
    """What is to run a domain's connectors, and its group; a worker is started when it is asked."""
    named = ConnectReach().domain_connect.get(domain)
    if named is None:
        if (found := shared(ends)) is not None:
            return found, ends.connect_group
        if running(ends, domain) is None:
            note(f"starting the Kafka Connect worker of {domain}; this takes some seconds")
    command = domain_servers.command("connect-worker")
    return OwnWorker(domain, command, named, waits=True), group_of(domain)
