"""`python -m local_platform up|down|status|...`: a thin entry beside `sdm`.

`domain-server NAME` starts a domain's own Spark Connect server unless it runs, prints where it
answers and a reference to its token, as JSON, and ends when it is ready. `connect-worker NAME` does
so with its own Kafka Connect worker.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable

from local_platform.errors import PlatformError
from local_platform.platform import LocalPlatform
from local_platform.settings import read_settings
from local_platform.supervision.state import Progress


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _reporter() -> Callable[[Progress], None]:
    """Return a report that prints each change once."""
    began = time.monotonic()
    said: set[str] = set()

    def report(progress: Progress) -> None:
        lines = [f"{one.name} {one.state}" for one in progress.services]
        if progress.stage == "fetch":
            lines = [f"fetched {progress.done // 2**24 * 16} of {progress.total // 2**20} MiB"]
        if progress.stage == "running":
            lines = ["already running: nothing to do"]
        for line in lines:
            if line not in said:
                said.add(line)
                _say(f"{time.monotonic() - began:6.1f} s  {line}")

    return report


def _status(platform: LocalPlatform) -> None:
    for one in platform.status(memory=True):
        _say(
            f"{one.name:12} {one.state:10} pid {one.pid or '-':<8} port {one.port or '-':<6} "
            f"restarts {one.restarts}  {one.rss_bytes / 2**20:6.0f} MiB  {one.detail}"
        )


def _start_server(platform: LocalPlatform, domain: str) -> None:
    def announce(remote: str, token: str) -> None:
        _say(json.dumps({"remote": remote, "token": token}))

    platform.domain_server(domain, announce=announce)


def _start_worker(platform: LocalPlatform, domain: str) -> None:
    def announce(url: str, user: str, password: str) -> None:
        _say(json.dumps({"url": url, "user": user, "password": password}))

    platform.connect_worker(domain, announce=announce)


def main() -> int:
    """Run one command; return 1 with a clear sentence where it failed."""
    parser = argparse.ArgumentParser(prog="python -m local_platform", description=__doc__)
    of_domains = {
        "domain-server": _start_server,
        "connect-worker": _start_worker,
    }
    parser.add_argument("command", choices=["up", "down", "status", *of_domains])
    parser.add_argument("domain", nargs="?", help=f"{', '.join(of_domains)}: whose")
    parser.add_argument("--fresh", action="store_true", help="up: empty the data first")
    parser.add_argument("--services", help="names, separated by commas; default: all")
    options = parser.parse_args()
    if (options.command in of_domains) != (options.domain is not None):
        parser.error(f"{', '.join(of_domains)} name a domain, and nothing else does")
    try:
        names = options.services.split(",") if options.services else None
        platform = LocalPlatform(read_settings(), names)
        if options.command == "up":
            platform.up(fresh=options.fresh, report=_reporter())
        elif options.command == "down":
            _say("stopped: " + (", ".join(platform.down()) or "nothing was running"))
        elif options.command in of_domains:
            of_domains[options.command](platform, options.domain)
        else:
            _status(platform)
    except PlatformError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: nothing is left running; run `up` again to resume\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
