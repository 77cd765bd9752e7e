"""The command line on a running mesh: what a person types, what it answers, how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local_platform import Endpoints, PlatformSettings
from mesh_events.decisions import KEYS_PER_DOMAIN
from mesh_events.emit import Emitter
from mesh_events.errors import ConfigurationError
from mesh_events.intents import ApplicationRegistered, KeyRegistered
from mesh_events.settings import Profile
from mesh_events.signing import SigningKey
from self_service.cli.app import app
from self_service.cli.framework.exits import ExitCode
from tests.mesh_kit import fresh

SCHEMA = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "userid", "type": "long"},
        {"name": "phone", "type": ["null", "string"], "default": None},
    ],
}
USERS = [{"userid": 1, "phone": "1"}, {"userid": 2, "phone": None}]


@dataclass(frozen=True)
class Told:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The answer as one JSON object per line."""
        return [json.loads(line) for line in self.out.splitlines()]


Sdm = Callable[..., Told]


@pytest.fixture
def sdm(mesh: Endpoints, settings: PlatformSettings) -> Sdm:
    """Run `sdm ... -o json` on the mesh; `code` is the exit code that is expected."""

    def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Told:
        variables = {
            "SDM_HOME": str(settings.home),
            "SDM_PORT_BASE": str(settings.port_base),
            "SDM_DOMAIN": None,
            "SDM_ACTOR": "tester-7",
        }
        given = [*arguments, "-o", "json"]
        done = CliRunner().invoke(app, given, env=variables, input=stdin)
        told = Told(done.exit_code, done.stdout, done.stderr)
        assert told.code == code, f"sdm {' '.join(given)}\n{told.out}\n{told.err}"
        assert "Traceback" not in told.err
        return told

    return run


@dataclass(frozen=True)
class Party:
    """A domain that was registered with sdm."""

    name: str
    cluster: str


def register(sdm: Sdm, cluster: str) -> Party:
    """A new domain, ready to speak and to log in."""
    name = fresh("cli")
    sdm("domain", "register", name, "--cluster", cluster, "--owner", f"team-{name}")
    return Party(name, cluster)


@pytest.fixture
def owner(sdm: Sdm) -> Party:
    return register(sdm, "east")


@pytest.fixture
def consumer(sdm: Sdm) -> Party:
    return register(sdm, "west")


def filled(sdm: Sdm, tmp_path: Path, owner: Party) -> str:
    """A topic of the owner with a schema and two users."""
    topic, schema = f"{owner.name}.{fresh('users')}", tmp_path / "user.avsc"
    schema.write_text(json.dumps(SCHEMA))
    sdm("topic", "create", topic, "--schema", str(schema), "-d", owner.name)
    text = "".join(json.dumps(user) + "\n" for user in USERS)
    sdm("topic", "produce", topic, "--key-field", "userid", "-d", owner.name, stdin=text)
    return topic


def published(sdm: Sdm, topic: str, owner: Party) -> dict[str, Any]:
    """Publish the topic under its own name."""
    told = sdm(
        *("product", "publish", topic, "--description", "people we know", "--owner", "team-7"),
        *("--quality", "curated", "--sla", "tier2", "--tag", "people", "--acknowledge"),
        *("-d", owner.name),
    )
    found: dict[str, Any] = told.document
    return found


def application(sdm: Sdm, party: Party) -> str:
    """A new application of a domain, ready to log in."""
    name = f"{party.name}.app"
    sdm("application", "register", name, "-d", party.name)
    return name


@pytest.mark.long
def test_a_product_is_found_asked_for_granted_read_revoked_and_audited(
    sdm: Sdm, owner: Party, consumer: Party, tmp_path: Path
) -> None:
    topic = filled(sdm, tmp_path, owner)
    assert published(sdm, topic, owner)["decision"] == "accepted"
    found = sdm("catalog", "search", f"{topic} PEOPLE", "--sla", "2", "--tag", "people").document
    assert [(one["product"], one["quality"]) for one in found] == [(topic, "STANDARD")]
    curated = sdm("catalog", "search", topic, "--quality", "curated")
    assert "curated is another name of STANDARD" in curated.err
    assert [one["quality"] for one in curated.document] == ["STANDARD"]

    reader, client = application(sdm, consumer), tmp_path / "client.properties"
    sdm("access", "credentials", reader, "--out", str(client), "-d", consumer.name)
    assert client.stat().st_mode & 0o777 == 0o600
    reading = ("topic", "consume", topic, "--client", str(client))
    refused = sdm(*reading, code=ExitCode.REFUSED).err
    assert "kafka_denied" in refused
    assert f"sdm access request {topic} {reader} --reason WHY -d {consumer.name}" in refused

    asked = sdm("access", "request", topic, reader, "-r", "to call", "-d", consumer.name).document
    which = str(asked["offset"])
    own = sdm("access", "grant", which, "-d", consumer.name, code=ExitCode.REFUSED)
    assert own.document["code"] == "own_request"
    before = sdm("access", "explain", topic, reader).document
    assert (before["entitled"], before["enforced"], before["copied"]) == (False, False, False)

    granted = sdm(
        *("access", "grant", "--product", topic, "--reason", "agreed", "-d", owner.name),
        *("--until", "active", "--timeout", "240"),
    ).document
    assert granted["state"] == "ACTIVE"
    read = sdm(*reading, "--follow", "--max", "2", "--timeout", "240", "--headers").lines
    assert [one["value"] for one in read] == USERS
    assert [one["key"] for one in read] == ["1", "2"]
    assert [name for name, _ in read[0]["headers"]] == ["mesh.source"]
    writing = ("topic", "produce", topic, "--raw", "--value", "x", "--client", str(client))
    refused = sdm(*writing, code=ExitCode.REFUSED).err
    assert "kafka_denied" in refused
    assert f"only {owner.name} may write {topic}" in refused
    during = sdm("access", "explain", topic, reader).document
    assert (during["entitled"], during["enforced"], during["copied"]) == (True, True, True)

    sdm("access", "revoke", which, "-r", "over", "-d", owner.name, "--until", "active")
    assert "kafka_denied" in sdm(*reading, code=ExitCode.REFUSED).err
    after = sdm("access", "explain", topic, reader).document
    assert (after["entitled"], after["enforced"], after["copied"]) == (False, False, False)
    assert after["copied_to"] > during["copied_from"]
    link = f"{topic}@west"
    assert sdm("link", "describe", link).document["copy"] == "PURGED"

    audit(sdm, topic, asked, granted)


def audit(sdm: Sdm, topic: str, asked: dict[str, Any], granted: dict[str, Any]) -> None:
    """What an auditor sees of the story."""
    said = sdm("audit", "log", "--product", topic, "--kind", "intent").document
    assert [(one["type"], one["outcome"]) for one in said] == [
        ("ProductPublished", "accepted"),
        ("AccessRequested", "accepted"),
        ("AccessGranted", "rejected own_request"),
        ("AccessGranted", "accepted"),
        ("LinkCreated", "accepted"),
        ("AccessRevoked", "accepted"),
        ("LinkDeleted", "accepted"),
    ]
    assert {one["actor"] for one in said} == {"tester-7", "mesh.governor"}
    alone = sdm("trace", granted["id"], "--alone").document
    assert {"CheckPassed", "LinkActivated", "AclApplied"} <= {one["type"] for one in alone["steps"]}
    assert alone["outcome"] == "accepted"
    for reference in (asked["id"], f"#{asked['offset']}", str(asked["offset"]), granted["id"]):
        whole = sdm("trace", reference).document["steps"]
        assert [whole[0]["offset"], whole[-1]["type"]] == [asked["offset"], "CopyPurged"]
    states = [
        sdm("access", "list", "--product", topic, "--at-offset", str(offset)).document
        for offset in (asked["offset"], asked["decision_offset"], granted["decision_offset"])
    ]
    assert [[one["state"] for one in found] for found in states] == [[], ["REQUESTED"], ["GRANTED"]]
    asked_at = states[1][0]["requested_at"]
    then = sdm("access", "list", "--product", topic, "--as-of", asked_at).document
    assert [one["state"] for one in then] == ["REQUESTED"]
    applied = next(one["offset"] for one in alone["steps"] if one["type"] == "AclApplied")
    for moment, via in ((("--at-offset", str(applied)), ["grant"]), ((), [])):
        found = sdm("access", "readers", topic, *moment).document["readers"]
        assert [one["via"] for one in found if one["cluster"] == "west"] == via
        assert "domain" in {one["via"] for one in found}
    assert sdm("catalog", "list", "--as-of", "9w ago").document == []
    assert sdm("catalog", "list", "--as-of", "0001-01-01").document == []
    future = sdm("catalog", "list", "--as-of", "9999-01-01")
    assert "is in the future" in future.err
    assert topic in [one["product"] for one in future.document]
    assert sdm("audit", "replay", "--compare").document["equal"] is True
    assert sdm("audit", "verify").document["valid"] is True


def test_a_topic_without_a_schema_is_no_product(sdm: Sdm, owner: Party) -> None:
    topic = f"{owner.name}.{fresh('plain')}"
    sdm("topic", "create", topic, "-d", owner.name)
    told = sdm(
        *("product", "publish", topic, "--description", "x", "--owner", "team-7"),
        *("--quality", "raw", "--sla", "3", "--acknowledge", "-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert told.document["code"] == "no_schema"
    assert told.err.startswith("refused (no_schema): ")


def test_a_product_is_changed_by_its_owner_only(
    sdm: Sdm, owner: Party, consumer: Party, tmp_path: Path
) -> None:
    topic = filled(sdm, tmp_path, owner)
    published(sdm, topic, owner)
    sdm("product", "update", topic, "--sla", "1", "--quality", "enriched", "-d", owner.name)
    told = sdm("product", "update", topic, "--sla", "3", "-d", consumer.name, code=3)
    assert told.document["code"] == "not_your_domain"
    found = sdm("product", "describe", topic, "--schema").document
    assert (found["sla"], found["quality"]) == (1, "ENRICHED")
    assert json.loads(found["schema"])["name"] == "User"


def test_a_topic_that_carries_a_product_is_not_deleted(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    topic = filled(sdm, tmp_path, owner)
    other = f"{owner.name}.{fresh('other')}"
    sdm("topic", "create", other, "-d", owner.name)
    published(sdm, topic, owner)
    told = sdm("topic", "delete", topic, "--yes", "-d", owner.name, code=ExitCode.REFUSED)
    assert "topic_in_use" in told.err
    assert "not_confirmed" in sdm("topic", "delete", other, "-d", owner.name, code=3).err
    sdm("topic", "delete", other, "--yes", "-d", owner.name)
    seen = [one["topic"] for one in sdm("topic", "list", "-d", owner.name).document]
    assert seen == [topic]


def test_records_are_read_from_where_and_as_far_as_asked(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    topic = filled(sdm, tmp_path, owner)
    sdm("topic", "produce", topic, "--key", "1", "--tombstone", "-d", owner.name)

    def offsets(*options: str, code: int = 0) -> list[int]:
        told = sdm("topic", "consume", topic, "-d", owner.name, *options, code=code)
        return [one["offset"] for one in told.lines]

    assert offsets() == [0, 1, 2]
    assert offsets("--from", "1") == [1, 2]
    assert offsets("--from", "-1") == [2]
    assert offsets("--from", "end") == []
    assert offsets("--from", str(2**63 - 1)) == []
    assert offsets("--max", "2") == [0, 1]
    late = ("--from", "2", "--follow", "--max", "5", "--timeout", "1")
    assert offsets(*late, code=ExitCode.TIMEOUT) == [2]
    last = sdm("topic", "consume", topic, "-d", owner.name, "--from", "2").lines[0]
    assert (last["value"], last["tombstone"]) == (None, True)
    described = sdm("topic", "describe", topic, "-d", owner.name).document
    assert described["offsets"] == [{"partition": 0, "first": 0, "end": 3}]
    assert described["value_schema"]["version"] == 1


def test_a_line_that_does_not_fit_the_schema_writes_nothing(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    topic = filled(sdm, tmp_path, owner)
    text = '{"userid": 3}\n{"userid": "four"}\n'
    told = sdm("topic", "produce", topic, "-d", owner.name, stdin=text, code=ExitCode.USAGE)
    assert "line 2" in told.err
    assert "nothing was written" in told.err
    assert len(sdm("topic", "consume", topic, "-d", owner.name).lines) == 2


def test_a_missing_topic_is_told_to_who_writes_with_what_makes_it(sdm: Sdm, owner: Party) -> None:
    topic = f"{owner.name}.none"
    told = sdm(
        *("topic", "produce", topic, "--value", "x", "-d", owner.name), code=ExitCode.NOT_FOUND
    )
    # a producer that does not look first waits for 30 s, and cannot say why
    assert f"sdm topic create {topic}" in told.err


@pytest.mark.parametrize("setting", ["foo=bar", "retention.ms=soon"])
def test_a_setting_that_kafka_does_not_know_is_the_callers_fault(
    sdm: Sdm, owner: Party, setting: str
) -> None:
    told = sdm(
        *("topic", "create", f"{owner.name}.x", "--config", setting, "-d", owner.name),
        code=ExitCode.USAGE,
    )
    assert setting.partition("=")[0] in told.err


def test_the_meshs_own_topics_are_shown_decoded(sdm: Sdm, owner: Party, tmp_path: Path) -> None:
    topic = filled(sdm, tmp_path, owner)
    offset = published(sdm, topic, owner)["offset"]
    rows = sdm("topic", "consume", "mesh.catalog", "-d", owner.name).lines
    # other tests may have left tombstones and garbage there
    assert topic in [row["value"]["product"] for row in rows if isinstance(row["value"], dict)]
    on_log = sdm(
        *("topic", "consume", "mesh.governance", "-d", owner.name, "--headers"),
        *("--from", str(offset), "--max", "1"),
    ).lines[0]
    assert on_log["value"]["meta"]["actor"] == "tester-7"
    assert ["ce_type", "mesh.ProductPublished.intent"] in on_log["headers"]


def test_a_denied_request_keeps_its_reason_and_can_be_asked_again(
    sdm: Sdm, owner: Party, consumer: Party, tmp_path: Path
) -> None:
    topic, reader = filled(sdm, tmp_path, owner), application(sdm, consumer)
    published(sdm, topic, owner)
    ask = ("access", "request", topic, reader, "-r", "to call", "-d", consumer.name)
    sdm(*ask)
    assert sdm(*ask, code=ExitCode.REFUSED).document["code"] == "request_open"
    sdm("access", "deny", "--product", topic, "-r", "too much", "-d", owner.name)
    found = sdm("access", "list", "--product", topic, "--state", "denied").document
    assert [one["decision_reason"] for one in found] == ["too much"]
    assert "too much" in sdm("access", "explain", topic, reader).document["why"]
    assert sdm(*ask).document["decision"] == "accepted"


def test_a_copy_is_paused_resumed_removed_and_made_again_while_a_grant_needs_it(
    sdm: Sdm, owner: Party, consumer: Party, tmp_path: Path
) -> None:
    topic, reader = filled(sdm, tmp_path, owner), application(sdm, consumer)
    published(sdm, topic, owner)
    link, pair = f"{topic}@west", ("--product", topic, "--application", reader)
    asked = sdm("access", "request", topic, reader, "-r", "x", "-d", consumer.name).document
    waiting = ("--until", "active", "--timeout", "240", "-d", owner.name)
    making = ("link", "create", topic, "--cluster", "west")
    early = sdm(*making, *waiting, code=ExitCode.REFUSED).document
    assert early["code"] == "no_grant"
    sdm("access", "grant", *pair, *waiting)
    assert sdm(*making, *waiting, code=ExitCode.REFUSED).document["code"] == "link_exists"
    mirrors = ("--engine", "mirrormaker")
    sdm("link", "pause", link, "-r", "maintenance", *waiting)
    sdm("link", "resume", link, *mirrors, *waiting)
    assert sdm("link", "describe", link).document["engine"] == "MIRRORMAKER"
    sdm("link", "delete", link, "-r", "moved", *waiting)
    assert sdm("link", "describe", link).document["state"] == "DELETED"
    assert sdm(*making, *waiting).document["state"] == "ACTIVE"
    assert [one["engine"] for one in sdm("link", "list", "--product", topic).document] == ["SPARK"]
    # all of it belongs to the request that needs the copy
    steps = sdm("trace", asked["id"]).document["steps"]
    said = [(one["type"], one["detail"]) for one in steps if one["type"].startswith("LinkP")]
    assert said == [("LinkPaused", "maintenance")]
    made = [one["outcome"] for one in steps if one["type"] == "LinkCreated"]
    assert made == ["accepted", "rejected link_exists", "accepted"]
    sdm("access", "revoke", *pair, "-r", "over", *waiting)


def test_a_revoked_key_speaks_no_more(
    sdm: Sdm, owner: Party, settings: PlatformSettings, tmp_path: Path
) -> None:
    second = tmp_path / "second.key"
    made = sdm("key", "register", "--file", str(second), "-d", owner.name).document
    assert second.stat().st_mode & 0o777 == 0o600
    keys = sdm("key", "list", "--of", owner.name).document
    assert made["public_key"] in [one["public_key"] for one in keys]
    first = next(one for one in keys if one["public_key"] != made["public_key"])
    sdm("key", "revoke", first["public_key"], "-r", "lost", "-d", owner.name)
    told = sdm(
        "application", "register", f"{owner.name}.app", "-d", owner.name, code=ExitCode.REFUSED
    )
    assert told.document["code"] == "revoked_key"
    (settings.home / "keys" / f"{owner.name}.key").write_bytes(second.read_bytes())
    sdm("application", "register", f"{owner.name}.app", "-d", owner.name)


def test_a_domain_is_registered_once_and_the_second_leaves_its_key(
    sdm: Sdm, owner: Party, settings: PlatformSettings
) -> None:
    key = (settings.home / "keys" / f"{owner.name}.key").read_bytes()
    told = sdm(
        *("domain", "register", owner.name, "--cluster", "east", "--owner", "team-8"),
        code=ExitCode.REFUSED,
    )
    assert told.document["code"] == "domain_exists"
    assert (settings.home / "keys" / f"{owner.name}.key").read_bytes() == key


def test_a_domain_above_a_quota_is_refused_and_describe_shows_it(
    sdm: Sdm, owner: Party, settings: PlatformSettings
) -> None:
    root = Profile.load(settings.home).root_key
    with Emitter.at_home(owner.name, actor="thief", home=settings.home) as emitter:
        for _ in range(KEYS_PER_DOMAIN):
            made = SigningKey.generate()
            fields = {"public_key": made.public, "proof": made.prove(root, owner.name)}
            last = emitter.emit(KeyRegistered(meta=emitter.meta(), domain=owner.name, **fields))
        outcome = emitter.outcome(last)
    assert outcome.code == "quota_exceeded"
    assert f"{owner.name} has {KEYS_PER_DOMAIN} keys" in (outcome.reason or "")
    told = sdm("domain", "describe", owner.name).document["quotas"]
    keys = next(one for one in told if one["kind"] == "keys")
    assert (keys["standing"], keys["bound"]) == (KEYS_PER_DOMAIN, KEYS_PER_DOMAIN)
    sdm("application", "register", f"{owner.name}.app", "-d", owner.name)


def test_a_refused_registration_leaves_no_key(sdm: Sdm, settings: PlatformSettings) -> None:
    name = fresh("cli")
    told = sdm(
        *("domain", "register", name, "--cluster", "nowhere", "--owner", "team-8"),
        code=ExitCode.REFUSED,
    )
    assert told.document["code"] == "unknown_cluster"
    assert not (settings.home / "keys" / f"{name}.key").exists()


def test_an_intent_need_not_be_waited_for(sdm: Sdm, owner: Party) -> None:
    told = sdm("application", "register", f"{owner.name}.app", "-d", owner.name, "--no-wait")
    assert told.document["decision"] == "not waited for"
    found = sdm("trace", f"#{told.document['offset']}").document
    assert found["type"] == "ApplicationRegistered"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("product", "describe", "no.such"), "sdm catalog search"),
        (("domain", "describe", "nosuch"), "sdm domain list"),
        (("link", "describe", "a.b@c"), "sdm link list"),
        (("access", "explain", "no.such", "no.app"), "sdm catalog search"),
        (("trace", "#99999999"), "sdm audit log"),
        (("trace", "ffffffff-ffff"), "sdm audit log"),
        (("connect", "connector", "describe", "nosuch"), "connector deployed"),
        (("catalog", "list", "--at-offset", "99999999"), "it ends at"),
        (("catalog", "list", "--at-offset", "9" * 30), "it ends at"),
        (("topic", "list", "--cluster", "north", "-d", "mesh"), "known are east, west"),
    ],
)
def test_what_is_not_there_is_not_found(sdm: Sdm, arguments: tuple[str, ...], said: str) -> None:
    assert said in sdm(*arguments, code=ExitCode.NOT_FOUND).err


def test_a_wrong_password_and_a_dead_server_are_told_apart(
    sdm: Sdm, consumer: Party, tmp_path: Path
) -> None:
    reader, client = application(sdm, consumer), tmp_path / "client.properties"
    sdm("access", "credentials", reader, "--out", str(client), "-d", consumer.name)
    good = client.read_text()
    reading = ("topic", "consume", f"{consumer.name}.x", "--client", str(client))
    client.write_text(good.replace("sasl.password=", "sasl.password=x"))
    wrong = sdm(*reading, code=ExitCode.CONFIGURATION)
    assert "login was refused" in wrong.err
    assert good.split("sasl.password=")[1].strip() not in wrong.err
    lines = [line for line in good.splitlines() if not line.startswith("bootstrap")]
    client.write_text("\n".join(["bootstrap.servers=127.0.0.1:1", *lines]))
    assert "127.0.0.1:1" in sdm(*reading, code=ExitCode.INFRASTRUCTURE).err


def test_a_rotated_login_ends_the_old_password(sdm: Sdm, consumer: Party, tmp_path: Path) -> None:
    reader = application(sdm, consumer)
    old, new = tmp_path / "old.properties", tmp_path / "new.properties"
    for file in (old, new):
        sdm("access", "credentials", reader, "--out", str(file), "-d", consumer.name)
    topic = f"{fresh('another')}.none"
    refused = sdm("topic", "consume", topic, "--client", str(old), code=ExitCode.CONFIGURATION)
    assert "login was refused" in refused.err
    assert "kafka_denied" in sdm("topic", "consume", topic, "--client", str(new), code=3).err


def test_a_domain_gets_a_login_for_the_cluster_of_the_log(
    sdm: Sdm, consumer: Party, tmp_path: Path
) -> None:
    file = tmp_path / "log.properties"
    handing = ("access", "credentials", consumer.name, "--out", str(file), "-d", consumer.name)
    assert sdm(*handing, "--cluster", "east").document["cluster"] == "east"
    assert file.read_text("utf-8").startswith("# schema registry: http://")
    reading = ("topic", "consume", "mesh.governance", "--max", "1", "--client", str(file))
    assert len(sdm(*reading).lines) == 1
    nowhere = sdm(*handing, "--cluster", "north", code=ExitCode.NOT_FOUND)
    assert "clusters with a login: east, west" in nowhere.err


def test_the_program_of_the_how_to_reads_and_goes_on(
    sdm: Sdm, owner: Party, tmp_path: Path
) -> None:
    topic, file = filled(sdm, tmp_path, owner), tmp_path / "client.properties"
    sdm("access", "credentials", owner.name, "--out", str(file), "-d", owner.name)
    program = Path(__file__).parents[2] / "examples" / "read_product.py"
    seen: list[str] = []
    for _ in range(2):
        argv = [sys.executable, str(program), str(file), topic, "1"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
        seen += done.stdout.splitlines()
    every = sdm("topic", "consume", topic, "-d", owner.name).lines
    assert len(set(seen)) == len(seen) == 2
    assert {one.partition(" ")[0] for one in seen} <= {
        f"{one['partition']}:{one['offset']}" for one in every
    }
    refused = subprocess.run(
        [sys.executable, str(program), str(file), f"{fresh('another')}.none", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "authorization failed" in refused.stderr.lower()
    assert "Traceback" not in refused.stderr
    # one that is no Avro is in nobody's way
    sdm("topic", "produce", topic, "--raw", "-d", owner.name, stdin="garbage\n")
    argv = [sys.executable, str(program), str(file), topic, "1"]
    passed = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert "cannot be read" in passed.stderr
    assert passed.stdout == ""


def test_status_shows_services_and_where_the_mesh_stands(sdm: Sdm) -> None:
    found = sdm("status").document
    own = "users of their own"
    assert (found["domains_run_as"] == own) is (os.geteuid() == 0)
    ready = {one["service"]: one["state"] for one in found["services"]}
    assert ready["governor"] == "ready"
    assert all(one["memory_mib"] > 0 for one in found["services"] if one["pid"])
    # where nothing happened since a governor began, its own beginning is the last record
    assert found["offset"] >= found["epoch"] > 0
    deadline = time.monotonic() + 120
    # a controller may report while the rows are read
    while sdm("status").document["rows_behind"]:
        assert time.monotonic() < deadline, "the rows do not catch up with the log"


def test_an_intent_that_nobody_decides_in_time_ends_with_5_and_is_decided_later(
    sdm: Sdm, owner: Party
) -> None:
    governor = next(
        one["pid"] for one in sdm("status").document["services"] if one["service"] == "governor"
    )
    name = f"{owner.name}.app"
    os.kill(governor, signal.SIGSTOP)
    try:
        told = sdm(
            *("application", "register", name, "-d", owner.name, "--timeout", "2"),
            code=ExitCode.TIMEOUT,
        )
    finally:
        os.kill(governor, signal.SIGCONT)
    assert "sdm trace" in told.err
    deadline = time.monotonic() + 240
    while name not in [one["application"] for one in sdm("application", "list").document]:
        assert time.monotonic() < deadline, "the intent was never decided"


def test_a_program_speaks_with_what_the_registration_left_in_the_home(
    owner: Party, settings: PlatformSettings
) -> None:
    with Emitter.at_home(owner.name, actor="nightly", home=settings.home) as reporter:
        said = ApplicationRegistered(meta=reporter.meta(), application=f"{owner.name}.nightly")
        first = reporter.outcome(reporter.emit(said))
        assert first.accepted
        # the very same event again, as after an answer of Kafka that was lost
        assert reporter.outcome(reporter.emit(said)) == first


def test_a_program_without_a_home_is_told_what_is_missing(
    settings: PlatformSettings, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="run `sdm up`"):
        Emitter.at_home("east", actor="nightly", home=tmp_path)
    with pytest.raises(ConfigurationError, match="nobody-here"):
        Emitter.at_home("nobody-here", actor="nightly", home=settings.home)


def test_a_schema_that_readers_could_not_follow_is_refused(
    sdm: Sdm, tmp_path: Path, owner: Party
) -> None:
    topic = filled(sdm, tmp_path, owner)
    other = tmp_path / "other.avsc"
    other.write_text(
        json.dumps(
            {"type": "record", "name": "User", "fields": [{"name": "new", "type": "boolean"}]}
        )
    )
    told = sdm(
        *("topic", "produce", topic, "--schema", str(other), "--value", '{"new": true}'),
        *("-d", owner.name),
        code=ExitCode.REFUSED,
    )
    assert "incompatible_schema" in told.err
    assert len(sdm("topic", "consume", topic, "-d", owner.name).lines) == len(USERS)


@pytest.mark.parametrize(
    ("wrong", "code", "told"),
    [
        (("--kind", "intnt"), ExitCode.USAGE, "intent, decision, fact"),
        (("--type", "AccesGranted"), ExitCode.USAGE, "did you mean AccessGranted"),
        (("--product", "east.nothing"), ExitCode.NOT_FOUND, "east.nothing"),
        (("--domain", "nobody-here"), ExitCode.NOT_FOUND, "nobody-here"),
    ],
)
def test_a_filter_that_can_find_nothing_is_no_empty_answer(
    sdm: Sdm, wrong: tuple[str, ...], code: ExitCode, told: str
) -> None:
    assert told in sdm("audit", "log", *wrong, code=code).err


def test_writing_registers_no_schema_that_breaks_readers(
    sdm: Sdm, tmp_path: Path, owner: Party
) -> None:
    """The registry allows branches in another order, over which `u.member0` is another one."""
    topic = f"{owner.name}.{fresh('users')}"

    def schema(name: str, *branches: str, more: Sequence[dict[str, Any]] = ()) -> str:
        fields = [{"name": "u", "type": ["null", *branches]}, *more]
        path = tmp_path / f"{name}.avsc"
        path.write_text(json.dumps({"type": "record", "name": "User", "fields": fields}))
        return str(path)

    first, turned = schema("first", "string", "long"), schema("turned", "long", "string")
    more = schema("more", "string", "long", more=[{"name": "n", "type": "int", "default": 0}])
    writing = ("topic", "produce", topic, "--value", '{"u": "a"}', "-d", owner.name, "--schema")
    sdm("topic", "create", topic, "-d", owner.name)
    sdm(*writing, first)
    told = sdm(*writing, turned, code=ExitCode.REFUSED).err
    assert "incompatible_schema" in told
    assert f"`sdm schema check {turned} --subject {topic}`" in told
    assert sdm("schema", "describe", topic).document["version"] == 1
    # what is registered already, or may follow, is as before
    for path in (first, more, first):
        sdm(*writing, path)
    found = sdm("topic", "consume", topic, "-d", owner.name).lines
    assert [one["value"].get("n") for one in found] == [None, None, 0, None]


def test_who_may_only_read_a_topic_registers_no_schema_of_it(
    sdm: Sdm, tmp_path: Path, owner: Party
) -> None:
    topic, more = filled(sdm, tmp_path, owner), tmp_path / "more.avsc"
    published(sdm, topic, owner)
    other = register(sdm, "east")
    reader = application(sdm, other)
    sdm("access", "request", topic, reader, "-r", "to call", "-d", other.name)
    until = ("--until", "active", "--timeout", "240")
    sdm("access", "grant", "--product", topic, "-r", "agreed", "-d", owner.name, *until)
    added = {"name": "n", "type": "int", "default": 0}
    more.write_text(json.dumps({**SCHEMA, "fields": [*SCHEMA["fields"], added]}))  # type: ignore[misc]
    writing = ("topic", "produce", topic, "--value", json.dumps({**USERS[0], "n": 1}))
    told = sdm(
        *(*writing, "--schema", str(more), "--application", reader, "-d", other.name),
        code=ExitCode.REFUSED,
    ).err
    assert "kafka_denied" in told
    made = ("generate", topic, "--kind", "clickstream", "--count", "1", "--fast")
    told = sdm(*made, "--application", reader, "-d", other.name, code=ExitCode.REFUSED).err
    assert "kafka_denied" in told
    assert sdm("schema", "describe", topic).document["version"] == 1
