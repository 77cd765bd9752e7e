"""Everything that may not be said on the log, and the code with which it is answered.

A case writes one record and returns its offset. All but a few are written with the stranger's
login: who may write to the topic is not thereby anybody.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mesh_events.intents import (
    ProductUpdated,
)
from mesh_events.meta import Event
from mesh_events.record import SIGNATURE
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Domain

Case = Callable[[Scene], int]
CASES: dict[str, tuple[str, Case]] = {}
"""Name -> (code, case)."""


def case(code: str) -> Callable[[Case], Case]:
    def take(written: Case) -> Case:
        CASES[written.__name__] = (code, written)
        return written

    return take


def update(scene: Scene, by: Domain, **meta: Any) -> ProductUpdated:
    """An intent about the owner's product, spoken by anybody."""
    made = by.make(ProductUpdated, product=scene.product, description="mine now")
    return made.model_copy(update={"meta": made.meta.model_copy(update=meta)})


def as_mesh(scene: Scene, kind: type[Event], **fields: Any) -> Event:
    """An event in the name of the mesh."""
    meta = scene.stranger.emitter.meta().model_copy(update={"domain": "mesh"})
    return kind.model_validate({"meta": meta, **fields})


def chained(scene: Scene) -> dict[str, Any]:
    """Where the next decision of the governor would stand: the fields that name it."""
    image = scene.kit.image()
    return {
        "epoch": image.epoch,
        "basis": image.offset,
        "clock": datetime.now(UTC),
        "follows": image.last_decision,
    }


def of_stranger(scene: Scene, event: Event) -> int:
    return scene.write(scene.wire(event, scene.stranger.key))


def headers_of(scene: Scene, **changed: bytes | None) -> Any:
    """A good record of the owner with some headers replaced, or left out where None."""
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    kept = [(name, changed.get(name, value)) for name, value in wire.headers]
    return wire._replace(headers=[pair for pair in kept if pair[1] is not None])


def signed(scene: Scene, value: bytes | None = None, key: bytes | None = b"") -> int:
    """A record of the owner with another value or key, signed as it stands."""
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    value, key = value or wire.value, wire.key if key == b"" else key
    signature = scene.owner.key.sign(scene.kit.profile.root_key, key or b"", value)
    headers = [*wire.headers[:-1], (SIGNATURE, signature)]
    return scene.stranger.raw.write(value, key, headers)
