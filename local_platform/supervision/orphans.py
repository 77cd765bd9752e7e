"""Services that live at a home, whether or not a supervisor still keeps them."""

import signal
from collections.abc import Iterable
from pathlib import Path

from local_platform.services import stop_waves
from local_platform.services.base import Service
from local_platform.supervision.process import Identity, marked, stop_group
from local_platform.supervision.state import PlatformState


def living(home: Path, state: PlatformState | None) -> list[tuple[str, Identity]]:
    """Return the living services, recorded or only marked, in the order to stop them."""
    found: dict[Identity, str] = {}
    for status in state.services if state else ():
        if status.identity is not None and status.identity.alive:
            found[status.identity] = status.name
    for name, identity in marked(home):
        if all(known.pid != identity.pid for known in found):
            found[identity] = name
    order = [name for wave in stop_waves(found.values()) for name in wave]
    pairs = [(name, identity) for identity, name in found.items()]
    return sorted(pairs, key=lambda pair: order.index(pair[0]))


def stop_living(home: Path, state: PlatformState | None, services: Iterable[Service]) -> None:
    """Stop services that no supervisor keeps, each as its description says."""
    known = {service.name: service for service in services}
    for name, identity in living(home, state):
        service = known.get(name)
        sign = service.stop_signal if service else signal.SIGTERM
        stop_group(identity, sign, service.stop_timeout if service else 5)
