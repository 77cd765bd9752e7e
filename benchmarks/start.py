"""Warm start to ready, memory in all, and the duration of the story."""

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.report import surroundings, tell
from local_platform import LocalPlatform, PlatformSettings


def run(settings: PlatformSettings, story: Path | None) -> None:
    """Stop and start the mesh at `settings`, with its data; everything was fetched before."""
    around = surroundings()
    platform = LocalPlatform(settings)
    platform.down()
    begun = time.perf_counter()
    platform.up()
    ready = time.perf_counter() - begun
    services = platform.status()
    memory = sum(service.rss_bytes or 0 for service in services)
    figures: dict[str, dict[str, Any]] = {
        "warm up to ready": {"value": f"{ready:.1f} s"},
        "memory in all (RSS)": {"value": f"{memory / (1 << 20):.0f} MiB"},
    }
    if story is not None:
        told = json.loads(story.read_text())
        figures["the story, with a fresh start"] = {"value": f"{told['seconds']} s"}
    tell("start", around, figures)
