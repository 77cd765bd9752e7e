"""Rules for streaming SQL.

A domain's statements read what is its own or granted to it, each topic is filled by one of them,
and nothing comes back to where it came from.
"""

from dataclasses import replace

from mesh_events.statements import (
    Begin,
    StatementAdded,
    StatementDeleted,
    StatementIntent,
    StatementStarted,
    StatementStopped,
    StatementUpdated,
    Wording,
)
from projections.deciding.verdict import DecisionContext, Verdict, require
from projections.identity import Role
from projections.lineage import steps
from projections.lineage.sources import not_granted, way_back
from projections.lineage.topic_use import fillers
from projections.quotas.kinds import Kind
from projections.rules import life, names
from projections.rules.parties import require_application
from projections.rules.quotas import require_record, require_room
from projections.rules.registry import judge
from projections.statements import DEAD_LETTERS, DESTINATION_FREE, STATEMENT_SOUND, Statement

LONGEST_SQL = 20_000
MOST_TABLES = 16
MOST_NAMES = 40


@judge.register
def _(intent: StatementAdded, context: DecisionContext) -> Verdict:
    names.dotted(intent.statement, "a statement")
    domain = life.own(context, intent.statement, "statements")
    names.note(intent.description, "the description")
    before = context.image.statements.get(intent.statement)
    require(
        before is None or not before.stands,
        "statement_exists",
        f"the statement {intent.statement} exists already: update it, or delete it first",
    )
    require(
        before is None or before.is_over,
        "statement_deleting",
        f"the statement {intent.statement} was deleted and is not gone yet: wait for DELETED",
    )
    kept = 1 if before is None else _leaves(context, before, intent, intent.destination)
    require_room(context, Kind.STATEMENTS, domain, kept)
    require(intent.begin is not Begin.UNKNOWN, "invalid_begin", "begin must be EARLIEST or LATEST")
    cluster = context.image.identity.domains[domain].cluster
    _fills(context, intent.statement, intent.destination, domain, cluster)
    _reads(context, intent, domain, cluster, intent.destination)
    return context.after(STATEMENT_SOUND, DESTINATION_FREE)


@judge.register
def _(intent: StatementUpdated, context: DecisionContext) -> Verdict:
    domain = life.own(context, intent.statement, "statements")
    statement = _standing(context, intent)
    require(
        intent.stream == statement.stream,
        "stream_differs",
        f"{statement.id} reads {statement.stream} and cannot go on in {intent.stream}: "
        "add another statement for it",
    )
    _reads(context, intent, domain, statement.cluster, statement.destination)
    left = _leaves(context, statement, intent, statement.destination)
    require_record(context, Kind.STATEMENTS, domain, left)
    return context.after(STATEMENT_SOUND)


@judge.register
def _(intent: StatementStopped, context: DecisionContext) -> Verdict:
    return life.stop(context, _directed(context, intent), "statement", intent.reason)


@judge.register
def _(intent: StatementStarted, context: DecisionContext) -> Verdict:
    return life.start(context, _directed(context, intent), "statement", intent.reason)


@judge.register
def _(intent: StatementDeleted, context: DecisionContext) -> Verdict:
    return life.delete(context, _directed(context, intent), "statement", intent.reason)


def _directed(context: DecisionContext, intent: StatementIntent) -> Statement:
    """The statement, if the signer's domain may stop, start or delete it."""
    if context.key.role is not Role.OPERATOR:
        life.own(context, intent.statement, "statements")
    return _standing(context, intent)


def _standing(context: DecisionContext, intent: StatementIntent) -> Statement:
    statement = context.image.statements.get(intent.statement)
    require(
        statement is not None and statement.stands,
        "unknown_statement",
        f"there is no statement {intent.statement}: list the statements",
    )
    assert statement is not None  # noqa: S101 - for the type checker; `require` has refused
    return statement


def _leaves(context: DecisionContext, before: Statement, intent: Wording, destination: str) -> int:
    """How many steps of the text before it are to be kept on record."""
    after = replace(
        before,
        stream=intent.stream,
        tables=tuple(intent.tables),
        application=intent.application,
        destination=destination,
    )
    return steps.leaves(context.image.replaced, before, after)


def _fills(
    context: DecisionContext, name: str, destination: str, domain: str, cluster: str
) -> None:
    """The destination is a topic of the domain that no other statement fills."""
    names.topic(destination, domain)
    names.legal_topic(destination + DEAD_LETTERS)
    require(
        not destination.endswith(DEAD_LETTERS),
        "invalid_name",
        f"{destination} ends in {DEAD_LETTERS}, as topics of dead letters do: choose another name",
    )
    topics = destination, destination + DEAD_LETTERS
    filled = fillers(context.image.topic_use, cluster, topics, ("statement", name))
    writer = min((others[0] for others in filled.values()), default=None)
    require(
        writer is None,
        "destination_written",
        f"{destination} is filled by {writer}: choose another topic",
    )


def _reads(
    context: DecisionContext, intent: Wording, domain: str, cluster: str, destination: str
) -> None:
    """Every source is the domain's own or granted, and does not come from the destination."""
    names.text(intent.sql, "the SQL", LONGEST_SQL)
    sources = [intent.stream, *intent.tables]
    require(
        len(intent.tables) <= MOST_TABLES,
        "too_many_tables",
        f"{len(intent.tables)} tables are joined, at most {MOST_TABLES} can be",
    )
    meant = {*sources, destination}
    require(
        set(intent.names.values()) <= meant and len(intent.names) <= MOST_NAMES,
        "too_many_names",
        "names tells of topics that are neither read nor filled, or of more names than "
        f"{MOST_NAMES}",
    )
    for topic in (*sources, *intent.names):
        names.legal_topic(topic)
    require_application(context.image, domain, intent.application)
    missing = not_granted(context.image, domain, intent.application, cluster, sources)
    require(
        not missing,
        "source_not_granted",
        f"{', '.join(missing)} on {cluster} is not granted to "
        f"{intent.application or f'an application of {domain}'}: request access, and name the "
        "application that has it",
    )
    read = [(cluster, topic) for topic in sources]
    way = next(
        (
            found
            for filled in (destination, destination + DEAD_LETTERS)
            if (found := way_back(context.image, (cluster, filled), read))
        ),
        [],
    )
    require(
        not way,
        "statement_cycle",
        f"the result would come back to its source: {' > '.join(topic for _, topic in way)}",
    )
