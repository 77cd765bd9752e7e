"""`python -m self_service.demo [--keep] [--json FILE]`: the story on a mesh of its own."""

import argparse
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from local_platform import LocalPlatform, PlatformSettings
from local_platform.settings import MAY_BE
from mesh_events.settings import default_home
from self_service.demo.stage import Stage
from self_service.demo.story import Story

PORT_BASE = 24000
"""The demo's ports lie apart from those of `sdm up`, so that both can run."""


def main() -> int:
    """Tell the story; 0 only if every check held."""
    options = _options()
    # a process started in the background ignores Ctrl-C unless told otherwise
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupted)
    home = Path(os.environ.get("SDM_DEMO_HOME") or f"{default_home()}-demo")
    settings = _settings(home)
    if settings is None:
        return 7
    platform, port_base = LocalPlatform(settings), settings.port_base
    stage = Stage(home, {"SDM_PORT_BASE": str(port_base), "SDM_ACTOR": "demo"})
    end, kept = "", options.keep
    try:
        if not _tell(stage, options):
            end = stage.failure()
    except KeyboardInterrupt:
        end, kept = "stopped by you", False
    except Exception as error:  # noqa: BLE001 - whatever it was: the reader learns where to look
        if os.environ.get("SDM_DEBUG") == "1":
            traceback.print_exc()
        end = stage.failure(str(error) or type(error).__name__)
        # without a single check there is no mesh to look at
        kept = kept and bool(stage.checks)
    if not kept:
        platform.down()
    if end:
        # the servers know only the variable that they are given
        end = end.replace("set SDM_PORT_BASE", "set SDM_DEMO_PORT_BASE")
        sys.stderr.write(f"\n{end}\n")
    if kept:
        stage.console.print(_how_to_go_on(home, port_base), soft_wrap=True, markup=False)
    elif not end:
        stage.console.print(_what_is_next(home), soft_wrap=True, markup=False)
    return 1 if end else 0


def _settings(home: Path) -> PlatformSettings | None:
    """The settings of the demo's mesh; None, and why on stderr, where they are of no use."""
    given: Any = os.environ.get("SDM_DEMO_PORT_BASE", PORT_BASE)
    try:
        found = PlatformSettings(home=home, port_base=given)
    except ValidationError:
        sys.stderr.write(f"SDM_DEMO_PORT_BASE is {given!r}: set it to {MAY_BE['port_base']}\n")
        return None
    if not _claimed(home):
        sys.stderr.write(f"{home} holds something else than a demo: set SDM_DEMO_HOME\n")
        return None
    return found


def _tell(stage: Stage, options: Any) -> bool:
    start = time.monotonic()
    stage.chapter("A mesh starts: two Kafka clusters, registry, Postgres, governor")
    stage.watched("up", "--fresh", "--yes", "--timeout", "300")
    took = time.monotonic() - start
    stage.check("every server is ready", *_ready(stage.sdm("status", quiet=True).data), took)
    Story(stage).tell()
    took = time.monotonic() - start
    held = stage.summary(f"The story took {took:.0f} s")
    if options.json:
        stage.write(options.json, took)
    return held


def _ready(status: Any) -> tuple[bool, str]:
    """Whether each service answers its probe, and those that do not."""
    services = (status or {}).get("services", [])
    late = [one["service"] for one in services if one["state"] != "ready"]
    return bool(services) and not late, ", ".join(late)


def _how_to_go_on(home: Path, port_base: int) -> str:
    programs = Path(sys.executable).parent
    return (
        "\nThe mesh is still running. To use it:\n"
        f"  export SDM_HOME={home} SDM_PORT_BASE={port_base} PATH={programs}:$PATH\n"
        "  sdm status\n  sdm catalog list\n  sdm audit log\nTo stop it:\n  sdm down"
    )


def _what_is_next(home: Path) -> str:
    return (
        f"\nThe servers are stopped; their logs are in {home / 'logs'} until the next run.\n"
        "To look around in this mesh: ./scripts/demo --keep\n"
        "To make your own: .venv/bin/sdm up, then docs/how-to/share-a-product.md"
    )


def _claimed(home: Path) -> bool:
    """Mark `home` as the demo's, whose mesh is emptied each time; False if it is another's."""
    mark = home / "demo"
    if not mark.exists():
        if home.exists() and any(home.iterdir()):
            return False
        home.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return True


def _options() -> Any:
    parser = argparse.ArgumentParser(
        prog="./scripts/demo", description="The story of the README on real servers."
    )
    parser.add_argument("--keep", action="store_true", help="leave the mesh running")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the checks as JSON")
    return parser.parse_args()


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
