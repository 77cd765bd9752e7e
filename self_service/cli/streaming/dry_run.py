"""The dry run of a statement: what the mesh answers if it is added."""

from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from mesh_events.errors import MeshError, RefusedError
from mesh_events.intents import domain_of
from mesh_events.meta import Meta, now
from mesh_events.spelling import asked
from mesh_events.statements import Begin, StatementAdded
from projections.deciding.verdict import DecisionContext, Refusal, Rejected
from projections.identity import Key, Role
from projections.image import Image
from projections.statements import STREAM_ID, TOPIC_ID, Statement
from self_service.cli.framework.times import present
from self_service.cli.mesh.context import Mesh
from self_service.cli.streaming.wording import Worded

if TYPE_CHECKING:
    from processors.clusters.kafka import ClusterAdmin, KafkaAdmin, Topic
    from spark_streams.log import PartitionLog
    from spark_streams.sql.plan import Plan, Schemas


def supposed(
    statement: str,
    meant: Worded,
    begin: Begin = Begin.EARLIEST,
    *,
    sender: str | None = None,
) -> StatementAdded:
    """The intent to add it, which is not submitted; it fills a new topic where none is named.

    sender: the domain that says so; None for the one that the statement's name tells.
    """
    domain = domain_of(statement)
    meta = Meta(
        id="supposed",
        time=now(),
        actor=sender or domain,
        domain=sender or domain,
        correlation="supposed",
        causation=None,
    )
    return StatementAdded(
        meta=meta,
        statement=statement,
        **meant.fields(),
        destination=meant.destination or f"{domain}.unnamed-{uuid4().hex}",
        begin=begin,
    )


def named(image: Image, domain: str, meant: Worded) -> str:
    """The statement that a text is for: the domain's that fills its destination, or filled it."""
    filling = [
        one
        for one in image.statements.values()
        if one.destination == meant.destination and one.domain == domain
    ]
    latest = max(filling, key=lambda one: one.created_generation, default=None)
    return latest.id if latest is not None else f"{domain}.unnamed-{uuid4().hex}"


def refusal(image: Image, intent: StatementAdded) -> Rejected | None:
    """What the governor would answer by the state alone."""
    from projections.rules import statements  # noqa: F401 - fills the table
    from projections.rules.registry import judge

    domain = intent.meta.domain
    if domain in image.identity.quarantines:
        return Rejected("domain_quarantined", f"{domain} is in quarantine: ask the operator")
    time = present(image.time)
    if image.identity.freeze_of(domain, image.ended_by(time)) is not None:
        return Rejected("domain_frozen", f"{domain} is frozen: try again afterwards")
    try:
        sender = Key("", Role.DOMAIN, domain, 0)
        verdict = judge(intent, DecisionContext(image, sender, domain, {}, time, time))
    except Refusal as refused:
        return refused.rejected
    return verdict if isinstance(verdict, Rejected) else None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer to a statement that was not submitted, for `add` and for `explain`.

    text: the answer in words.
    refusal: why it would be refused; None if it would be accepted.
    by_governor: whether the governor refuses it by the log and the destination, and not this
        program by the topics and the text.
    plan: what it does; None where its topics or its text are refused.
    warnings: what somebody may not expect of it.
    """

    text: str
    refusal: RefusedError | None = None
    by_governor: bool = False
    plan: "Plan | None" = None
    warnings: tuple[str, ...] = ()


def dry_run(mesh: Mesh, image: Image, intent: StatementAdded, meant: Worded) -> DryRun:
    """What would become of a statement as things are; see `answer`.

    A name that is not the sender's is refused before any server is asked.
    """
    from processors.clusters.kafka import KafkaAdmin

    domain = domain_of(intent.statement)
    if domain != intent.meta.domain or domain not in image.identity.domains:
        # the name tells no home of the sender's, where topics could be looked up
        by_rules = refusal(image, intent)
        assert by_rules is not None  # noqa: S101 - nobody adds to another domain, or to none
        return _refused(by_rules, None)
    cluster = image.identity.domains[domain].cluster
    try:
        login = mesh.administration(image, cluster)
        admin = KafkaAdmin(cluster, login)
    except MeshError as error:
        found = answer(image, intent, None, mesh.registry)
        unseen = f"not known: topics cannot be read: {error}"
        return found if found.refusal is not None else replace(found, text=unseen)
    with ExitStack() as stack:
        log = None
        if intent.statement in image.statements:
            from spark_streams.log import KafkaLog

            log = stack.enter_context(closing(KafkaLog(login)))
        found = answer(image, intent, admin, mesh.registry, log)
    if found.refusal is not None and found.refusal.code == "unknown_topic":
        _require_topics(image, domain, meant, admin)
    if found.refusal is None and meant.destination is None:
        rest = found.text.removeprefix("accepted")
        return replace(found, text=f"accepted, once a destination is named{rest}")
    return found


def answer(
    image: Image,
    intent: StatementAdded,
    admin: "ClusterAdmin | None",
    schemas: "Schemas",
    stream: "PartitionLog | None" = None,
) -> DryRun:
    """The answer of the rules, then of topics and text, then of the destination.

    The same order as the governor's, so that the code is the one that it refuses with. Without
    `admin` all topics count as being there. One that comes back is judged by where its `stream`
    begins.
    """
    found = _answer(image, intent, admin, schemas, stream)
    if found.plan is None:
        return found
    names = sorted({intent.stream, *intent.tables})
    topics = {} if admin is None else {name: admin.topic(name) for name in names}
    passed = passed_over(found.plan, intent.stream, topics.get(intent.stream))
    tables = {*intent.tables, *([intent.stream] if found.plan.stream.of_rows else [])}
    gaps = (expiring(topic) for name, topic in topics.items() if topic and name in tables)
    return replace(found, warnings=tuple(one for one in (passed, *gaps) if one is not None))


def passed_over(plan: "Plan", stream: str, topic: "Topic | None") -> str | None:
    """What to say of a stream whose records may be rows: those without a value are passed over.

    topic: the stream's, None where it is not known.
    """
    compacted = topic is not None and "compact" in topic.config.get("cleanup.policy", "")
    if plan.stream.of_rows or not (compacted or plan.key is not None):
        return None
    why = "is compacted" if compacted else "has keys with a schema"
    return (
        f"{stream} {why}, so its records may be rows, and one without a value deletes a row. FROM "
        "skips such a record: a deleted row stays in the result. Write "
        f"FROM TABLE({stream}), which joins nothing, to delete it there, too"
    )


def expiring(table: "Topic") -> str | None:
    """What to say of a table whose rows Kafka deletes when they are old; None where it does not."""
    policy, kept = table.config.get("cleanup.policy", "delete"), table.config.get("retention.ms")
    if "compact" in policy or kept == "-1":
        return None
    shown = "" if kept is None else f", retention.ms={kept}"
    return (
        f"{table.name} deletes old records (cleanup.policy={policy}{shown}): once a row has "
        "expired, this statement fails with table_gap at its next start, as after a restart of its "
        f"server. Keep the latest record of each key with `sdm kafka configs --alter --entity-type "
        f"topics --entity-name {table.name} --add-config cleanup.policy=compact`"
    )


def _answer(
    image: Image,
    intent: StatementAdded,
    admin: "ClusterAdmin | None",
    schemas: "Schemas",
    stream: "PartitionLog | None",
) -> DryRun:
    by_rules = refusal(image, intent)
    try:
        plan = _plan(image, intent, admin, schemas)
    except RefusedError as error:
        if by_rules is not None:
            return _refused(by_rules, None)
        return DryRun(f"refused, {error.code}: {error}", error)
    if by_rules is not None:
        return _refused(by_rules, plan)
    if admin is None:
        return DryRun("accepted", plan=plan)
    found = _at_destination(image, intent, admin, plan, stream)
    if found.refusal is not None or (limit := _partitions(intent, admin)) is None:
        return found
    return replace(found, text=f"{found.text}, {limit}")


def _partitions(intent: StatementAdded, admin: "ClusterAdmin") -> str | None:
    """What the worker's limit of partitions has to be; None where it may have its default."""
    from processors.controllers.flows.partition_limit import MOST_PARTITIONS, OF_STATEMENTS

    topics = (admin.topic(name) for name in (intent.stream, *intent.tables))
    widest = max((one for one in topics if one is not None), key=lambda one: one.partitions)
    if widest.partitions <= MOST_PARTITIONS:
        return None
    return (
        f"if the worker's {OF_STATEMENTS} is {widest.partitions} or more, the number of partitions "
        f"of {widest.name}; the default is {MOST_PARTITIONS}, and more partitions are refused "
        "(too_many_partitions)"
    )


def _plan(
    image: Image, intent: StatementAdded, admin: "ClusterAdmin | None", schemas: "Schemas"
) -> "Plan":
    """The plan as the governor's check makes it."""
    from processors.clusters.kafka import Topic
    from processors.controllers.statements.planning import plan_statement

    cluster = image.identity.domains[domain_of(intent.statement)].cluster
    topic = admin.topic if admin is not None else lambda name: Topic(name, "", 1, {})
    return plan_statement(intent, intent.destination, cluster, topic, schemas)


def _at_destination(
    image: Image,
    intent: StatementAdded,
    admin: "ClusterAdmin",
    plan: "Plan",
    stream: "PartitionLog | None",
) -> DryRun:
    """Whether the destination is free, or the statement may come back to it."""
    from processors.controllers.checks.findings import destination_free

    before = image.statements.get(intent.statement)
    found = destination_free(intent, admin, before, stream)
    if found.code:
        return _refused(Rejected(found.code, found.reason), plan)
    if before is not None and before.filled(found.evidence.get(TOPIC_ID)):
        same = found.evidence.get(STREAM_ID) == before.stream_topic_id
        return DryRun(f"accepted: {coming_back(before, same=same)}", plan=plan)
    return DryRun("accepted", plan=plan)


def _refused(rejected: Rejected, plan: "Plan | None") -> DryRun:
    error = RefusedError(rejected.code, rejected.reason)
    return DryRun(
        f"refused, {rejected.code}: {rejected.reason}", error, by_governor=True, plan=plan
    )


def coming_back(before: Statement, *, same: bool) -> str:
    """What it means that a deleted statement is added again while its topic is there.

    same: whether its stream is the one that it read.
    """
    back = f"{before.id} was deleted, and continues to fill {before.destination}"
    if not same:
        return f"{back}: {before.stream} was recreated, and each of its records is a new one"
    return (
        f"{back}: it skips the records that it has processed; delete the topic to process all of "
        f"{before.stream} again"
    )


def _require_topics(image: Image, domain: str, meant: Worded, admin: "KafkaAdmin") -> None:
    """Raise RefusedError `unknown_topic` with the place and with names that are near."""
    from self_service.cli.mesh import brokers

    for one in meant.parsed.sources:
        topic = meant.names.get(one.name, one.name)
        if admin.topic(topic) is not None:
            continue
        near = asked(topic, [*image.catalog, *brokers.topics(admin.login)])
        raise RefusedError(
            "unknown_topic",
            f"{one.place}: there is no topic {topic} on cluster {admin.name}, the home of "
            f"{domain}: {near}see `sdm topic list` and `sdm catalog search`",
        )
