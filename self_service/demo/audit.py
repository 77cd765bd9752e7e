"""The end of the story: the log answers for all of it, now and as of every earlier moment."""

from collections.abc import Mapping
from typing import Any

from self_service.demo.stage import Stage, items


def tell_audit(stage: Stage, product: str, request: str, moments: Mapping[str, str]) -> None:
    """Ask the log what happened.

    Args:
        stage: where it is told.
        product: the product of the story.
        request: id of the request for it.
        moments: name of a moment -> its time, ISO 8601, as the story kept them.
    """
    stage.chapter("The audit: who did what, when and why")
    for entry in items(stage.sdm("audit", "log", "--product", product).data):
        told = ("time", "actor", "type", "outcome", "detail")
        stage.tell(" ".join(str(entry.get(name, "")) for name in told))
    stage.sdm("trace", request)
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


def _says(answer: Any, name: str) -> bool:
    return isinstance(answer, dict) and answer.get(name) is True
