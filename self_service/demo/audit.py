"""The end of the story: the log answers for all of it, now and as of every earlier moment."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mesh_events.meta import MESH_DOMAIN
from self_service.demo.stage import Stage, items

SAID = [
    ("east", "ProductPublished", "accepted"),
    ("west", "AccessRequested", "accepted"),
    ("west", "AccessGranted", "rejected own_request"),
    ("east", "AccessGranted", "accepted"),
    ("east", "AccessRevoked", "accepted"),
]


def tell_audit(stage: Stage, product: str, request: str, moments: Mapping[str, str]) -> None:
    """Ask the log what happened.

    Args:
        stage: where it is told.
        product: the product of the story.
        request: id of the request for it.
        moments: name of a moment -> its time, ISO 8601, as the story kept them.
    """
    stage.chapter("The audit: who did what, when and why")
    entries = items(stage.sdm("audit", "log", "--product", product).data)
    for entry in entries:
        told = ("time", "actor", "type", "outcome", "detail")
        stage.tell(" ".join(str(entry.get(name, "")) for name in told))
    said = _said(entries)
    stage.check(
        "the log tells what each domain said about the product, and what came of it",
        said == SAID,
        str(said),
    )
    traced = stage.sdm("trace", request).data
    effects = [one["type"] for one in items(traced["steps"]) if one["step"] == "effect"]
    stage.check(
        "the trace of the request leads from its rights to the purged copy",
        _in_order(effects, "AclApplied", "AclRemoved")
        and _in_order(effects, "LinkActivated", "LinkStopped", "CopyPurged"),
        str(effects),
    )
    verdict = stage.sdm("audit", "verify").data
    stage.check(
        "every signature and decision on the log holds", _says(verdict, "valid"), str(verdict)
    )
    compared = stage.sdm("audit", "replay", "--compare").data
    stage.check(
        "rows on mesh.* equal a replay in a new process", _says(compared, "equal"), str(compared)
    )
    stage.chapter("The same questions as of earlier moments")
    for moment, products, state in (
        ("before the product", 0, None),
        ("before the grant", 1, "REQUESTED"),
        ("during the grant", 1, "ACTIVE"),
        ("after the revocation", 2, "REVOKED"),
    ):
        at = moments[moment]
        catalog = items(stage.sdm("catalog", "list", "--as-of", at, quiet=True).data)
        access = items(
            stage.sdm("access", "list", "--product", product, "--as-of", at, quiet=True).data
        )
        states = [found["state"] for found in access]
        stage.check(
            f"as of {moment}: {products} products, access to {product} {state or 'unknown'}",
            len(catalog) == products and states == ([state] if state else []),
            f"{len(catalog)} products, {states}",
        )


def _said(entries: Iterable[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Domain, what it said and its outcome, of what domains have said; the mesh's own is left out.

    A decision is an entry of its own, beside the outcome of what it is about.
    """
    return [
        (str(one["domain"]), str(one["type"]), str(one["outcome"]))
        for one in entries
        if one["domain"] != MESH_DOMAIN
    ]


def _in_order(found: Sequence[str], *wanted: str) -> bool:
    """Whether the wanted ones come in this order, among others."""
    rest = iter(found)
    return all(one in rest for one in wanted)


def _says(answer: Any, name: str) -> bool:
    return isinstance(answer, dict) and answer.get(name) is True
