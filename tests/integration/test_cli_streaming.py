"""`sdm streaming sql` and `sdm lineage` on a running mesh: what is typed, and what happens."""

from pathlib import Path

import pytest

from self_service.cli.exits import ExitCode
from tests.integration.test_cli import Party, Sdm, owner, sdm
from tests.kafka_client import eventually, fresh

__all__ = ["owner", "sdm"]
pytestmark = [pytest.mark.platform, pytest.mark.timeout(300)]


def test_a_statement_from_explain_to_drop(sdm: Sdm, owner: Party, tmp_path: Path) -> None:
    clicks, out = fresh("clicks"), fresh("out")
    as_owner = ("-d", owner.name)
    made = ("--kind", "clickstream", "--count", "300", "--fast", "--users", "9", "-p", "2")
    sdm("generate", f"{owner.name}.{clicks}", *made, *as_owner)
    found = sdm("topic", "consume", f"{owner.name}.{clicks}", *as_owner).lines
    text = f"INSERT INTO `{out}` SELECT ip, userid, status FROM `{clicks}` WHERE status >= 400"
    wanted = [one for one in found if int(one["value"]["status"]) >= 400]

    explained = sdm("streaming", "sql", "explain", text, *as_owner).document
    assert explained["destination"] == f"{owner.name}.{out}"
    assert [one["column"] for one in explained["columns"]] == ["ip", "userid", "status"]
    assert [one["type"] for one in explained["columns"]] == ["string", "int", "string"]
    assert explained["sources"][0]["topic"] == f"{owner.name}.{clicks}"
    assert "Physical Plan" in explained["spark_plan"]
    assert not sdm("streaming", "sql", "list", "--of", owner.name).document

    name, file = f"{owner.name}.{out}", tmp_path / "errors.sql"
    file.write_text(text)
    added = sdm("streaming", "sql", "add", out, "-f", str(file), *as_owner, "--timeout", "200")
    assert added.document["state"] == "ACTIVE"
    filled = f"{owner.name}.{out}"

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

    stopped = sdm("streaming", "sql", "stop", out, *as_owner, "--reason", "a pause").document
    assert stopped["state"] == "STOPPED"
    again = sdm("streaming", "sql", "stop", out, *as_owner, code=ExitCode.REFUSED)
    assert "not_running" in again.err
    assert sdm("streaming", "sql", "restart", out, *as_owner).document["state"] == "ACTIVE"

    newer = f"SELECT ip, userid, status, bytes FROM `{clicks}` WHERE status >= 400"
    updated = sdm("streaming", "sql", "update", out, newer, *as_owner).document
    assert updated["state"] == "ACTIVE"
    described = sdm("streaming", "sql", "describe", name).document
    assert (described["sql"], described["state"]) == (newer, "ACTIVE")

    shown = sdm("lineage", "show", filled, "--upstream", "--columns").document
    (step,) = shown["upstream"]
    assert (step["job"], step["name"]) == ("statement", name)
    assert step["columns"]["bytes"] == [f"{owner.name}.{clicks}.bytes"]
    assert step["from"][0]["topic"] == f"{owner.name}.{clicks}"

    dropped = sdm("streaming", "sql", "drop", out, *as_owner).document
    assert dropped["state"] == "DROPPED"
    assert not sdm("streaming", "sql", "list", "--of", owner.name).document
    assert len(sdm("topic", "consume", filled, *as_owner).lines) == len(wanted)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("add", "x"), ExitCode.USAGE, "give the SQL"),
        (("add", "x", "SELECT ip FROM clicks"), ExitCode.USAGE, "what is to be filled"),
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
