import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from local_platform import Endpoints, PlatformSettings
from mesh_events.settings import key_path
from self_service.demo.database import Database
from tests import ordinary_user
from tests.conftest import OF_TESTS, new_settings
from tests.kafka_client import eventually

pytestmark = pytest.mark.slow
START_S = 240
"""For servers of a domain that are started when they are needed."""
LISTINGS = ("connect connector deployed", "streaming sql list", "link list")
CLAIMS = [
    "every server is ready",
    "both domains are registered and can log in",
    "the rows of users are on topic east.users, as Avro",
    "those of products are on its own",
    "the catalog shows owner, quality, SLA and schema",
    "the search finds east.users",
    "the read is refused by Kafka",
    "its own grant is refused (own_request)",
    "the same client with the same configuration now reads 3 rows in its own cluster",
    "the link east.users@west is ACTIVE",
    "explain: entitled, enforced on the cluster, copied",
    "insert, update and delete arrive in west, in order, within # s",
    "west cannot write to the copy",
    "each of # clicks of a customer came out once, with the customer's name",
    "clicks of the customer who was deleted are left out",
    "west's application reads all # in its own cluster, by a plain Kafka client",
    "upstream: the clicks, the customers, and the table in Postgres",
    "the name comes from the customers' table",
    "the picture has it in a row of each box, from Postgres to west",
    "downstream: the copy in west, and who reads it",
    "the next read is refused",
    "the link is deleted and the copy purged",
    "no topic east.users is left in west",
    "the log tells what each domain said about the product, and what came of it",
    "the trace of the request leads from its rights to the purged copy",
    "every signature and decision on the log holds",
    "rows on mesh.* equal a replay in a new process",
    "as of before the product: 0 products, access to east.users unknown",
    "as of before the grant: 1 products, access to east.users REQUESTED",
    "as of during the grant: 1 products, access to east.users ACTIVE",
    "as of after the revocation: 2 products, access to east.users REVOKED",
]
"""Every check of the story, in order; # stands for how many random clicks are of a customer."""


@pytest.mark.platform
def test_the_story_holds_from_an_empty_mesh_to_the_audit(tmp_path: Path) -> None:
    """The demo starts its own mesh, tells the story with sdm, and leaves nothing running.

    Then the mesh is started again: what ran when it was stopped runs again, from where it stood.
    """
    settings = new_settings()
    result = tmp_path / "story.json"

    told = subprocess.run(
        [sys.executable, "-m", "self_service.demo", "--json", str(result)],
        env={**as_a_user_has_it(os.environ), **variables(settings)},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )

    try:
        require_held(told, settings, result)
        require_running_again(settings)
    finally:
        shutil.rmtree(settings.home, ignore_errors=True)


@pytest.mark.platform
@pytest.mark.long
def test_the_story_holds_for_an_ordinary_user() -> None:
    ordinary_user.require()
    settings = new_settings()
    home = Path(tempfile.mkdtemp(prefix="sdm-test-user-"))
    cache = home / "cache"
    cache.mkdir()
    # what was fetched is the same for everybody; what is compiled, each user compiles
    (cache / "jars").symlink_to(settings.cache / "jars")
    for folder in (home, cache):
        os.chown(folder, ordinary_user.UID, ordinary_user.UID)
    mine = settings.model_copy(update={"home": home / "mesh", "cache": cache})
    result = home / "story.json"
    try:
        told = ordinary_user.run(
            *("self_service.demo", "--json", str(result)),
            home=home,
            timeout=580,
            **variables(mine),
        )
        require_held(told, mine, result)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def variables(settings: PlatformSettings) -> dict[str, str]:
    """Where the demo has its mesh."""
    return {
        "SDM_CACHE": str(settings.cache),
        "SDM_DEMO_HOME": str(settings.home),
        "SDM_DEMO_PORT_BASE": str(settings.port_base),
    }


def require_held(
    told: subprocess.CompletedProcess[str], settings: PlatformSettings, result: Path
) -> None:
    """Every claim was checked and held, and nothing runs any more."""
    assert told.returncode == 0, f"{told.stdout}\n{told.stderr}"
    assert not (settings.home / "run" / "state.json").exists() or _nothing_runs(settings.home)
    checks = json.loads(result.read_text())["checks"]
    assert [re.sub(r"[0-9]{2,}", "#", check["claim"]) for check in checks] == CLAIMS
    assert [check["claim"] for check in checks if not check["held"]] == []
    assert "Traceback" not in told.stdout + told.stderr


def require_running_again(settings: PlatformSettings) -> None:
    """After its next start the mesh's connector, statement and link deal with what is new.

    The root's key is somewhere safe by then: only a change of the mesh's own keys needs it.
    """
    key_path(settings.home, "root").rename(settings.home / "elsewhere.key")
    sdm(settings, "up", "--timeout", "300")
    try:
        listed = sdm(settings, "kafka", "topics", "--cluster", "west", "--list").split()
        assert "east.click_users" in listed
        assert "east.users" not in listed, "its copy was purged"
        database = Database(Endpoints.load(settings.home))
        database.run("INSERT INTO users VALUES (5, 'Eve', 'Example', NULL)")
        database.close()
        eventually(
            lambda: "Eve" in consumed(settings, "east.users", "-d", "east"),
            "the connector captures a new row",
            START_S,
        )
        clicks = ("--kind", "clickstream", "--count", "200", "--fast", "--users", "5")
        sdm(settings, "generate", "east.clicks", *clicks, "-d", "east")
        eventually(
            lambda: "Eve" in consumed(settings, "east.click_users", "-d", "east"),
            "the statement joins new clicks with the new row",
            START_S,
        )
        reader = ("--application", "west.analytics", "-d", "west")
        eventually(
            lambda: "Eve" in consumed(settings, "east.click_users", *reader),
            "the link copies what the statement made",
            START_S,
        )
        for listing in LISTINGS:
            eventually(partial(_all_run, settings, listing), f"{listing} tells that it runs", 60)
    finally:
        sdm(settings, "down")


def sdm(settings: PlatformSettings, *words: str) -> str:
    """What `sdm` prints, at the mesh of the story."""
    place = {
        "SDM_CACHE": str(settings.cache),
        "SDM_HOME": str(settings.home),
        "SDM_PORT_BASE": str(settings.port_base),
    }
    done = subprocess.run(
        [sys.executable, "-m", "self_service.cli", *words],
        env={**as_a_user_has_it(os.environ), **place},
        capture_output=True,
        text=True,
        timeout=330,
        check=False,
    )
    assert done.returncode == 0, f"sdm {' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def consumed(settings: PlatformSettings, topic: str, *who: str) -> str:
    """All records of a topic, as text."""
    return sdm(settings, "topic", "consume", topic, *who, "-o", "json")


def states(settings: PlatformSettings, *listing: str) -> list[str]:
    """The states of what is not gone."""
    found = json.loads(sdm(settings, *listing, "-o", "json"))
    return [one["state"] for one in found if one["state"] != "DELETED"]


def _all_run(settings: PlatformSettings, listing: str) -> bool:
    return states(settings, *listing.split()) == ["ACTIVE"]


def as_a_user_has_it(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what the tests set for their own mesh."""
    return {name: value for name, value in environment.items() if name not in OF_TESTS}


def _nothing_runs(home: Path) -> bool:
    from local_platform import LocalPlatform, PlatformSettings

    found = LocalPlatform(PlatformSettings(home=home)).status()
    return all(service.state == "stopped" for service in found)
