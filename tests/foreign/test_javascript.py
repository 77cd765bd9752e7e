"""A program in another language takes part with nothing but the documented wire format."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mesh_events.decisions import IntentAccepted
from mesh_events.intents import ProductUpdated, intents_login
from tests.mesh_kit import Domain, Mesh, fresh

SOURCES = Path(__file__).parent


def cannot_run(reason: str) -> NoReturn:
    """Skip on a developer's machine; fail in CI, where a test that does not run is a hole."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_what_cannot_run_is_a_failure_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no node"):
        cannot_run("no node")


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client with its two libraries, installed outside the repository."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        cannot_run("node and npm are not installed: the client in JavaScript cannot run")
    folder = tmp_path_factory.mktemp("foreign")
    for name in ("package.json", "package-lock.json", "client.js"):
        shutil.copy(SOURCES / name, folder)
    done = subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        cannot_run(f"npm could not install the client's libraries: {done.stderr[-300:]}")
    return folder


@pytest.fixture(scope="module")
def domain(kit: Mesh) -> Domain:
    return kit.register_domain("abroad")


def run(client: Path, domain: Domain, what: str, **settings: str) -> list[dict[str, Any]]:
    """The lines that the client prints."""
    mesh, login = domain.mesh, domain.mesh.login(intents_login(domain.name))
    key_file = client / f"{domain.name}.key"
    if not key_file.exists():
        domain.key.save(key_file)
    environment = {
        "PATH": os.environ["PATH"],
        "BOOTSTRAP": login.bootstrap_servers,
        "MESH_USER": login.user,
        "MESH_PASSWORD": login.password,
        "REGISTRY": mesh.endpoints.registry_url,
        "DOMAIN": domain.name,
        "KEY_FILE": str(key_file),
        "ROOT_KEY": mesh.profile.root_key,
        "GOVERNOR_KEY": mesh.profile.governor_key,
        **settings,
    }
    done = subprocess.run(
        ["node", "client.js", what],
        cwd=client,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_says_something_and_learns_what_became_of_it(client: Path, domain: Domain) -> None:
    application = f"{domain.name}.{fresh('app')}"

    said, decided = run(client, domain, "say", APPLICATION=application)

    assert decided["decision"] == "mesh.IntentAccepted"
    assert decided["offset"] > said["offset"]
    assert application in domain.mesh.image().identity.applications


def test_is_told_the_decision_on_the_first_of_equal_records(client: Path, domain: Domain) -> None:
    application = f"{domain.name}.{fresh('thrice')}"

    said, decided = run(client, domain, "say", APPLICATION=application, APPENDS="3")

    assert decided["decision"] == "mesh.IntentAccepted"
    mesh = domain.mesh
    assert mesh.code(said["offset"]) in ("duplicate_intent", "records_set_aside")
    found = mesh.entries[decided["offset"]].event
    assert isinstance(found, IntentAccepted)
    assert found.offset < said["offset"]


def test_is_told_the_code_of_a_refusal(client: Path, domain: Domain) -> None:
    _, decided = run(client, domain, "say", APPLICATION=f"{domain.name}x.app")

    assert (decided["decision"], decided["code"]) == ("mesh.IntentRejected", "not_your_domain")


def test_subscribes_to_the_catalog_and_resumes_where_it_stood(client: Path, domain: Domain) -> None:
    product, _ = domain.product()
    first = run(client, domain, "follow", POSITION="0")
    domain.mesh.accepted(domain.say(ProductUpdated, product=product, owner="team-new"))
    second = run(client, domain, "follow", POSITION=str(first[-1]["position"] + 1))

    mine = [line for line in first + second if line["key"] == product]
    assert [line["owner"] for line in mine] == ["team-7", "team-new"]
    positions = [line["position"] for line in first + second]
    assert positions == sorted(set(positions))
