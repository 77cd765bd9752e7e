"""A schema that breaks readers, as a new major version: subject, topic and product beside the old.

Each step is done if it is not done yet, the schema first: what stands under the new subject tells
a second run which number the first one took.
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from mesh_events.errors import RefusedError
from mesh_events.intents import ProductPublished
from mesh_events.settings import key_path
from mesh_events.signing import SigningKey
from projections.catalog import Product
from projections.deciding.verdict import Refusal
from projections.image import Image
from projections.rules import names
from self_service.cli.framework.exits import NotFoundError
from self_service.cli.framework.options import Acting, SubmitOptions
from self_service.cli.framework.output import Detail, Format, Listing, note, show
from self_service.cli.mesh import brokers
from self_service.cli.mesh.context import Mesh
from self_service.cli.schema import subjects
from self_service.cli.schema.registry import Subjects
from self_service.cli.schema.subjects import topic_of
from self_service.cli.topic.readers import filled_by, readers, statement_into

if TYPE_CHECKING:
    from processors.clusters.kafka import ClusterAdmin, Topic
    from self_service.cli.schema.register import Draft

_NUMBERED = re.compile(r"(.+)-v([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a major version needs: `done` if it is there."""

    what: str
    name: str
    done: bool
    do: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Successor:
    """What the new major version is called; `product` is None where the topic carries none."""

    number: int
    topic: str
    product: str | None


def make_major(
    mesh: Mesh,
    image: Image,
    draft: "Draft",
    acting: Acting,
    actor: str | None,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Make topic and product for a schema that breaks those of its subject, and show the readers.

    Raises:
        NotFoundError: the subject has no topic.
        RefusedError: `not_confirmed`; a name is not allowed; or the governor's refusal.
        MeshError: a server does not answer; the same command goes on from there.
    """
    registry, topic = Subjects(mesh), topic_of(draft.subject)
    home = image.identity.domains[draft.who.domain].cluster
    admin = brokers.admin(mesh.login(image, home, draft.who.principal))
    old = admin.topic(topic)
    if old is None:
        raise NotFoundError(
            f"there is no topic {topic} that a major version could follow: register the schema "
            f"under another name, or create the topic with `sdm topic create {topic}`"
        )
    if statement := statement_into(image, topic):
        raise RefusedError(
            "topic_in_use",
            f"{topic} is filled by the statement {statement}, and a statement creates its topic "
            "itself: add another statement with the new result (`sdm streaming sql add`), and "
            "publish its topic",
        )
    product = next((one for one in image.catalog.values() if one.topic == topic), None)
    new = successor(topic, product.id if product else None, _free(image, registry, admin, draft))
    _require_names(new, draft.who.domain)
    steps = [
        *_schemas(mesh, registry, draft, new),
        _topic(admin, old, new),
        *_product(mesh, image, acting, actor, product, new),
    ]
    left = [one for one in steps if not one.done]
    if not dry_run and left:
        _confirm(left, yes=yes)
        if new.product is not None:
            # what cannot be published is not begun
            SigningKey.load(key_path(mesh.home, draft.who.key))
        for one in left:
            one.do()
    found = registry.known(_side(draft, new.topic), draft.schema)
    told = "would be made" if dry_run else "made"
    fields = {
        "subject": _side(draft, new.topic),
        "outcome": f"a new major version {told}" if left else "a major version already",
        "version": found.number if found else None,
        "id": found.schema_id if found else None,
        "type": draft.schema.kind,
        "topic": new.topic,
        "product": new.product,
        "replaces": {"topic": topic, "product": product.id if product else None},
        "filled_by": filled_by(image, topic),
    }
    parts = {
        "steps": Listing(
            ("step", "name", "state"),
            [
                {"step": one.what, "name": one.name, "state": "was there" if one.done else told}
                for one in steps
            ],
        ),
        "readers": Listing(
            ("kind", "name", "domain", "cluster"), list(readers(image, topic)), "no readers"
        ),
    }
    show(Detail(fields, parts), acting.output)


def successor(topic: str, product: str | None, free: Callable[[Successor], bool]) -> Successor:
    """The next major version that is free: `<topic>-v2`, `-v3`, ... and the product alike. Pure."""
    stem, number = _stem(topic)
    product_stem = None
    if product is not None:
        product_stem, of_product = _stem(product)
        number = max(number, of_product)
    while True:
        number += 1
        found = Successor(
            number,
            f"{stem}-v{number}",
            None if product_stem is None else f"{product_stem}-v{number}",
        )
        if free(found):
            return found


def _stem(name: str) -> tuple[str, int]:
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, 1)


def _free(
    image: Image, registry: Subjects, admin: "ClusterAdmin", draft: "Draft"
) -> Callable[[Successor], bool]:
    """Whether nobody has the names, or this very schema: then an earlier run made it."""

    def free(new: Successor) -> bool:
        known = image.catalog.get(new.product or "")
        if known is not None and known.topic != new.topic:
            return False
        if any(one.topic == new.topic and one.id != new.product for one in image.catalog.values()):
            return False
        subject = _side(draft, new.topic)
        if registry.numbers(subject):
            return registry.known(subject, draft.schema) is not None
        return admin.topic(new.topic) is None

    return free


def _require_names(new: Successor, domain: str) -> None:
    try:
        names.topic(new.topic, domain)
        if new.product is not None:
            names.dotted(new.product, "a product")
    except Refusal as refusal:
        raise RefusedError(refusal.rejected.code, refusal.rejected.reason) from refusal


def _side(draft: "Draft", topic: str) -> str:
    """The subject of the same side of another topic."""
    return f"{topic}-{draft.subject.rpartition('-')[2]}"


def _schemas(mesh: Mesh, registry: Subjects, draft: "Draft", new: Successor) -> Iterator[Step]:
    """The new schema, then that of the other side as it is."""
    subject = _side(draft, new.topic)
    done = registry.known(subject, draft.schema) is not None
    yield Step("schema", subject, done, lambda: subjects.register(mesh, subject, draft.schema))
    other = "value" if draft.subject.endswith("-key") else "key"
    kept, copied = registry.version(f"{topic_of(draft.subject)}-{other}"), f"{new.topic}-{other}"
    if kept is not None:
        done = registry.known(copied, kept.schema) is not None
        yield Step("schema", copied, done, lambda: subjects.register(mesh, copied, kept.schema))


def _topic(admin: "ClusterAdmin", old: "Topic", new: Successor) -> Step:
    """A topic with the old one's partitions and settings."""

    def make() -> None:
        brokers.create_topic(admin, new.topic, old.partitions, old.config)

    return Step("topic", new.topic, admin.topic(new.topic) is not None, make)


def _product(
    mesh: Mesh,
    image: Image,
    acting: Acting,
    actor: str | None,
    old: Product | None,
    new: Successor,
) -> Iterator[Step]:
    """The old product's promise, for the new topic."""
    if old is None or new.product is None:
        return
    product = new.product

    def publish() -> None:
        from self_service.cli.mesh.submitting import submit

        # a refusal is told as such; the answer is one document
        options = SubmitOptions(output=Format.TABLE, domain=acting.domain, actor=actor)
        try:
            submit(
                mesh,
                mesh.acting_as(acting.domain),
                options,
                lambda meta: ProductPublished(
                    meta=meta,
                    product=product,
                    topic=new.topic,
                    description=old.description,
                    owner=old.owner,
                    quality=old.quality,
                    sla=old.sla,
                    tags=list(old.tags),
                    version=_next_major(old.version),
                    acknowledged=True,
                ),
            )
        except RefusedError as error:
            # an earlier run said it, and was broken off before it was decided
            if error.code != "product_exists" or mesh.image().catalog[product].topic != new.topic:
                raise

    yield Step("product", product, product in image.catalog, publish)


def _next_major(version: str) -> str:
    return f"{int(version.partition('.')[0]) + 1}.0.0"


def _confirm(left: list[Step], *, yes: bool) -> None:
    told = ", ".join(f"{one.what} {one.name}" for one in left)
    if yes:
        return
    if sys.stdin.isatty():
        note("a published product is a promise: its owner keeps it as described")
        if typer.confirm(f"Create {told}?", err=True):
            return
    raise RefusedError("not_confirmed", f"{told}: nothing was created, add --yes")
