"""Warm start to ready, memory in all, and the duration of the story."""

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.report import surroundings, tell
from local_platform import LocalPlatform, PlatformSettings


def run(settings: PlatformSettings, story: Path) -> None:
    """Stop and start the mesh at `settings`, with its data; everything was fetched before.

    story: the JSON of `./scripts/demo --json`.
    """
    around = surroundings()
    platform = LocalPlatform(settings)
    platform.down()
    begun = time.perf_counter()
    platform.up()
    ready = time.perf_counter() - begun
    services = platform.status(memory=True)
    memory = sum(service.rss_bytes for service in services)
    figures: dict[str, dict[str, Any]] = {
        "warm up to ready": {"seconds": round(ready, 1)},
        "memory in all (RSS)": {"mib": memory >> 20},
    }
    report = json.loads(story.read_text("utf-8"))
    figures["the story, with a fresh start"] = {"seconds": report["seconds"]}
    tell("start", around, figures)
