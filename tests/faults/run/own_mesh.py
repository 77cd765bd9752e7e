"""A mesh of a fault's own, on the local platform: for faults that destroy what they are given."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local_platform import LocalPlatform, PlatformSettings
from tests.conftest import free_port_base
from tests.faults.run.ground import Ground
from tests.mesh_kit import Mesh

GOVERNING = ("kafka-east", "kafka-west", "registry", "bootstrap", "governor")
"""All that governing needs; there are no links."""


@dataclass
class OwnMesh(Ground):
    """A mesh that no other fault has seen, under load."""

    platform: LocalPlatform = field(kw_only=True)
    settings: PlatformSettings = field(kw_only=True)


@contextmanager
def own_mesh(
    lifetime_s: float,
    services: Sequence[str] = GOVERNING,
    *,
    prepare: Callable[[Path], None] = lambda _: None,
) -> Iterator[OwnMesh]:
    """Start it, let its domains speak; gone at the end.

    Args:
        lifetime_s: seconds after which its servers stop by themselves.
        services: what runs.
        prepare: called with the new home before anything starts there.
    """
    home = Path(tempfile.mkdtemp(prefix="sdm-faults-own-"))
    home.chmod(0o755)
    settings = PlatformSettings(home=home, port_base=free_port_base(), lifetime_s=lifetime_s)
    platform = LocalPlatform(settings, services)
    ground: OwnMesh | None = None
    try:
        prepare(home)
        kit = Mesh(platform.up(), home)
        ground = OwnMesh(kit, home, settings.port_base, platform=platform, settings=settings)
        ground.people()
        ground.begin()
        yield ground
    finally:
        if ground is not None:
            ground.quiet()
        platform.down()
        shutil.rmtree(home, ignore_errors=True)
