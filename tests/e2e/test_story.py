import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import new_settings

pytestmark = pytest.mark.long


@pytest.mark.platform
def test_the_story_holds_from_an_empty_mesh_to_the_audit(tmp_path: Path) -> None:
    """The demo starts its own mesh, tells the story with sdm, and leaves nothing running."""
    settings = new_settings()
    result = tmp_path / "story.json"

    told = subprocess.run(
        [sys.executable, "-m", "self_service.demo", "--json", str(result)],
        env={
            **os.environ,
            "SDM_CACHE": str(settings.cache),
            "SDM_DEMO_HOME": str(settings.home),
            "SDM_DEMO_PORT_BASE": str(settings.port_base),
        },
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )

    try:
        assert told.returncode == 0, f"{told.stdout}\n{told.stderr}"
        assert not (settings.home / "run" / "state.json").exists() or _nothing_runs(settings.home)
    finally:
        shutil.rmtree(settings.home, ignore_errors=True)
    checks = json.loads(result.read_text())["checks"]
    assert len(checks) >= 24
    assert [check["claim"] for check in checks if not check["held"]] == []
    assert "Traceback" not in told.stdout + told.stderr


def _nothing_runs(home: Path) -> bool:
    from local_platform import LocalPlatform, PlatformSettings

    found = LocalPlatform(PlatformSettings(home=home)).status()
    return all(service.state == "stopped" for service in found)
