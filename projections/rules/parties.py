"""Whether who speaks, or is spoken of, is one that an intent may name: shared by several rules."""

from mesh_events.intents import domain_of
from projections.deciding.verdict import DecisionContext, require
from projections.identity import Role
from projections.image import Image


def require_operator(context: DecisionContext, what: str) -> None:
    """Refuse with `operators_only` who is not the mesh's operator."""
    require(
        context.key.role is Role.OPERATOR,
        "operators_only",
        f"only the mesh's operator may {what}: switch to mesh, or ask the operator",
    )


def require_application(image: Image, domain: str, application: str | None) -> None:
    """Refuse with `unknown_application` one that the domain does not have; None names none."""
    known = image.identity.applications
    require(
        application is None or (domain_of(application) == domain and application in known),
        "unknown_application",
        f"{domain} has no application {application}: list them, or register it first",
    )
