"""`sdm access readers`: everybody who can read a product, at any moment, and by what right."""

from typing import Any

from projections.image import Image
from projections.lineage.readers import Reader, Via, places, readers
from self_service.cli.framework.output import Detail, Listing
from self_service.cli.framework.times import stamp
from self_service.cli.mesh import lookup

COLUMNS = ("principal", "via", "cluster", "topic", "entitled", "enforced", "right", "state")


def detail(image: Image, name: str) -> Detail:
    """The readers of a product; raises NotFoundError where there is no such product."""
    product = lookup.product(image, name)
    found = readers(image, product)
    fields = {
        "product": product.id,
        "owner": product.domain,
        "as_of_offset": image.offset,
        "as_of": stamp(image.time),
        "administrators": _administrators(
            image, {cluster for cluster, _ in places(image, product)}
        ),
    }
    items = [_item(one) for one in found]
    return Detail(fields, {"readers": Listing(COLUMNS, items, "only administrators")})


def _administrators(image: Image, clusters: set[str]) -> str:
    """They need no right: who administers a cluster reads all that is on it."""
    known = image.identity.clusters
    users = [f"{known[name].admin_user} on {name}" for name in sorted(clusters & set(known))]
    return f"can read everything on their cluster without a grant: {', '.join(users)}"


def _item(one: Reader) -> dict[str, Any]:
    access = one.access
    granted = access.decided_at if access and access.granted_generation else None
    return {
        "principal": one.principal,
        "via": one.via,
        "cluster": one.place[0],
        "topic": one.place[1],
        "entitled": one.entitled,
        "enforced": one.enforced,
        "right": _right(one),
        "state": one.state,
        "application": one.application,
        "request": access.request if access else None,
        "request_offset": access.offset if access else None,
        "right_offset": one.offset,
        "entitled_from": stamp(granted),
        "entitled_to": stamp(access.revoked_at) if access else None,
        "enforced_periods": [
            {"from": stamp(start), "to": stamp(end)} for start, end in access.enforced
        ]
        if access
        else [],
    }


def _right(one: Reader) -> str:
    """What gives the right, in words."""
    match one.via:
        case Via.GRANT:
            return f"grant {one.access.offset if one.access else one.right}"
        case Via.DOMAIN | Via.OWN:
            return f"topics of {one.right}"
        case _:
            return f"{one.via} {one.right}"
