"""What the brokers' own classes do where Kafka ends by an error, asked without a broker."""

import subprocess
from pathlib import Path

from local_platform import PlatformSettings
from local_platform.jars.fetch import Fetcher
from local_platform.jars.java import java
from local_platform.jars.scala_jars import (
    broker_jar,
    compile_for_brokers,
    compile_once,
    pyspark_jars,
)
from local_platform.site import Site


def test_a_thread_is_done_with_a_fetch_or_request_that_ends_by_an_error(tmp_path: Path) -> None:
    """Else what it does for others counts for that domain, or not at all, from then on."""
    site = Site.of(PlatformSettings(home=tmp_path))
    Fetcher(site.jars, site.settings.maven_url).fetch()
    kafka = site.jars.class_path("kafka")
    compile_for_brokers(own := broker_jar(site.cache, kafka), kafka)
    path = ":".join(map(str, [own, kafka, *pyspark_jars("scala-*")]))
    made = tmp_path / "program.jar"
    compile_once(made, path, (Path(__file__).with_name("AskEnds.scala"),))
    argv = java("mesh.AskEnds", 256, f"{made}:{path}")
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    assert said.stdout.split() == [
        *("answers", "yes"),
        *("looks", "yes"),
        *("handles", "yes"),
        *("permits", "yes"),
    ]
