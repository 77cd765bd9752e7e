"""Whether the keys that the root names for the mesh itself can be taken."""

from mesh_events.decisions import MeshFounded, MeshKeyIntroduced, MeshRole
from mesh_events.meta import MESH_DOMAIN, Event
from mesh_events.record import Fault, FaultCode
from mesh_events.signing import is_proven, is_weak_key


def owner(role: MeshRole) -> str:
    """For whom a key of the mesh speaks, in the proof that it is held: `mesh/<role>`."""
    return f"{MESH_DOMAIN}/{role.lower()}"


def unfit(event: Event, root: str) -> Fault | None:
    """Why a record of the root `root` gives the mesh no keys; None where nothing is wrong."""
    weak = next(filter(is_weak_key, _named(event)), None)
    if weak is not None:
        reason = f"anybody can sign with the key {weak}: give the mesh another one"
        return Fault(FaultCode.WEAK_KEY, reason)
    if isinstance(event, MeshKeyIntroduced) and not is_proven(
        root, owner(event.role), event.public_key, event.proof
    ):
        reason = f"the key {event.public_key} has not signed that it is to be the {event.role}'s"
        return Fault(FaultCode.INVALID_PROOF, reason)
    return None


def _named(event: Event) -> tuple[str, ...]:
    match event:
        case MeshFounded():
            return event.operator_key, event.governor_key, event.controller_key
        case MeshKeyIntroduced():
            return (event.public_key,)
    return ()
