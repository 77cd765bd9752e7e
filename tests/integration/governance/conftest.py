"""Three domains, a product, an open request and a revoked one, to do mischief with."""

from dataclasses import dataclass

import pytest

from mesh_events.codec import Wire, encode
from mesh_events.intents import KeyRegistered, KeyRevoked
from mesh_events.meta import Event
from mesh_events.signing import SigningKey
from tests.mesh_fixtures import governor_pid, kit
from tests.mesh_kit import Domain, Mesh

__all__ = ["governor_pid", "kit"]


@dataclass
class Scene:
    """Who is there: an owner with a product, a buyer who asks, a stranger."""

    kit: Mesh
    owner: Domain
    buyer: Domain
    stranger: Domain
    product: str
    application: str
    request: str
    revoked: str
    lost_key: SigningKey

    def wire(self, event: Event, key: SigningKey, root: str | None = None) -> Wire:
        """The record of an event under any key."""
        schema_id = self.kit.registry.schema_id(event.type_name())
        return encode(event, schema_id, key, root or self.kit.profile.root_key)

    def write(self, wire: Wire, by: Domain | None = None) -> int:
        """Put a record on the log with a domain's login, the stranger's by default."""
        raw = (by or self.stranger).raw
        return raw.write(wire.value, wire.key, list(wire.headers))


@pytest.fixture(scope="session")
def scene(kit: Mesh) -> Scene:
    """The stage on which every bad input appears; none of them may change it."""
    owner, buyer = kit.register_domain("owner"), kit.register_domain("buyer")
    stranger = kit.register_domain("stranger")
    product, _ = owner.product()
    open_one, ended = buyer.application("open"), buyer.application("ended")
    revoked = buyer.request(product, ended.name)
    owner.grant(product, revoked)
    owner.revoke(product, revoked)
    request = buyer.request(product, open_one.name)
    lost = SigningKey.generate()
    proof = lost.prove(kit.profile.root_key, owner.name)
    kit.accepted(owner.say(KeyRegistered, domain=owner.name, public_key=lost.public, proof=proof))
    kit.accepted(
        owner.say(KeyRevoked, domain=owner.name, public_key=lost.public, reason="it was lost")
    )
    return Scene(kit, owner, buyer, stranger, product, open_one.name, request, revoked, lost)
