"""Who may read a product, and why: entitled, enforced and copied, each with what decided it."""

from datetime import UTC, datetime
from typing import Any

from mesh_events.errors import MeshError
from mesh_events.intents import domain_of
from projections.access import ENTITLED, Access
from projections.image import Image, reading_place
from projections.links import Desired
from self_service.cli import lookup
from self_service.cli.context import Mesh
from self_service.cli.options import Reading
from self_service.cli.output import Detail, Listing
from self_service.cli.times import milliseconds, stamp


def explain(mesh: Mesh, reading: Reading, product: str, application: str) -> Detail:
    """The answer for one product and one application, at the time that `reading` asks for."""
    image = mesh.image(reading)
    lookup.product(image, product)
    lookup.application(image, application)
    owner = domain_of(product) == domain_of(application)
    access = _latest(image, product, application)
    fields = {
        "product": product,
        "application": application,
        "entitled": owner or (access is not None and access.state in ENTITLED),
        "why": _why(access, image, product, application),
        **_times(access),
        **(_enforced(mesh, image, product, application) if reading.is_now else _reported(access)),
        **_copied(image, access),
    }
    if access is None:
        return Detail(fields)
    columns = ("offset", "time", "type", "actor", "outcome", "detail")
    steps = Listing(columns, _steps(mesh, reading, image, access), "no events")
    return Detail(fields, {"decided_by": steps})


def _latest(image: Image, product: str, application: str) -> Access | None:
    fitting = [
        one
        for one in image.access.requests.values()
        if one.product == product and one.application == application
    ]
    return max(fitting, key=lambda one: one.offset, default=None)


def _waits_for(access: Access, image: Image) -> str:
    """What a grant that is not applied waits for."""
    quarantine = image.identity.quarantines.get(access.consumer)
    if quarantine is not None:
        return f"{access.consumer} is in quarantine: {quarantine.reason}"
    link = image.links.get(access.link or "")
    if link is None or link.desired is not Desired.REMOVED:
        return "the rights are not seen applied yet"
    again = f"sdm link create {link.product} --cluster {link.cluster}"
    return f"its link was removed: `{again}` makes the copy again"


def _why(access: Access | None, image: Image, product: str, application: str) -> str:
    if access is None:
        owner = domain_of(product)
        own = f"{product} is {owner}'s own product, which all of {owner}'s applications read"
        asked = f"{application} never asked for {product}"
        return own if domain_of(application) == owner else asked
    match access.state:
        case "REQUESTED":
            return f"asked at offset {access.offset}, {domain_of(product)} has not decided"
        case "DENIED":
            return f"denied by {access.decided_by}: {access.decision_reason}"
        case "GRANTED":
            return f"granted by {access.decided_by}; {_waits_for(access, image)}"
        case "ACTIVE":
            return f"granted by {access.decided_by}, the rights are applied"
        case "REVOKING":
            return f"revoked by {access.revoked_by}: {access.revoke_reason}; rights still to go"
        case _:
            return f"revoked by {access.revoked_by}: {access.revoke_reason}"


def _times(access: Access | None) -> dict[str, Any]:
    if access is None:
        return {}
    granted = access.decided_at if access.granted_generation else None
    # a link that was removed and made again ends one period and begins another
    earlier = [{"from": stamp(at), "to": stamp(end)} for at, end in access.enforced[:-1]]
    return {
        "number": lookup.number(access),
        "request": access.request,
        "state": access.state,
        "entitled_from": stamp(granted),
        "entitled_to": stamp(access.revoked_at),
        "enforced_from": stamp(access.enforced[-1][0]) if access.enforced else None,
        "enforced_to": stamp(access.enforced[-1][1]) if access.enforced else None,
        **({"enforced_before": earlier} if earlier else {}),
    }


def _reported(access: Access | None) -> dict[str, Any]:
    """What the log says was enforced: a past cluster cannot be asked."""
    enforced = access is not None and access.is_enforced
    return {"enforced": enforced, "enforced_by": "as the keeper reported on the log"}


def _enforced(mesh: Mesh, image: Image, product: str, application: str) -> dict[str, Any]:
    """What the real cluster's rights say now."""
    from processors.clusters import KafkaAdmin
    from processors.rights import Operation, Resource

    place = reading_place(image, product, application)
    try:
        login = mesh.administration(image, place.cluster)
        admin = KafkaAdmin(place.cluster, login)
        found = [
            right
            for right in sorted(admin.rights(principal=application))
            if right.resource is Resource.TOPIC and _covers(right.name, right.prefixed, place.topic)
        ]
    except MeshError as error:
        return {"enforced": None, "enforced_by": f"not looked up: {error}"}
    reads = any(right.operation in (Operation.READ, Operation.ALL) for right in found)
    shown = "; ".join(str(right) for right in found) or f"no right on topic {place.topic}"
    return {"enforced": reads, "enforced_by": f"cluster {place.cluster}: {shown}"}


def _covers(name: str, prefixed: bool, topic: str) -> bool:
    return topic.startswith(name) if prefixed else topic == name


def _copied(image: Image, access: Access | None) -> dict[str, Any]:
    link = image.links.get(access.link) if access and access.link else None
    if link is None:
        none = "read at home, no copy" if access and access.link is None else "no copy"
        return {"copied": False, "copy": none}
    return {
        "copied": link.copy.value in ("PRESENT", "RETAINED"),
        "copy": f"{link.topic} on {link.cluster}: {link.copy}, link {link.state}",
        "copied_from": stamp(link.copied_from),
        "copied_to": stamp(link.copied_to),
    }


def _steps(mesh: Mesh, reading: Reading, image: Image, access: Access) -> list[dict[str, Any]]:
    """The events of this request up to the image's offset; ages count to the time asked about."""
    from self_service.cli.history import conversation, steps
    from self_service.cli.trace import items

    with mesh.log() as reader:
        every = mesh.fold(reader, lambda *log: steps(*log, until=image.offset))
    start = next(one for one in every if one.offset == access.offset)
    path = [
        one
        for one in conversation(every, start)
        # floors of a link's progress are many, and decide nothing
        if one.type != "LinkAdvanced"
    ]
    now = milliseconds(datetime.now(UTC)) if reading.is_now else image.time
    shown = ("offset", "time", "type", "actor", "outcome", "detail", "age_ms")
    return [{name: one[name] for name in shown} for one in items(path, now)]
