"""`sdm streaming sql` and `sdm lineage` on a running mesh: what is typed, and what happens."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from local_platform import Endpoints
from self_service.cli.framework.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, consumer, filled, owner, published, sdm
from tests.kafka_client import eventually, fresh, register_schema

__all__ = ["consumer", "owner", "sdm"]
pytestmark = pytest.mark.platform


@pytest.mark.long
def test_a_statement_from_explain_to_drop(sdm: Sdm, owner: Party, tmp_path: Path) -> None:
    clicks, out = fresh("clicks"), fresh("out")
    as_owner = ("-d", owner.name)
    made = ("--kind", "clickstream", "--count", "300", "--fast", "--users", "9", "-p", "2")
    sdm("generate", f"{owner.name}.{clicks}", *made, *as_owner)
    found = sdm("topic", "consume", f"{owner.name}.{clicks}", *as_owner).lines
    kept = "CAST(status AS int) >= 400"
    text = f"INSERT INTO `{out}` SELECT ip, userid, status FROM `{clicks}` WHERE {kept}"
    wanted = [one for one in found if int(one["value"]["status"]) >= 400]

    explained = sdm("streaming", "sql", "explain", text, *as_owner).document
    assert explained["would_be"] == "accepted"
    assert explained["destination"] == f"{owner.name}.{out}"
    assert [one["column"] for one in explained["columns"]] == ["ip", "userid", "status"]
    assert [one["type"] for one in explained["columns"]] == ["string", "int", "string"]
    assert explained["sources"][0]["topic"] == f"{owner.name}.{clicks}"
    assert "Physical Plan" in explained["spark_plan"]
    unknown = f"SELECT abss(bytes) AS x FROM `{clicks}`"
    told = sdm("streaming", "sql", "explain", unknown, *as_owner, code=ExitCode.REFUSED)
    assert "line 1, column " in told.err
    assert "stacktrace" not in told.err
    assert not sdm("streaming", "sql", "list", "--of", owner.name).document

    name, file = f"{owner.name}.{out}", tmp_path / "errors.sql"
    file.write_text(text)
    added = sdm("streaming", "sql", "add", out, "-f", str(file), *as_owner, "--timeout", "240")
    assert added.document["state"] == "ACTIVE"
    filled = f"{owner.name}.{out}"
    refused_beside(sdm, owner, clicks, out)

    def lag() -> object:
        return sdm("streaming", "sql", "ps", "--of", owner.name).document[0]["lag"]

    eventually(
        lambda: len(sdm("topic", "consume", filled, *as_owner).lines) == len(wanted), "it is there"
    )
    result = sdm("topic", "consume", filled, *as_owner).lines
    columns = ("ip", "userid", "status")
    assert sorted(tuple(one["value"][c] for c in columns) for one in result) == sorted(
        tuple(one["value"][c] for c in columns) for one in wanted
    )
    assert isinstance(lag(), int)
    source = f"{owner.name}.{clicks}"
    for words in (("produce", filled, "--raw", "--value", "x"), ("delete", source, "--yes")):
        told = sdm("topic", *words, *as_owner, code=ExitCode.REFUSED)
        assert "topic_in_use" in told.err
        assert f"statement {name}" in told.err

    stops_and_goes_on(sdm, owner, out)

    newer = updated(sdm, owner, out, text, wanted)
    described = sdm("streaming", "sql", "describe", name).document
    assert (described["sql"], described["state"]) == (newer, "ACTIVE")

    shown = sdm("lineage", "show", filled, "--upstream", "--columns").document
    (step,) = shown["upstream"]
    assert (step["job"], step["name"]) == ("statement", name)
    assert step["columns"]["bytes"] == [f"{owner.name}.{clicks}.bytes"]
    assert step["from"][0]["topic"] == f"{owner.name}.{clicks}"

    deleted = sdm("streaming", "sql", "delete", out, *as_owner).document
    assert deleted["state"] == "DELETED"
    assert not sdm("streaming", "sql", "list", "--of", owner.name).document
    assert len(sdm("topic", "consume", filled, *as_owner).lines) == len(wanted)
    comes_back(sdm, owner, out, newer, len(wanted))


@pytest.mark.long
def test_a_statement_over_a_copy_of_anothers_product_is_updated_by_comparison(
    sdm: Sdm, owner: Party, consumer: Party, tmp_path: Path
) -> None:
    """Only the application with the grant may read the copy; what comes out last is of the start.

    So how far both texts have come is known from the log alone, within the default of --timeout.
    """
    users, out, application = filled(sdm, tmp_path, owner), fresh("out"), f"{consumer.name}.app"
    published(sdm, users, owner)
    as_consumer = ("-d", consumer.name)
    sdm("application", "register", application, *as_consumer)
    asked = sdm("access", "request", users, application, "--reason", "figures", *as_consumer)
    granting = ("--until", "active", "--timeout", "240", "-d", owner.name)
    sdm("access", "grant", asked.document["request"], *granting)
    reading = f"SELECT userid, phone FROM `{users}` WHERE"
    sdm("streaming", "sql", "add", out, f"INSERT INTO `{out}` {reading} userid < 3", *as_consumer)
    update = ("streaming", "sql", "update", out)
    tried = sdm(*update, f"{reading} userid < 2", *as_consumer, code=ExitCode.REFUSED)
    assert "2 records compared: 1 the same, 0 changed, 1 come out no more" in tried.err
    assert "its results would differ" in tried.err
    same = f"{reading} userid < 3 AND userid > 0"
    assert sdm(*update, same, *as_consumer).document["state"] == "ACTIVE"
    sdm("streaming", "sql", "delete", out, *as_consumer)


def stops_and_goes_on(sdm: Sdm, owner: Party, out: str) -> None:
    as_owner = ("-d", owner.name)
    stopped = sdm("streaming", "sql", "stop", out, *as_owner, "--reason", "a pause").document
    assert stopped["state"] == "STOPPED"
    again = sdm("streaming", "sql", "stop", out, *as_owner, code=ExitCode.REFUSED)
    assert "not_running" in again.err
    assert sdm("streaming", "sql", "restart", out, *as_owner).document["state"] == "ACTIVE"


def comes_back(sdm: Sdm, owner: Party, out: str, newer: str, count: int) -> None:
    """A deleted statement goes on in its topic, and `explain` tells so beforehand."""
    name, as_owner = f"{owner.name}.{out}", ("-d", owner.name)
    newer = f"INSERT INTO `{out}` {newer}"
    explain = ("streaming", "sql", "explain", newer, "--no-spark", *as_owner)
    assert sdm(*explain).document["would_be"].startswith(f"accepted: {name} was deleted")
    then = datetime.now(UTC).isoformat()
    lineage = ("lineage", "show", name, "--upstream")
    back = sdm("streaming", "sql", "add", out, newer, *as_owner)
    assert [one["name"] for one in sdm(*lineage).document["upstream"]] == [name]
    [step] = sdm(*lineage, "--as-of", then).document["upstream"]
    assert (step["name"], step["state"]) == (name, "DELETED")
    assert back.document["state"] == "ACTIVE"
    assert f"continues to fill {name}" in back.err
    assert len(sdm("topic", "consume", name, *as_owner).lines) == count
    told = sdm(*explain, code=ExitCode.REFUSED)
    assert "statement_exists" in told.document["would_be"]
    assert "statement_exists" in told.err
    wrong = newer.replace("SELECT ip", "SELECT map('a', 1) + 1 AS ip")
    told = sdm("streaming", "sql", "add", "another", wrong.replace(out, f"{out}2"), *as_owner,
               code=ExitCode.REFUSED)  # fmt: skip
    assert "line 1, column " in told.err
    assert f"{owner.name}.another" not in str(sdm("streaming", "sql", "list").document)


def refused_beside(sdm: Sdm, owner: Party, clicks: str, out: str) -> None:
    """What cannot be beside a statement that fills `out` from `clicks` is told before."""
    for back, code in (
        (f"INSERT INTO `{clicks}` SELECT ip FROM `{out}`", "statement_cycle"),
        (f"INSERT INTO `{out}` SELECT ip FROM `{clicks}`", "destination_written"),
        (f"INSERT INTO y SELECT c.ip FROM `{out}` c JOIN `{out}` d ON c.ip = d.ip", "join_not_on"),
        (f"INSERT INTO y SELECT ip FROM `{clicks}` WHERE status > 1", "wrong_type"),
    ):
        for words in (("add", "another"), ("explain", "--name", "another")):
            asked = ("streaming", "sql", *words, back, "-d", owner.name)
            assert code in sdm(*asked, code=ExitCode.REFUSED).err
    text = f"INSERT INTO y SELECT ip FROM `{clicks}` WHERE status > 1"
    asked = ("streaming", "sql", "explain", text, "--no-spark", "-d", owner.name)
    assert sdm(*asked).document["types"].startswith("not checked")


def updated(sdm: Sdm, owner: Party, out: str, text: str, wanted: list[Any]) -> str:
    """A new text runs beside the present one before it takes its place; the text that does."""
    update, as_owner = ("streaming", "sql", "update", out), ("-d", owner.name)
    name, clicks = f"{owner.name}.{out}", text.partition("FROM ")[2].partition(" ")[0]
    described = ("streaming", "sql", "describe", name)
    wrong = sdm(*update, f"SELECT nothing FROM {clicks}", *as_owner, code=ExitCode.REFUSED)
    assert "unknown_column" in wrong.err
    other = f"SELECT ip, CAST(userid AS STRING) AS userid, status FROM {clicks}"
    broken = sdm(*update, other, *as_owner, "--no-compare", code=ExitCode.REFUSED)
    assert "incompatible_schema" in broken.err
    assert "userid: " in broken.err
    assert sdm(*described).document["state"] == "ACTIVE"
    assert sdm(*described).document["sql"] == text
    newer = f"SELECT ip, userid, status, bytes FROM {clicks} WHERE CAST(status AS int) >= 406"
    tried = sdm(*update, newer, *as_owner, "--timeout", "240", code=ExitCode.REFUSED)
    fewer = len([one for one in wanted if int(one["value"]["status"]) >= 406])
    assert f"{fewer} the same" in tried.err
    assert f"{len(wanted) - fewer} only from the current text" in tried.err
    assert "new columns: bytes" in tried.err
    assert "not_confirmed" in tried.err
    assert sdm(*described).document["sql"] == text
    left = [one["topic"] for one in sdm("topic", "list", *as_owner).document]
    assert not [one for one in left if "trial" in one]
    listed = sdm("streaming", "sql", "list", "--of", owner.name).document
    assert [one["statement"] for one in listed] == [name]

    newer = f"SELECT ip, userid, status, bytes FROM {clicks} WHERE CAST(status AS int) >= 400"
    switched = sdm(*update, newer, *as_owner, "--yes", "--timeout", "240").document
    assert switched["state"] == "ACTIVE"
    # what came out before has no bytes: the present text is tried anew, and not what it found there
    again = newer.replace("400", "406")
    tried = sdm(*update, again, *as_owner, "--timeout", "240", code=ExitCode.REFUSED)
    assert (
        f"{fewer} the same, 0 changed, {len(wanted) - fewer} only from the current text"
        in tried.err
    )
    assert "new columns" not in tried.err
    left = [one["topic"] for one in sdm("topic", "list", *as_owner).document]
    assert not [one for one in left if "trial" in one or "present" in one]
    return newer


REFUSED = {
    "INSERT INTO x SELECT ip FROM nowhere": "unknown_topic",
    "INSERT INTO x SELECT ip FROM nowhere.at_all": "source_not_granted",
    "INSERT INTO elsewhere.x SELECT ip FROM {clicks}": "foreign_topic",
    "INSERT INTO {clicks} SELECT ip FROM {clicks}": "statement_cycle",
    "INSERT INTO x SELECT nothing FROM {clicks}": "unknown_column",
    "INSERT INTO x SELECT abs(ip FROM {clicks}": "sql_syntax",
    "INSERT INTO x SELECT abss(ip) AS y FROM {clicks}": "unknown_function",
    "INSERT INTO x SELECT map('a', 1) + 1 AS y FROM {clicks}": "wrong_type",
    "INSERT INTO x SELECT count(*) AS n FROM {clicks} GROUP BY window(at, '1 minute')": (
        "sql_not_supported"
    ),
    "INSERT INTO x SELECT ip FROM TUMBLE(TABLE {clicks}, DESCRIPTOR(at), INTERVAL '1' MINUTE)": (
        "sql_not_supported"
    ),
    "INSERT INTO {taken} SELECT ip FROM {clicks}": "target_taken",
}
"""Text -> the code with which both `explain` and `add` refuse it."""


def test_explain_and_add_refuse_a_statement_with_the_same_code(sdm: Sdm, owner: Party) -> None:
    clicks, taken, as_owner = fresh("clicks"), fresh("taken"), ("-d", owner.name)
    made = ("--kind", "clickstream", "--count", "3", "--fast", "-p", "1")
    for topic in (clicks, taken):
        sdm("generate", f"{owner.name}.{topic}", *made, *as_owner)
    for text, code in REFUSED.items():
        sql = text.format(clicks=f"`{clicks}`", taken=f"`{taken}`")
        for words in (("explain", "--name", "x"), ("add", "x")):
            answer = sdm("streaming", "sql", *words, sql, *as_owner, code=ExitCode.REFUSED)
            assert f"refused ({code})" in answer.err, (words, sql)
    ungranted = ("streaming", "sql", "explain", "SELECT ip FROM nowhere.at_all", *as_owner)
    assert "source_not_granted" in sdm(*ungranted, code=ExitCode.REFUSED).err
    assert not sdm("streaming", "sql", "list", "--of", owner.name).document


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("add", "x"), ExitCode.USAGE, "give the SQL"),
        (("add", "x", "SELECT ip FROM clicks"), ExitCode.USAGE, "no destination"),
        (("add", "x", "SELECT"), ExitCode.REFUSED, "sql_syntax"),
        (("add", "x", "SELECT ip FROM clicks", "--source", "clicks"), ExitCode.USAGE, "NAME=TOPIC"),
        (
            ("add", "x", "SELECT ip FROM clicks", "--source", "other=y"),
            ExitCode.USAGE,
            "no source called other",
        ),
        (("add", "x", "-f", "/nowhere.sql"), ExitCode.USAGE, "/nowhere.sql"),
        (("stop", "nothing"), ExitCode.NOT_FOUND, "there is no statement"),
        (("describe", "nothing.at-all"), ExitCode.NOT_FOUND, "there is no statement"),
        (
            ("add", "x", "INSERT INTO x SELECT ip FROM nowhere.at_all"),
            ExitCode.REFUSED,
            "source_not_granted",
        ),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    sdm: Sdm, owner: Party, words: tuple[str, ...], code: ExitCode, told: str
) -> None:
    domain = () if words[0] == "describe" else ("-d", owner.name)
    answer = sdm("streaming", "sql", *words, *domain, code=code)
    assert told in answer.err
    assert "Traceback" not in answer.err


def test_a_description_that_utf_8_cannot_hold_ends_no_statement(
    sdm: Sdm, owner: Party, mesh: Endpoints
) -> None:
    """Half of a surrogate pair, which JSON can spell."""
    name, out = fresh("said"), fresh("out")
    topic = f"{owner.name}.{name}"
    sdm("topic", "create", topic, "--partitions", "1", "-d", owner.name)
    number = register_schema(
        mesh,
        f"{topic}-value",
        '{"type": "record", "name": "Said", "doc": "half \\ud83d of an emoji", "fields": '
        '[{"name": "id", "type": "int", "doc": "\\udc00"}]}',
    )
    text = f"INSERT INTO `{out}` SELECT id FROM `{name}`"
    sdm("streaming", "sql", "add", out, text, "-d", owner.name)
    try:
        writing = Producer(mesh.administration("east").config())
        writing.produce(topic, b"\0" + number.to_bytes(4, "big") + b"\x0e")
        assert writing.flush(60) == 0
        reading = ("topic", "consume", f"{owner.name}.{out}", "-d", owner.name, "--follow")
        [row] = sdm(*reading, "--timeout", "90", "--max", "1").lines
        assert row["value"] == {"id": 7}
    finally:
        sdm("streaming", "sql", "delete", out, "-d", owner.name)
