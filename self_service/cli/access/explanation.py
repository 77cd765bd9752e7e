"""Who may read a product, and why: entitled, enforced and copied, each with what decided it."""

from typing import Any, NamedTuple

from mesh_events.errors import MeshError
from mesh_events.intents import domain_of
from projections.access import Access
from projections.identity import UNREPORTED
from projections.image import Image, reading_place
from projections.lineage.readers import is_entitled
from self_service.cli.access import reasons
from self_service.cli.framework.options import Reading
from self_service.cli.framework.output import Detail, Listing
from self_service.cli.framework.times import present, stamp
from self_service.cli.mesh import lookup
from self_service.cli.mesh.context import Mesh

COLUMNS = ("offset", "time", "type", "domain", "actor", "outcome", "detail")
_REPORTED = "as the controller reported on the log"


class Seen(NamedTuple):
    """Whether rights to read are there, None if nobody could look, and what says so."""

    enforced: bool | None
    by: str


def explain(mesh: Mesh, reading: Reading, product: str, application: str) -> Detail:
    """The answer for one product and one application, at the time that `reading` asks for."""
    image = mesh.image(reading)
    lookup.product(image, product)
    lookup.application(image, application)
    owner = domain_of(product) == domain_of(application)
    access = _latest(image, product, application)
    seen = (
        _observed(mesh, image, product, application)
        if reading.is_now
        else _reported(image, product, application, access)
    )
    fields = {
        "product": product,
        "application": application,
        "entitled": _is_entitled(image, application, access, owner=owner),
        "why": reasons.why(image, product, application, access, seen.enforced),
        **_times(access),
        "enforced": seen.enforced,
        "enforced_by": seen.by,
        **_copied(image, access),
    }
    if access is None:
        return Detail(fields)
    steps = Listing(COLUMNS, _steps(mesh, reading, image, access), "no events")
    return Detail(fields, {"decided_by": steps})


def _latest(image: Image, product: str, application: str) -> Access | None:
    fitting = [
        one
        for one in image.access.requests.values()
        if one.product == product and one.application == application
    ]
    return max(fitting, key=lambda one: one.offset, default=None)


def _is_entitled(image: Image, application: str, access: Access | None, *, owner: bool) -> bool:
    if access is not None and is_entitled(image, access):
        return True
    return owner and domain_of(application) not in image.identity.quarantines


def _times(access: Access | None) -> dict[str, Any]:
    if access is None:
        return {}
    granted = access.decided_at if access.granted_generation else None
    # a link that was deleted and made again ends one period and begins another
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


def _reported(image: Image, product: str, application: str, access: Access | None) -> Seen:
    """What the log says was enforced: a past cluster cannot be asked."""
    if access is not None:
        return Seen(access.is_enforced, _REPORTED)
    own = domain_of(product) == domain_of(application)
    rights = image.identity.applications[application].rights
    since = rights.get(reading_place(image, product, application).cluster, UNREPORTED)
    return Seen(own and since != UNREPORTED, _REPORTED)


def _observed(mesh: Mesh, image: Image, product: str, application: str) -> Seen:
    """What the real cluster's rights say now."""
    from processors.clusters.kafka import KafkaAdmin

    place = reading_place(image, product, application)
    try:
        admin = KafkaAdmin(place.cluster, mesh.administration(image, place.cluster))
        reads, found = reasons.allow_reading(admin.acls(), place.topic, application)
    except MeshError as error:
        return Seen(None, f"not checked: {error}")
    shown = "; ".join(str(acl) for acl in found) or f"no ACL on topic {place.topic}"
    return Seen(reads, f"cluster {place.cluster}: {shown}")


def _copied(image: Image, access: Access | None) -> dict[str, Any]:
    link = image.links.get(access.link) if access and access.link else None
    if link is None:
        none = "read in the home cluster, no copy" if access and access.link is None else "no copy"
        return {"copied": False, "copy": none}
    # the log tells when the mesh purged a copy, and nothing of who else deleted it
    lost = link.failure_code == "destination_lost"
    state = "LOST" if lost else link.copy.value
    return {
        "copied": link.copy.value in ("PRESENT", "RETAINED") and not lost,
        "copy": f"{link.topic} on {link.cluster}: {state}, link {link.shown_state}",
        "copied_from": stamp(link.copied_from),
        "copied_to": stamp(link.copied_to),
    }


def _steps(mesh: Mesh, reading: Reading, image: Image, access: Access) -> list[dict[str, Any]]:
    """The events of this request up to the image's offset; ages count to the time asked about."""
    from self_service.cli.audit.history import conversation, steps
    from self_service.cli.audit.trace import items

    with mesh.log() as reader:
        every = mesh.fold(reader, lambda *log: steps(*log, until=image.offset))
    start = next(one for one in every if one.offset == access.offset)
    parties = {domain_of(access.product), access.consumer}
    path = [
        one
        for one in conversation(every, start, parties)
        # floors of a link's progress are many, and decide nothing
        if one.type != "LinkAdvanced"
    ]
    now = present(image.time) if reading.is_now else image.time
    return [{name: one[name] for name in (*COLUMNS, "age_ms")} for one in items(path, now)]
