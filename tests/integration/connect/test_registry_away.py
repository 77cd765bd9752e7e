"""A sink makes no dead letter of a record because the registry does not answer."""

import subprocess
from pathlib import Path

import pytest

from local_platform import Endpoints, PlatformSettings
from local_platform.own_jars import compile_once, pyspark_jars
from local_platform.plugins import connect_plugins
from local_platform.services.java import java
from local_platform.site import Site

pytestmark = pytest.mark.slow
_ENDS = ("Error", "Exception", "read")
SOURCE = Path(__file__).with_name("AskRegistry.scala")


def test_a_registry_that_is_away_is_no_fault_of_a_record(
    mesh: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    """Connect makes a dead letter of any exception of a converter, and passes the record by."""
    site = Site.of(settings)
    plugin = connect_plugins(site.jars, site.cache) / "apicurio-converter"
    # as Connect reads them
    jars = [*sorted(plugin.glob("*.jar")), *pyspark_jars("scala-*")]
    path = f"{':'.join(map(str, jars))}:{site.jars.class_path('kafka')}"
    made = tmp_path / "asks.jar"
    compile_once(made, path, (SOURCE,))
    there = mesh.registry_url.partition("/apis")[0]
    addresses = ["http://127.0.0.1:1/apis/registry/v2", f"{there}/apis/registry/v2"]
    said = subprocess.run(
        [*java("mesh.AskRegistry", 256, f"{made}:{path}"), *addresses],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    away, unknown = (one for one in said.stdout.splitlines() if one.startswith(_ENDS))
    assert away.startswith("Error registry_unavailable: ")
    assert unknown.startswith("Exception "), unknown
