"""Spark's Kafka source reads a record with any time, as a server of the platform has it."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from local_platform import Endpoints, PlatformSettings
from local_platform.jars.java import java
from local_platform.jars.scala_jars import compile_lookup, compile_once, lookup_jar
from local_platform.services.spark import class_path
from local_platform.site import Site

SOURCE, TEXTS = (Path(__file__).with_name(f"{name}Times.scala") for name in ("Record", "Text"))
BEFORE, FIRST, LAST = -62135596800001, -62135424000000, 253402300799999
"""What `RecordTimes` of `PatchSpark.scala` bounds; Spark takes old times for those of the Julian
calendar, which is two days off in the year 1."""


def said_by(
    main: str, source: Path, words: Iterable[str], settings: PlatformSettings, folder: Path
) -> list[str]:
    """What a program says of these words, with the classes of the platform's Spark servers."""
    site = Site.of(settings)
    spark = class_path(site.jars)
    ours, checker = lookup_jar(site.cache, spark), folder / "checker.jar"
    compile_lookup(ours, spark)
    compile_once(checker, spark, (source,))
    argv = [*java(main, 256, f"{checker}:{ours}:{spark}"), *words]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    return said.stdout.split()


def test_a_time_that_spark_cannot_have_is_the_nearest_that_it_can(
    platform: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    times = {0: 0, 1_700_000_000_123: 1_700_000_000_123, BEFORE: FIRST, -(2**62): FIRST}
    times |= {-9223372036854776: FIRST, 2**62: LAST}
    main = "org.apache.spark.sql.kafka010.RecordTimes"
    said = said_by(main, SOURCE, map(str, times), settings, tmp_path)
    assert [int(one) for one in said] == [1000 * ms for ms in times.values()]


def test_a_time_without_a_day_is_none_of_today(
    platform: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    texts = ("12:30", "T12", " 1:2 +01:00", "1970-01-01 00:00:01", "1970", "1970-01-01T00:00:02Z")
    said = said_by("mesh.TextTimes", TEXTS, texts, settings, tmp_path)
    assert said == ["none", "none", "none", "1000000", "0", "2000000"]
