"""The dry run that `explain` and `add` share, compared with the governor's decision."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mesh_events import intents, statements
from mesh_events.codec import decode
from mesh_events.decisions import Decision, IntentRejected
from mesh_events.errors import RefusedError
from processors.clusters.kafka import Topic
from processors.controllers.checks.findings import Finding, destination_free, statement_sound
from processors.controllers.flows.partition_limit import MOST_PARTITIONS, OF_STATEMENTS
from projections.statements import DESTINATION_FREE, STATEMENT_SOUND
from self_service.cli.mesh.context import Mesh
from self_service.cli.streaming.dry_run import answer, dry_run, expiring, named, supposed
from self_service.cli.streaming.explain import _promised
from self_service.cli.streaming.wording import worded
from tests import sample_history as story
from tests.links.memory import MemoryCluster
from tests.memory_log import Fails, MemoryLog, Passes, at

FIELDS = [{"name": "ip", "type": "string"}, {"name": "qty", "type": "int"}]
AVRO = json.dumps({"type": "record", "name": "R", "fields": FIELDS})
NESTED = {"name": "n", "type": ["null", {"type": "record", "name": "N", "fields": [
    {"name": "n", "type": ["null", "N"]}]}]}  # fmt: skip
TOPICS = tuple(
    f"west.{name}" for name in ("clicks", "filled", "taken", "sql", "keyless", "nested", "nothing")
)


class Registry:
    """Every topic but `west.nothing` has a schema; `west.keyless` has none for its keys.

    A value of `west.nested` was nested without a bound before.
    """

    def versions(self, subject: str) -> dict[int, str]:
        if subject.startswith("west.nothing") or subject == "west.keyless-key":
            return {}
        if subject == "west.nested-value":
            before = {"type": "record", "name": "R", "fields": [*FIELDS, NESTED]}
            return {1: json.dumps(before), 2: AVRO}
        return {1: '"string"' if subject.endswith("-key") else AVRO}


def log_of_west() -> MemoryLog:
    """West runs a statement that fills west.filled, and has deleted another one."""
    log = MemoryLog()
    story.published(log)
    for name, out in (("west.running", "west.filled"), ("west.deleted", "west.taken-back")):
        about = {"statement": name, "stream": "west.clicks", "destination": out}
        log.say(statements.StatementAdded, "west", **story.statement(**about))
    story.settle(log)
    log.say(statements.StatementDeleted, "west", statement="west.deleted")
    story.settle(log)
    return log


def found(finding: Finding) -> Passes | Fails:
    return Fails(finding.code, finding.reason) if finding.code else Passes(finding.evidence)


def cluster_of_west() -> MemoryCluster:
    cluster = MemoryCluster("west")
    for name in TOPICS:
        cluster.create_topic(name, 1, {})
    return cluster


STATEMENTS = {
    "INSERT INTO out SELECT ip FROM clicks": "",
    "INSERT INTO out SELECT ip FROM clicks WHERE qty > 1": "",
    "INSERT INTO `west.out` SELECT c.ip FROM clicks c JOIN sql t ON c.ip = t._key": "",
    "INSERT INTO `taken-back` SELECT ip FROM clicks": "",
    "INSERT INTO out SELECT nothing FROM clicks": "unknown_column",
    "INSERT INTO out SELECT ip FROM nowhere": "unknown_topic",
    "INSERT INTO out SELECT ip FROM `east.users`": "source_not_granted",
    "INSERT INTO out SELECT nothing FROM `east.users`": "source_not_granted",
    "INSERT INTO out SELECT ip FROM `nowhere.at_all`": "source_not_granted",
    "INSERT INTO out SELECT ip FROM `nothing`": "no_schema",
    "INSERT INTO out SELECT ip FROM nested": "schema_not_usable",
    "INSERT INTO filled SELECT ip FROM clicks": "statement_exists",
    "INSERT INTO `east.out` SELECT ip FROM clicks": "foreign_topic",
    "INSERT INTO `west.x.dead` SELECT ip FROM clicks": "invalid_name",
    "INSERT INTO clicks SELECT ip FROM filled": "statement_cycle",
    "INSERT INTO taken SELECT ip FROM clicks": "target_taken",
    "INSERT INTO taken SELECT nothing FROM clicks": "unknown_column",
    "INSERT INTO out SELECT ip, ip FROM clicks": "duplicate_column",
    "INSERT INTO out SELECT ip || 'x' FROM clicks": "unnamed_column",
    "INSERT INTO out SELECT c.ip FROM clicks c JOIN sql t ON c.ip = t.ip": "join_not_on_key",
    "INSERT INTO out SELECT c.ip FROM clicks c JOIN keyless t ON c.ip = t._key": (
        "table_without_key"
    ),
}
"""Text -> the code that refuses it, "" where it is accepted."""


def test_a_text_under_another_name_is_judged_under_that_name() -> None:
    log, text = log_of_west(), "INSERT INTO filled SELECT ip FROM clicks"
    meant = worded(log.image, "west", text, {}, None, None)
    dry = answer(log.image, supposed("west.other", meant), cluster_of_west(), Registry())
    assert dry.refusal is not None
    assert dry.refusal.code == "destination_written"


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        ("clicks", "west.clicks has keys with a schema"),
        ("compacted", "west.compacted is compacted"),
        ("keyless", None),
        ("TABLE(clicks)", None),
    ],
)
def test_a_stream_whose_records_may_be_rows_is_warned_of(stream: str, why: str | None) -> None:
    """A record without a value deletes a row, and a stream passes it over."""
    log, cluster = log_of_west(), cluster_of_west()
    cluster.create_topic("west.compacted", 1, {"cleanup.policy": "compact,delete"})
    text = f"INSERT INTO out SELECT ip FROM {stream}"
    meant = worded(log.image, "west", text, {}, None, None)
    dry = answer(log.image, supposed("west.out", meant), cluster, Registry())
    assert dry.plan is not None
    told = _promised(dry.plan, meant)["without_value"]
    assert told is None if "TABLE" in stream else told.startswith("a record without a value is")
    passed = [one for one in dry.warnings if "may be rows" in one]
    if why is None:
        assert not passed
        return
    (warning,) = passed
    assert warning.startswith(f"{why}, so its records may be rows")
    assert f"FROM TABLE(west.{stream})" in warning


def test_keys_with_a_schema_are_warned_of_where_no_topic_can_be_looked_up() -> None:
    log = log_of_west()
    meant = worded(log.image, "west", "INSERT INTO out SELECT ip FROM clicks", {}, None, None)
    dry = answer(log.image, supposed("west.out", meant), None, Registry())
    assert len(dry.warnings) == 1


@pytest.mark.parametrize(
    ("config", "is_warned"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "604800000"}, True),
        ({"cleanup.policy": "delete"}, True),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, False),
        ({"cleanup.policy": "compact"}, False),
        ({"cleanup.policy": "compact,delete", "retention.ms": "604800000"}, False),
    ],
)
def test_a_table_whose_rows_expire_is_warned_of(config: dict[str, str], is_warned: bool) -> None:
    table = Topic("west.users", "id-1", 1, config)
    warning = expiring(table)
    assert (warning is not None) is is_warned
    if warning is not None:
        assert warning.startswith("west.users deletes old records (cleanup.policy=delete")
        assert "table_gap" in warning
        assert "--entity-name west.users --add-config cleanup.policy=compact" in warning


@pytest.mark.parametrize("partitions", [MOST_PARTITIONS, MOST_PARTITIONS + 1])
def test_a_text_over_many_partitions_is_accepted_if_the_workers_limit_allows_it(
    partitions: int,
) -> None:
    """The limit is the worker's setting, which nobody else can ask for."""
    log, cluster = log_of_west(), cluster_of_west()
    cluster.create_topic("west.wide", partitions, {})
    text = "INSERT INTO out SELECT c.ip FROM clicks c JOIN wide t ON c.ip = t._key"
    meant = worded(log.image, "west", text, {}, None, None)
    dry = answer(log.image, supposed("west.out", meant), cluster, Registry())
    assert dry.refusal is None
    told = f"accepted, if the worker's {OF_STATEMENTS} is {partitions} or more"
    if partitions > MOST_PARTITIONS:
        assert dry.text.startswith(told)
        assert "west.wide" in dry.text
    else:
        assert dry.text == "accepted"


@pytest.mark.parametrize("begin", [0, 2])
def test_a_table_whose_stream_lost_records_comes_back_in_neither(begin: int) -> None:
    log, cluster = log_of_west(), cluster_of_west()
    cluster.create_topic("west.rows", 1, {})
    cluster.create_topic("west.rows.dead", 1, {})
    text = "INSERT INTO rows SELECT ip FROM TABLE(clicks)"
    log.checks = {DESTINATION_FREE: Passes({"found": "nothing"})}
    meant = worded(log.image, "west", text, {}, None, None)
    about = {"statement": "west.rows", "destination": meant.destination, **meant.fields()}
    log.say(statements.StatementAdded, "west", **about)
    story.settle(log)
    log.say(statements.StatementDeleted, "west", statement="west.rows")
    story.settle(log)
    filled = replace(
        log.image.statements["west.rows"],
        destination_topic_id=cluster.topic("west.rows").id,  # type: ignore[union-attr]  # made above
        stream_topic_id=cluster.topic("west.clicks").id,  # type: ignore[union-attr]
    )
    image = log.image._replace(statements=log.image.statements.set("west.rows", filled))
    first = cluster.topics["west.clicks"].partitions[0]
    for _ in range(3):
        first.append(None, b"")
    first.expire(begin)
    intent = supposed("west.rows", meant)
    dry = answer(image, intent, cluster, Registry(), cluster)
    governors = destination_free(intent, cluster, filled, cluster, cluster)
    assert (dry.refusal.code if dry.refusal else "") == governors.code
    assert governors.code == ("rows_differ" if begin else "")


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_dry_run_answers_as_the_governor_decides(text: str) -> None:
    cluster, registry, log = cluster_of_west(), Registry(), log_of_west()
    meant = worded(log.image, "west", text, {}, None, None)
    intent = supposed(named(log.image, "west", meant), meant)
    dry = answer(log.image, intent, cluster, registry)
    before = log.image.statements.get(intent.statement)
    log.checks = {
        STATEMENT_SOUND: found(
            statement_sound(intent, intent.destination, cluster, registry)  # type: ignore[arg-type]  # only versions are asked
        ),
        DESTINATION_FREE: found(destination_free(intent, cluster, before)),
    }
    offset = log.say(statements.StatementAdded, "west", statement=intent.statement,
                     destination=intent.destination, **meant.fields())  # fmt: skip
    log.govern()
    verdict = decided(log, offset)
    assert (dry.refusal.code if dry.refusal else "") == verdict == STATEMENTS[text]
    assert dry.text.startswith("refused, " if verdict else "accepted")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nosuch.report", "not_your_domain"),
        ("clicks.v2", "not_your_domain"),
        ("east.report", "not_your_domain"),
        ("x.", "invalid_name"),
        (".x", "invalid_name"),
        ("../x", "invalid_name"),
    ],
)
def test_a_name_of_no_domain_or_of_another_is_refused_before_anything_is_looked_up(
    name: str, code: str, tmp_path: Path
) -> None:
    log = log_of_west()
    meant = worded(log.image, "west", "INSERT INTO out SELECT ip FROM clicks", {}, None, None)
    intent = supposed(name, meant, sender="west")
    dry = dry_run(Mesh(tmp_path / "nowhere"), log.image, intent, meant)
    offset = log.say(statements.StatementAdded, "west", statement=name,
                     destination=intent.destination, **meant.fields())  # fmt: skip
    log.govern()
    assert dry.refusal is not None
    assert dry.refusal.code == decided(log, offset) == code
    assert dry.by_governor


def decided(log: MemoryLog, offset: int) -> str:
    """The code of the decision on a record, "" if it was accepted."""
    events = (decode(one, log.image.schemas, log.image.identity.root).event for one in log.records)
    [decision] = [one for one in events if isinstance(one, Decision) and one.offset == offset]
    return decision.code if isinstance(decision, IntentRejected) else ""


@pytest.mark.parametrize(("skew", "code"), [(0, ""), (3_600_000, "domain_frozen")])
def test_a_freeze_ends_for_the_dry_run_as_for_the_governor(skew: int, code: str) -> None:
    """It has ended by every clock, unless clocks disagree."""
    log = log_of_west()
    until = at(log.now + 60_000)
    log.operator(intents.DomainFrozen, domain="west", until=until, reason="to look")
    log.govern()
    meant = worded(log.image, "west", "INSERT INTO out SELECT ip FROM clicks", {}, None, None)
    image = log.image._replace(skew=skew)
    dry = answer(image, supposed("west.later", meant), cluster_of_west(), Registry())
    assert (dry.refusal.code if dry.refusal else "") == code


@pytest.mark.parametrize(
    ("source", "code"), [("clicks", ""), ("`east.users`", "source_not_granted")]
)
def test_a_text_without_a_destination_is_judged_as_if_it_had_one(source: str, code: str) -> None:
    log = log_of_west()
    meant = worded(log.image, "west", f"SELECT ip FROM {source}", {}, None, None)
    intent = supposed(named(log.image, "west", meant), meant)
    dry = answer(log.image, intent, cluster_of_west(), Registry())
    assert (dry.refusal.code if dry.refusal else "") == code


WINDOWED = [
    "SELECT window.start, ip, sum(qty) AS n FROM clicks GROUP BY window(at, '1 minute'), ip",
    "SELECT window.start AS s FROM clicks GROUP BY window(at, '1 minute')",
    "SELECT ip FROM clicks GROUP BY ip",
    "SELECT count(*) AS n FROM clicks",
    "SELECT ip FROM TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE)",
    "SELECT ip FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(at), INTERVAL '1' MINUTE))",
    "SELECT TUMBLE_START(at, INTERVAL '1' MINUTE) AS s FROM clicks",
    "SELECT HOP_END(at, INTERVAL '1' MINUTE) AS s FROM clicks",
    "SELECT ip FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY ip",
]


@pytest.mark.parametrize("text", WINDOWED)
def test_windows_and_aggregates_are_refused_with_place_and_next_step(text: str) -> None:
    log = log_of_west()
    with pytest.raises(RefusedError) as told:
        worded(log.image, "west", f"INSERT INTO out {text}", {}, None, None)
    assert told.value.code == "sql_not_supported"
    assert str(told.value).startswith("line 1, column ")
    assert "windows and aggregates are not supported" in str(told.value)
    assert "application" in str(told.value)
