"""The Kafka Connect workers of domains: which run here, and one to be asked."""

from dataclasses import dataclass

from local_platform import Endpoints, domain_servers
from local_platform.domain_servers import CONNECT
from local_platform.platform import LocalPlatform
from local_platform.ports import HOST
from local_platform.services.connect import Connect as Service
from local_platform.settings import read_settings
from local_platform.site import Site
from local_platform.state import ServiceStatus, State
from mesh_events.references import resolve
from processors.connect.own_worker import OwnWorker
from processors.connect.rest import Connect
from processors.settings import ConnectReach
from self_service.cli.output import note


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


def own(ends: Endpoints, domain: str) -> Connect | None:
    """A domain's own worker, which is started at the first call unless it runs; None without."""
    named = ConnectReach().domain_connect.get(domain)
    if named is None and ends.connect_url is not None:
        return None
    worker = known().get(domain) if named is None else None
    if named is None and (worker is None or worker.api is None):
        note(f"starting the Kafka Connect worker of {domain}, which takes some seconds")
    return OwnWorker(domain, domain_servers.command("connect-worker"), named, waits=True)
