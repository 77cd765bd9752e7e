"""Start and stop one service of a running mesh that does not come with the mesh itself."""

from local_platform.errors import ServiceFailedError
from local_platform.platform import LocalPlatform
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision.launch import one_at_a_time, reduce
from local_platform.supervision.process import Identity
from local_platform.supervision.state import PlatformState

# A service is asked for 10 s at most before it is killed.
_STOP_TIMEOUT_S = 30.0


def require_mesh(site: Site) -> Identity:
    """Return the living supervisor of a home; raises ServiceFailedError where there is none."""
    state = PlatformState.load(site.layout.state)
    if state is None or not state.supervisor.alive or not site.layout.endpoints.exists():
        raise ServiceFailedError(f"no local mesh runs at {site.layout.home}: run `sdm up`")
    return state.supervisor


def keep(settings: PlatformSettings, service: str, timeout_s: float = 60) -> None:
    """Start a service unless it runs, and let the mesh keep it.

    Raises:
        PlatformError: no mesh runs, or the service did not become ready in `timeout_s` seconds.
    """
    require_mesh(Site.of(settings))
    LocalPlatform(settings, [service]).up(timeout_s=timeout_s)


def dismiss(settings: PlatformSettings, service: str) -> None:
    """Stop a service that the mesh keeps; nothing is to do where it or the mesh does not run.

    Raises:
        ServiceFailedError: it did not stop.
    """
    site = Site.of(settings)
    with one_at_a_time(site):
        state = PlatformState.load(site.layout.state)
        if state is None or not state.supervisor.alive:
            return
        if any(one.name == service for one in state.services):
            reduce(site, state.supervisor, service, _STOP_TIMEOUT_S)
