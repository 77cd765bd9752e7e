"""A domain's own Spark Connect server: started when it is needed, for who has its token."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.supervision.state import State
from mesh_events.references import resolve
from tests.mesh_fixtures import domain_server

pytestmark = pytest.mark.platform

QUERY = "local_platform.services.spark_query"


def asked(remote: str, token: str) -> int:
    """The exit code of a first query."""
    argv = [sys.executable, "-m", QUERY, remote]
    done = subprocess.run(
        argv, check=False, input=token, text=True, capture_output=True, timeout=60
    )
    return done.returncode


def test_a_domains_server_answers_who_has_its_token_and_is_found_again(
    platform: Endpoints, settings: PlatformSettings
) -> None:
    local = LocalPlatform(settings)
    remote, reference = local.domain_server("sales")
    token = resolve(reference)
    other, others = domain_server(platform, "east")
    assert asked(remote, token) == 0
    assert asked(remote, others) != 0
    assert remote != other

    before = next(one for one in local.status() if one.name == "spark-sales")
    assert before.state == State.READY
    assert LocalPlatform(settings).domain_server("sales") == (remote, reference)
    after = next(one for one in local.status() if one.name == "spark-sales")
    assert after.pid == before.pid

    # from a shell that does not know where the mesh's ports begin
    elsewhere = settings.model_copy(update={"port_base": 29000})
    assert LocalPlatform(elsewhere).domain_server("sales") == (remote, reference)

    told = Path(f"/proc/{before.pid}/environ").read_text() + " ".join(
        Path(f"/proc/{before.pid}/cmdline").read_text().split("\0")
    )
    own = Path(reference.removeprefix("file:"))
    secrets = [path for path in (settings.home / "secrets").rglob("*") if path.is_file()]
    assert own in secrets
    assert not [path for path in secrets if path != own and path.read_text().strip() in told]


def test_without_a_mesh_there_is_none(tmp_path: Path) -> None:
    environment = {**os.environ, "SDM_HOME": str(tmp_path), "SDM_PORT_BASE": "30900"}
    argv = [sys.executable, "-m", "local_platform", "domain-server", "east"]
    done = subprocess.run(
        argv, check=False, env=environment, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert "no mesh runs at" in done.stderr
    assert "Traceback" not in done.stderr
