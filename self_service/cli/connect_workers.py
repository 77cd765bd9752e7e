"""The Kafka Connect workers of domains on the local platform: which run, and one to be asked."""

from local_platform import domain_servers
from local_platform.domain_servers import CONNECT
from local_platform.platform import LocalPlatform
from local_platform.services.domain_connect import DomainConnect
from local_platform.settings import read_settings
from local_platform.site import Site
from local_platform.state import State
from mesh_events.references import resolve
from processors.connect.own_worker import Commands, OwnWorker
from processors.connect.rest import Connect


def running() -> dict[str, Connect]:
    """Domain -> its own worker, of those that run now."""
    settings = read_settings()
    site = Site.of(settings)
    found: dict[str, Connect] = {}
    for one in LocalPlatform(settings).status():
        if one.name.startswith(CONNECT.prefix) and one.state == State.READY:
            domain = one.name.removeprefix(CONNECT.prefix)
            password = resolve(DomainConnect(site, domain).password_reference())
            found[domain] = Connect(f"http://127.0.0.1:{one.port}", (domain, password))
    return dict(sorted(found.items()))


def started(domain: str) -> Connect:
    """A domain's own worker, started at the first call if it does not run."""
    start = domain_servers.command("connect-worker")
    return OwnWorker(domain, Commands(start), patient=True)
