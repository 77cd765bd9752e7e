"""What would become of a statement if it were added: asked of the governor's own rules."""

from typing import NamedTuple

from mesh_events.errors import MeshError, RefusedError
from mesh_events.intents import domain_of
from mesh_events.meta import Meta, milliseconds, now
from mesh_events.spelling import asked
from mesh_events.statements import Begin, StatementAdded
from projections.identity import Key, Role
from projections.image import Image
from projections.statements import STREAM_ID, TOPIC_ID, Statement
from projections.verdict import Case, Refusal, Rejected
from self_service.cli.context import Mesh
from self_service.cli.statement_wording import Worded


def supposed(statement: str, meant: Worded, begin: Begin = Begin.EARLIEST) -> StatementAdded:
    """The intent to add it, which nobody has said."""
    domain = domain_of(statement)
    meta = Meta(
        id="supposed",
        time=now(),
        actor=domain,
        domain=domain,
        correlation="supposed",
        causation=None,
    )
    return StatementAdded(
        meta=meta,
        statement=statement,
        **meant.fields(),
        destination=str(meant.destination),
        begin=begin,
    )


def named(image: Image, domain: str, meant: Worded) -> str:
    """The statement that a text is for: the one that fills its destination, or filled it."""
    filling = [one for one in image.statements.values() if one.destination == meant.destination]
    latest = max(filling, key=lambda one: one.created_generation, default=None)
    return latest.id if latest is not None else f"{domain}.new"


def refusal(image: Image, intent: StatementAdded) -> Rejected | None:
    """What the governor would answer by the state alone."""
    from projections.rules import statements  # noqa: F401 - fills the table
    from projections.rules.ruling import judge

    domain = domain_of(intent.statement)
    if domain in image.identity.quarantines:
        return Rejected("domain_quarantined", f"{domain} is in quarantine: ask the operator")
    if image.identity.freeze_of(domain, milliseconds(intent.meta.time)) is not None:
        return Rejected("domain_frozen", f"{domain} is frozen: say it afterwards")
    try:
        speaker = Key("", Role.DOMAIN, domain, 0)
        verdict = judge(intent, Case(image, speaker, domain, {}, milliseconds(intent.meta.time)))
    except Refusal as refused:
        return refused.rejected
    return verdict if isinstance(verdict, Rejected) else None


class Prospect(NamedTuple):
    """Whether the mesh would accept it as far as can be seen, and what it would say.

    rejected: its refusal; None if it would accept.
    """

    told: str
    rejected: Rejected | None = None


def prospect(mesh: Mesh, image: Image, intent: StatementAdded) -> Prospect:
    """Whether the mesh would accept the statement as things are, and why not."""
    from processors.clusters import KafkaAdmin
    from processors.keepers.findings import destination_free

    refused = refusal(image, intent)
    if refused is not None:
        return _refused(refused)
    cluster = image.identity.domains[domain_of(intent.statement)].cluster
    before = image.statements.get(intent.statement)
    try:
        admin = KafkaAdmin(cluster, mesh.administration(image, cluster))
        found = destination_free(intent, admin, before)
    except MeshError as error:
        return Prospect(f"the destination was not looked up: {error}")
    if found.code:
        return _refused(Rejected(found.code, found.reason))
    if before is not None and before.filled(found.evidence.get(TOPIC_ID)):
        same = found.evidence.get(STREAM_ID) == before.stream_topic_id
        return Prospect(f"accepted: {coming_back(before, same=same)}")
    return Prospect("accepted")


def _refused(rejected: Rejected) -> Prospect:
    return Prospect(f"refused, {rejected.code}: {rejected.reason}", rejected)


def coming_back(before: Statement, *, same: bool) -> str:
    """What it means that a dropped statement is added again while its topic is there.

    same: whether its stream is the one that it read.
    """
    back = f"{before.id} was dropped, and comes back to {before.destination}"
    if not same:
        return f"{back}: {before.stream} was made again, and each of its records is a new one"
    return (
        f"{back}: what it has dealt with is left out; delete the topic to have all of "
        f"{before.stream} once more"
    )


def require_topics(mesh: Mesh, image: Image, domain: str, meant: Worded) -> None:
    """Raise RefusedError `unknown_topic` for a source that is not there, if that can be seen."""
    from processors.clusters import KafkaAdmin
    from self_service.cli import brokers

    cluster = image.identity.domains[domain].cluster
    try:
        admin = KafkaAdmin(cluster, mesh.administration(image, cluster))
        missing = [
            (one.place, topic)
            for one in meant.parsed.sources
            if admin.topic(topic := meant.names.get(one.name, one.name)) is None
        ]
    except MeshError:
        return
    for place, topic in missing:
        near = asked(topic, [*image.catalog, *brokers.topics(admin.login)])
        raise RefusedError(
            "unknown_topic",
            f"{place}: there is no topic {topic} on cluster {cluster}, the home of {domain}: "
            f"{near}see `sdm topic list` and `sdm catalog search`",
        )
