"""What a domain says about a statement happens, exactly, whatever dies meanwhile."""

import os
import signal
from collections.abc import Callable

import pytest

from mesh_events.intents import DomainQuarantined, DomainReleased
from mesh_events.rows import StatementState
from mesh_events.statements import (
    Begin,
    StatementAdded,
    StatementDeleted,
    StatementStarted,
    StatementUpdated,
)
from processors.clusters.kafka import KafkaAdmin
from tests.integration.sql.records import bare
from tests.integration.statements.conftest import CLICK, PARTITIONS, ROW, USER_KEY, Stage, framed
from tests.mesh_kit import Mesh, eventually

pytestmark = [pytest.mark.platform, pytest.mark.slow]

JOIN = "SELECT c.number, u.name FROM clicks c JOIN users u ON c.userid = u.userid"


def joined(stage: Stage) -> dict[str, object]:
    return {
        "tables": [stage.users],
        "names": {"clicks": stage.clicks, "users": stage.users},
    }


def readable(stage: Stage, *, known: set[int]) -> dict[int, list[int]]:
    """What has to come out: clicks that can be read, of users who are known, in their order."""
    return {
        partition: [
            number
            for number, userid, place in stage.clicked
            if place == partition and userid in known and number % 100 != 57
        ]
        for partition in range(PARTITIONS)
    }


def assert_dead_letters(stage: Stage) -> None:
    """Every record that cannot be read is there, once, as it was, with its reason."""
    dead = stage.landed(f"{stage.out}.dead")
    told = sorted(number for number, *_ in stage.clicked if number % 100 == 57)
    assert sorted(one.value for one in dead) == sorted(b"poison %d" % number for number in told)
    assert all(one.headers["mesh.reason"] for one in dead)


def test_a_join_loses_and_doubles_nothing_when_its_server_is_killed(
    stage: Stage, spark_pid: Callable[[], int | None]
) -> None:
    everybody = list(range(40))
    known = {userid for userid in everybody if userid % 4}
    stage.know({userid: f"user {userid}" for userid in known})
    stage.click(range(4000), everybody)
    stage.add(JOIN, **joined(stage))
    for turn in range(1, 4):
        before = sum(stage.ends(stage.out).values())
        stage.click(range(turn * 4000, turn * 4000 + 4000), everybody)
        eventually(lambda before=before: sum(stage.ends(stage.out).values()) > before, "it runs")
        victim = spark_pid()
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        eventually(lambda victim=victim: spark_pid() not in (None, victim), "a new server")
    expected = readable(stage, known=known)
    stage.until_landed(sum(map(len, expected.values())))
    stage.stop()

    assert stage.numbers() == expected
    assert_dead_letters(stage)
    assert stage.kit.image().statements[stage.statement].incarnation > 1


def test_a_stopped_statement_goes_on_where_it_stood(stage: Stage, kit: Mesh) -> None:
    stage.click(range(200), [1])
    stage.add("SELECT number FROM clicks WHERE number % 2 = 0", names={"clicks": stage.clicks})
    stage.until_landed(100)
    stage.stop()
    stage.click(range(200, 400), [1])
    assert sum(stage.ends(stage.out).values()) == 100
    rights = {
        binding
        for topic in (stage.clicks, stage.out, f"{stage.out}.dead")
        for binding in acls_of(kit, topic)
    }
    assert not [one for one in rights if "mesh.sql." in one]
    stage.start()
    stage.until_landed(200)
    stage.stop()
    assert stage.numbers() == {0: [n for n in range(400) if n % 2 == 0 and n % 100 != 57], 1: []}


def test_a_table_goes_on_as_a_table(
    stage: Stage, kit: Mesh, spark_pid: Callable[[], int | None]
) -> None:
    """What fills from the latest row of each key is right after any stop, and forgets no end."""
    stage.know({1: "one", 2: "two", 3: "three"})
    stage.add(
        "SELECT userid, upper(name) AS name FROM TABLE(users) WHERE name <> 'nobody'",
        stream=stage.users,
        names={"users": stage.users},
    )
    eventually(lambda: stage.ends(stage.out, 1)[0] == 3, "the rows are there")
    victim = spark_pid()
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    stage.know({2: "nobody", 3: None, 1: "first"})
    eventually(lambda: stage.ends(stage.out, 1)[0] >= 6, "their changes are there")
    landed = stage.landed(stage.out, 1)
    assert len(landed) == 6
    rows = {one.key: one.value for one in landed}
    known = {
        framed(stage.ids["key"], bare(USER_KEY, {"userid": userid})): userid for userid in (1, 2, 3)
    }
    assert {known[key]: value is not None for key, value in rows.items()} == {
        1: True,
        2: False,
        3: False,
    }
    assert next(value for key, value in rows.items() if known[key] == 1).endswith(b"FIRST")
    made = KafkaAdmin("east", kit.endpoints.administration("east")).topic(stage.out)
    assert made is not None
    assert made.config["cleanup.policy"] == "compact"


def test_rows_that_would_be_others_by_a_new_schema_stop_a_table(stage: Stage) -> None:
    stage.know({1: "one", 2: "two"})
    said = {"stream": stage.users, "names": {"users": stage.users}}
    stage.add("SELECT * FROM TABLE(users)", **said)
    eventually(lambda: stage.ends(stage.out, 1)[0] == 2, "the rows are there")
    userid, name = ROW["fields"]
    renamed = {**ROW, "fields": [userid, {**name, "name": "called", "aliases": ["name"]}]}
    stage.unchecked(f"{stage.users}-value")
    number = stage.register(f"{stage.users}-value", renamed)
    key = framed(stage.ids["key"], bare(USER_KEY, {"userid": 2}))
    value = framed(number, bare(renamed, {"userid": 2, "called": "second"}))
    stage.producer.produce(stage.users, value, key)
    assert stage.producer.flush(20) == 0
    failed = stage.wait_for(
        lambda one: one.failure_code not in (None, "query_failed"), "its rows would differ"
    )
    assert failed.failure_code == "rows_differ"
    assert "User.called is name of earlier records" in (failed.failure or "")
    assert stage.ends(stage.out, 1)[0] == 2


def acls_of(kit: Mesh, topic: str) -> list[str]:
    """Principals with rights on a topic."""
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    every = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    admin = kit.admin()
    return [one.principal for one in admin.describe_acls(every).result(15)]


def test_an_updated_statement_goes_on_with_its_new_text(stage: Stage) -> None:
    names = {"clicks": stage.clicks}
    stage.click(range(50), [1])
    stage.add("SELECT number FROM clicks", names=names)
    stage.until_landed(50)
    said = {"stream": stage.clicks, "names": names}
    stage.say(StatementUpdated, sql="SELECT number, userid FROM clicks WHERE number <> 60", **said)
    stage.until_active()
    stage.click(range(50, 100), [1])
    expected = [number for number in range(100) if number not in (57, 60)]
    stage.until_landed(len(expected))
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == expected

    stage.say(StatementUpdated, sql="SELECT cast(number AS STRING) AS number FROM clicks", **said)
    failed = stage.wait_for(lambda one: one.state is StatementState.FAILED, "it fails")
    assert failed.failure_code == "incompatible_schema"


def test_a_newer_schema_of_the_stream_is_read_and_garbage_is_not(stage: Stage) -> None:
    """A record in a schema that was registered after the start is no dead letter."""
    stage.click(range(10), [1])
    stage.add("SELECT number FROM clicks", names={"clicks": stage.clicks})
    stage.until_landed(10)
    newer = {
        **CLICK,
        "fields": [*CLICK["fields"], {"name": "agent", "type": "string", "default": ""}],
    }
    number = stage.register(f"{stage.clicks}-value", newer)
    for click in range(10, 20):
        value = bare(newer, {"number": click, "userid": 1, "agent": "curl"})
        stage.put(click, 1, framed(number, value))
    nobodys = framed(999_999, bare(CLICK, {"number": 57, "userid": 1}))
    stage.put(57, 1, nobodys)
    assert stage.producer.flush(20) == 0
    stage.until_landed(20)
    eventually(lambda: len(stage.landed(f"{stage.out}.dead")) == 1, "a dead letter")
    assert stage.landed(f"{stage.out}.dead")[0].value == nobodys
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(20))


def test_a_source_that_changes_incompatibly_stops_the_statement_with_the_field(
    stage: Stage,
) -> None:
    """Somebody has switched the check off and registered it all the same."""
    stage.click(range(10), [1])
    stage.add("SELECT number, userid FROM clicks", names={"clicks": stage.clicks})
    stage.until_landed(10)
    other = {**CLICK, "fields": [CLICK["fields"][0], {"name": "userid", "type": "string"}]}
    stage.unchecked(f"{stage.clicks}-value")
    number = stage.register(f"{stage.clicks}-value", other)
    stage.put(10, 1, framed(number, bare(other, {"number": 10, "userid": "one"})))
    assert stage.producer.flush(20) == 0
    failed = stage.wait_for(
        lambda one: one.failure_code not in (None, "query_failed"), "its result would differ"
    )
    assert failed.failure_code == "incompatible_schema"
    assert "userid: int was written" in (failed.failure or "")
    # a text that keeps what came out goes on with the record that it stopped at
    sql = "SELECT number, cast(userid AS INT) AS userid FROM clicks"
    stage.say(StatementUpdated, sql=sql, stream=stage.clicks, names={"clicks": stage.clicks})
    stage.until_landed(11)
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(11))


def test_who_begins_at_the_latest_record_passes_over_those_before(stage: Stage) -> None:
    stage.click(range(20), [1])
    names = {"clicks": stage.clicks}
    stage.add("SELECT number FROM clicks", names=names, begin=Begin.LATEST)
    stage.click(range(20, 30), [1])
    stage.until_landed(10)
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(20, 30))


def test_a_statement_reads_another_domains_product_as_long_as_it_is_granted(
    stage: Stage, kit: Mesh
) -> None:
    owner = kit.register_domain("owner")
    theirs = Stage(kit, owner)
    product = f"{owner.name}.clicks"
    kit.accepted(owner.publish(product, theirs.clicks))
    application = stage.domain.application()
    refused = stage.domain.say(
        StatementAdded, statement=stage.statement, sql="SELECT number FROM clicks",
        names={"clicks": theirs.clicks}, stream=theirs.clicks, destination=stage.out,
        application=application.name,
    )  # fmt: skip
    assert kit.code(refused) == "source_not_granted"
    request = stage.domain.request(product, application.name)
    owner.grant(product, request)
    theirs.click(range(20), [1])
    stage.offsets = theirs.offsets
    stage.add(
        "SELECT number FROM clicks",
        names={"clicks": theirs.clicks},
        stream=theirs.clicks,
        application=application.name,
    )
    stage.until_landed(20)

    owner.revoke(product, request)
    failed = stage.wait_for(lambda one: one.state is StatementState.FAILED, "it ends")
    assert failed.failure_code == "source_not_granted"
    assert not [one for one in acls_of(kit, theirs.clicks) if "mesh.sql." in one]
    theirs.click(range(20, 40), [1])
    assert sum(stage.ends(stage.out).values()) == 20

    owner.grant(product, stage.domain.request(product, application.name))
    stage.until_landed(40)
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(40))


def test_a_statement_of_a_domain_in_quarantine_stands_still_until_its_release(
    stage: Stage, kit: Mesh
) -> None:
    stage.click(range(10), [1])
    stage.add("SELECT number FROM clicks", names={"clicks": stage.clicks})
    stage.until_landed(10)
    said = {"domain": stage.domain.name, "reason": "a laptop was stolen"}
    operator = kit.operator
    stage.click(range(10, 20), [1])
    kit.accepted(operator.emit(DomainQuarantined(meta=operator.meta(), **said)))
    try:
        failed = stage.wait_for(lambda one: one.state is StatementState.FAILED, "it ends")
        assert failed.failure_code == "domain_quarantined"
        assert not [one for one in acls_of(kit, stage.out) if "mesh.sql." in one]
    finally:
        kit.accepted(operator.emit(DomainReleased(meta=operator.meta(), **said)))
    stage.until_active()
    kit.wait_for(
        lambda image: image.identity.domains[stage.domain.name].rights, "its rights are back"
    )
    stage.until_landed(20)
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(20))


def test_a_dropped_statement_leaves_its_topic_and_nothing_else(stage: Stage, kit: Mesh) -> None:
    stage.click(range(10), [1])
    stage.add("SELECT number FROM clicks", names={"clicks": stage.clicks})
    stage.until_landed(10)
    stage.say(StatementDeleted)
    stage.wait_for(lambda one: one.state is StatementState.DELETED, "it is deleted")
    assert sum(stage.ends(stage.out).values()) == 10
    for topic in (stage.clicks, stage.out, f"{stage.out}.dead"):
        assert not [one for one in acls_of(kit, topic) if "mesh.sql." in one]
    other = stage.domain.say(
        StatementAdded, statement=f"{stage.statement}-2", sql="SELECT number FROM clicks",
        names={"clicks": stage.clicks}, stream=stage.clicks, destination=stage.out,
    )  # fmt: skip
    assert kit.code(other) == "target_taken"


def drop(stage: Stage) -> None:
    stage.say(StatementDeleted)
    stage.wait_for(lambda one: one.state is StatementState.DELETED, "it is deleted")


def test_one_that_was_dropped_comes_back_to_its_product_and_goes_on(
    stage: Stage, kit: Mesh
) -> None:
    text = {"sql": "SELECT number FROM clicks", "names": {"clicks": stage.clicks}}
    stage.click(range(50, 60), [1])  # one of them cannot be read
    stage.add(**text)
    stage.until_landed(9)
    kit.accepted(stage.domain.publish(f"{stage.out}-product", stage.out))
    drop(stage)
    stage.click(range(60, 80), [1])
    stage.add(**text)
    stage.until_landed(29)
    assert stage.numbers() == readable(stage, known={1})
    assert_dead_letters(stage)

    stage.stop()
    stage.producer.produce(stage.out, b"strange", partition=0)
    assert stage.producer.flush(20) == 0
    stage.say(StatementStarted)
    failed = stage.wait_for(lambda one: one.state is StatementState.FAILED, "it sees the stranger")
    assert failed.failure_code == "destination_foreign"
    assert "delete the statement and add it again" in (failed.failure or "")
    drop(stage)
    stage.click(range(80, 90), [1])
    stage.add(**text)
    eventually(lambda: sum(stage.ends(stage.out).values()) == 40, "each came out once")
    values = [one for one in stage.landed(stage.out) if one.value != b"strange"]
    assert sorted(map(stage.number_of, values)) == [n for n in range(50, 90) if n != 57]
    assert_dead_letters(stage)


def test_one_that_was_dropped_comes_back_with_a_stream_that_was_made_again(
    stage: Stage, kit: Mesh
) -> None:
    text = {"sql": "SELECT number FROM clicks", "names": {"clicks": stage.clicks}}
    stage.click(range(10), [1])
    stage.add(**text)
    stage.until_landed(10)
    stage.make_stream_again()
    stage.click(range(10, 14), [1])
    recreated = stage.wait_for(lambda one: one.failure_code == "source_recreated", "it is told")
    assert "delete the statement and add it again" in (recreated.failure or "")
    drop(stage)
    stage.add(**text)
    eventually(lambda: sum(stage.ends(stage.out).values()) == 14, "the new ones are there")
    # another start of it finds what it has written since
    stage.stop()
    stage.start()
    stage.click(range(14, 20), [1])
    eventually(lambda: sum(stage.ends(stage.out).values()) == 20, "all is there, once")
    found = stage.numbers()
    assert sorted(found[0] + found[1]) == list(range(20))


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT nope FROM clicks", "unknown_column"),
        ("SELECT number FROM elsewhere", "sql_differs"),
        ("SELECT count(*) AS n FROM clicks", "sql_not_supported"),
        ("SELECT", "sql_syntax"),
    ],
)
def test_a_text_that_cannot_run_is_refused_with_its_code(
    stage: Stage, kit: Mesh, sql: str, code: str
) -> None:
    said = stage.domain.say(
        StatementAdded, statement=stage.statement, sql=sql, names={"clicks": stage.clicks},
        stream=stage.clicks, destination=stage.out,
    )  # fmt: skip
    assert kit.code(said) == code


def test_what_only_spark_can_refuse_fails_and_nothing_is_made(stage: Stage, kit: Mesh) -> None:
    stage.say(
        StatementAdded, sql="SELECT number + map('a', 1) AS n FROM clicks",
        names={"clicks": stage.clicks}, stream=stage.clicks, destination=stage.out,
    )  # fmt: skip
    failed = stage.wait_for(lambda one: one.state is StatementState.FAILED, "it fails")
    assert failed.failure_code == "wrong_type"
    assert "line 1, column 8" in (failed.failure or "")
    admin = kit.admin()
    assert stage.out not in admin.list_topics(timeout=15).topics
