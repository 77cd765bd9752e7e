"""Whatever an intent says, its judgement is a verdict: anything else raised ends every worker."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_events import connectors, intents, statements
from mesh_events.connectors import CONNECTOR_INTENTS
from mesh_events.facts import CheckFailed, CheckPassed
from mesh_events.intents import INTENTS, Intent
from mesh_events.meta import MESH_DOMAIN, Meta
from mesh_events.record import Entry
from mesh_events.statements import STATEMENT_INTENTS
from processors.governor.decision import Basis, decision_on
from projections.connectors.settings import COMMON, JDBC_SINK, OF_SINKS, OF_SOURCES, POSTGRES
from projections.deciding.decide import decide
from projections.deciding.derived import derived_intents
from projections.deciding.speculation import decided
from projections.deciding.verdict import Accepted, Waiting
from projections.fold import apply
from projections.image import Image
from projections.rows import touched_rows
from tests import sample_history as story
from tests.memory_log import EPOCH_MS, MemoryLog, at, key, meta, sign, uuid7
from tests.unit.mesh_events.values import any_of
from tests.unit.projections.refusals import ASKED, DENIED, GRANTED, REFUSALS

KINDS: list[type[Intent]] = sorted(
    {*INTENTS, *STATEMENT_INTENTS, *CONNECTOR_INTENTS}, key=lambda kind: kind.__name__
)
WORDY: list[type[Intent]] = [
    connectors.ConnectorAdded,
    connectors.ConnectorUpdated,
    statements.StatementAdded,
]
"""Whose rules read the most."""
SENDERS = {name: name for name in ("east", "west", "north")} | {
    "operator": MESH_DOMAIN,
    "governor": MESH_DOMAIN,
}
"""Key -> the domain whose it is."""
Said = tuple[str, type[Intent], dict[str, Any]]
"""Whose key signs it, of what kind, with which fields."""
TOMORROW = at(EPOCH_MS + 86_400_000)
DIRECTIONS = (statements.StatementStopped, statements.StatementDeleted)
TURNS = (connectors.ConnectorStopped, connectors.ConnectorDeleted)
FRESH = {
    "topic.prefix": "east.fresh",
    "table.include.list": "public.fresh",
    "transforms.route.regex": r"east\.fresh\.[^.]+\.(.+)",
}
NAMES = [
    *("east", "west", "north", "mesh", "*", "stranger", "east.users", "east.more", "west.app"),
    *("east.copied", "east.copied.dead", "east.shop", "east.orders", "east.", ".", "east..x", ""),
    *("east.shares", "east.shared", "sdm.east", "north.app", "west.two", "east.users@west"),
    key("east").public,
    key("fresh").public,
]
ODD = [
    *("", " ", ",", ",,", ".", "..", "a,a", "0", "-1", "16", "1" * 4000, "²", "٣", "1_0", "+1"),
    *("true", "TRUE", "null", "\0", "\n", "é", "\u2028", "a" * 250, "east.$1", "$9", "$"),
    *("(", ")", "[", "[]", "[z-a]", "\\", "a\\", "(" * 300 + ")" * 300, "(a)" * 99, ".*" * 200),
    *("east\\.(.*)", "(.+)", ".*", "{", "{0}", "${", "${topic}", "${secret:own}", "%s", "%"),
    *("public.orders", "public.orders,sales.*", '"a"."b"', '"', "public.", "table:a,b", "a:b:c"),
    *("jdbc:", "jdbc:postgresql://db.invalid/shop", "jdbc:postgresql://[::1", "jdbc:a://a:b@c:d"),
    *("http://[", "http://a:99999999", "file:/x", "env:X", "route", "route,route", "a,b"),
    *("io.debezium.transforms.ExtractNewRecordState", "org.apache.kafka.connect.transforms.Cast$X"),
    *(POSTGRES, JDBC_SINK),
]
DEAD = "errors.deadletterqueue.topic.name"
SINK = {
    "connector.class": JDBC_SINK,
    "topics": "east.users,east.orders",
    "connection.url": "jdbc:postgresql://db.invalid:5432/reports",
    "connection.password": connectors.OWN_SECRET,
    "primary.key.mode": "record_key",
    "insert.mode": "upsert",
    "collection.name.format": "${topic}",
    "errors.tolerance": "all",
    DEAD: "east.dead",
    "tasks.max": "2",
    "transforms": "cast,flat",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "note:string",
    "transforms.flat.type": "org.apache.kafka.connect.transforms.Flatten$Value",
    "transforms.flat.delimiter": "_",
    "transforms.flat.predicate": "dead",
    "predicates": "dead",
    "predicates.dead.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.dead.pattern": "east.*",
}
SETTINGS = [*COMMON, *OF_SINKS, *OF_SOURCES]
TEXTS = st.one_of(st.sampled_from(NAMES), st.sampled_from(ODD), st.text(max_size=30))


@cache
def scene() -> tuple[MemoryLog, Mapping[str, str]]:
    """The state that `refusals` describes mostly, and the ids of its requests."""
    log = MemoryLog()
    story.published(log)
    for application in ("west.two", "north.two", "east.app"):
        sender = application.partition(".")[0]
        log.say(intents.ApplicationRegistered, sender, application=application)
    granted, asked = story.granted(log), story.request(log, "north")
    log.say(statements.StatementAdded, "east", **story.statement())
    log.say(connectors.ConnectorAdded, "east", **story.connector())
    sink = {"connector": "east.reports", "config": SINK | {"topics": "east.users"}}
    log.say(connectors.ConnectorAdded, "east", **sink)
    log.say(connectors.ConnectorAdded, "east", **story.shared("east.shared", "disabled"))
    story.settle(log)
    log.say(connectors.ConnectorDeleted, "east", connector="east.shared")
    frozen = {"domain": "north", "until": at(log.now + 60_000), "reason": "lost"}
    log.operator(intents.DomainFrozen, **frozen)
    story.settle(log)
    return log, {ASKED: asked, DENIED: asked, GRANTED: granted}


def good() -> list[Said]:
    """What is accepted, of each kind."""
    _, ids = scene()
    link, reason = {"product": story.PRODUCT, "cluster": "west"}, {"reason": "so"}
    request = {"product": story.PRODUCT, "request": ids[ASKED], **reason}
    fresh = key("fresh")
    added = {
        "domain": "east",
        "public_key": fresh.public,
        "proof": fresh.prove(key("root").public, "east"),
    }
    revoked = {"domain": "east", "public_key": key("east").public}
    asked = {"product": story.PRODUCT, "application": "west.two", **reason}
    capture = story.connector(connector="east.fresh", more=FRESH)
    reports = {
        "connector": "east.fresh",
        "config": SINK | {"topics": "east.users", DEAD: "east.lost"},
    }
    sql = story.statement(statement="east.fresh", destination="east.fresh")
    text = {"statement": "east.copied", "sql": "SELECT 1", "stream": "east.users"}
    return [
        ("operator", intents.ClusterRegistered, story.cluster("third")),
        ("operator", intents.DomainRegistered, story.domain("south", "east")),
        ("operator", intents.DomainFrozen, {"domain": "west", "until": TOMORROW, **reason}),
        ("operator", intents.DomainThawed, {"domain": "north", **reason}),
        ("operator", intents.DomainQuarantined, {"domain": "west", **reason}),
        ("east", intents.KeyRegistered, added),
        ("east", intents.KeyRevoked, {**revoked, **reason}),
        ("east", intents.ApplicationRegistered, {"application": "east.fresh"}),
        ("west", intents.CredentialsRequested, {"principal": "west.app", "cluster": "west"}),
        ("east", intents.ProductPublished, story.product(product="east.o", topic="east.o")),
        ("east", intents.ProductUpdated, {"product": story.PRODUCT, "topic_replaced": True}),
        ("west", intents.AccessRequested, asked),
        ("east", intents.AccessGranted, request),
        ("east", intents.AccessDenied, request),
        ("east", intents.AccessRevoked, {**request, "request": ids[GRANTED]}),
        *(("east", kind, link) for kind in (intents.LinkPaused, intents.LinkDeleted)),
        ("east", statements.StatementAdded, sql),
        ("east", statements.StatementUpdated, text),
        *(("east", kind, {"statement": "east.copied"}) for kind in DIRECTIONS),
        *(("east", connectors.ConnectorAdded, one) for one in (capture, reports)),
        ("east", connectors.ConnectorUpdated, story.connector()),
        ("east", connectors.ConnectorUpdated, {**reports, "connector": "east.reports"}),
        *(("east", kind, {"connector": "east.shop"}) for kind in TURNS),
    ]


@cache
def seeds() -> dict[type[Intent], list[Said]]:
    """What is accepted, and what a rule refuses behind a look at all before it."""
    _, ids = scene()
    found: dict[type[Intent], list[Said]] = {kind: [] for kind in KINDS}
    for one in good():
        found[one[1]].append(one)
    for case in REFUSALS:
        known = {
            name: ids.get(v, v) if isinstance(v, str) else v for name, v in case.fields.items()
        }
        sender = "operator" if case.sender == "mesh" else case.sender
        if sender in SENDERS and case.kind in found:
            found[case.kind].append((sender, case.kind, known))
    return found


@st.composite
def configs(draw: st.DrawFn, before: Mapping[str, str]) -> dict[str, str]:
    """A config with some settings changed, taken away and added."""
    config = dict(before)
    for name in draw(st.lists(st.sampled_from([*config, *SETTINGS]), max_size=3)):
        value = config.get(name, "")
        cut = draw(st.integers(0, len(value)))
        odd = draw(TEXTS)
        config[name] = draw(st.sampled_from([odd, value[:cut] + odd + value[cut:], value[:cut]]))
    for name in draw(st.lists(st.sampled_from([*config, *SINK]), max_size=1)):
        config.pop(name, None)
    return config | draw(st.dictionaries(TEXTS, TEXTS, max_size=1))


@st.composite
def said(draw: st.DrawFn) -> tuple[str, Intent]:
    """(whose key signs it, what is said): mostly what a rule looks at to its end."""
    log, _ = scene()
    kind = draw(st.sampled_from([*KINDS, *WORDY * 4]))
    candidates = seeds()[kind]
    signer, _, seed = draw(st.sampled_from([*candidates[:2] * 3, *candidates]))
    wild, names = draw(any_of(kind)), [name for name in kind.model_fields if name != "meta"]
    fields = {name: getattr(wild, name) for name in names if kind.model_fields[name].is_required()}
    fields |= seed
    if "config" in fields:
        fields["config"] = draw(configs(fields["config"]))
    for name in draw(st.lists(st.sampled_from(names), max_size=2)):
        is_text = kind.model_fields[name].annotation in (str, str | None)
        fields[name] = draw(TEXTS) if is_text and draw(st.booleans()) else getattr(wild, name)
    if draw(st.integers(0, 9)) == 0:
        signer = draw(st.sampled_from([*SENDERS]))
    about = meta(SENDERS[signer], uuid7(log.now, 9), log.now)
    if draw(st.integers(0, 9)) == 0:
        part = draw(st.sampled_from([*Meta.model_fields]))
        about = about.model_copy(update={part: getattr(wild.meta, part)})
    return signer, kind(meta=about, **fields)


def judged(image: Image, now: int, signer: str, intent: Intent, *, passes: bool) -> object:
    """Judge it as a governor does, with all checks that it asks for; the verdict."""
    offset, said_at = image.offset + 1, now + 1000
    entry = Entry(offset, now, key(signer).public, intent, None)
    image = apply(image, entry)
    found = image.intents.undecided.get(offset)
    if found is None:
        return None
    verdict = decide(image, found, said_at)
    if isinstance(verdict, Waiting):
        for check in verdict.checks:
            about = {"meta": meta(MESH_DOMAIN, uuid7(now, 99), now), "offset": offset}
            good = CheckPassed(**about, check=check, evidence={"schema_id": "7", "subject": "s"})
            bad = CheckFailed(**about, check=check, code="no", reason="no")
            event = good if passes else bad
            checked = Entry(image.offset + 1, now, key("controller").public, event, None)
            image = apply(image, checked)
        verdict = decide(image, found, said_at)
    basis = Basis(image.epoch, image.offset, said_at, image.last_decision)
    decision = decision_on(found, verdict, basis)
    assert sign(decision, key("governor")).value
    after = decided(image, decision, key("governor").public)
    assert offset not in after.intents.undecided
    list(touched_rows(after))
    derived_intents(after, "paper/1")
    return verdict


@settings(max_examples=1000)
@given(said(), st.booleans())
def test_any_intent_comes_to_a_verdict_that_can_be_carried_out(
    one: tuple[str, Intent], passes: bool
) -> None:
    log, _ = scene()
    signer, intent = one
    judged(log.image, log.now, signer, intent, passes=passes)


@pytest.mark.parametrize("one", good(), ids=lambda one: one[1].__name__)
def test_what_the_tries_begin_with_is_accepted(one: Said) -> None:
    """Else they would all end at the first refusal, and nothing be carried out."""
    log, _ = scene()
    signer, kind, fields = one
    event = log.make(kind, SENDERS[signer], **fields)
    assert judged(log.image, log.now, signer, event, passes=True) == Accepted()
