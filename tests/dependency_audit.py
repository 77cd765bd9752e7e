"""Known vulnerabilities of the pinned packages: `./scripts/audit`.

Ends with 1 if there is one. Where the package index tells nothing about any package, as a mirror
may, that is said and is no failure: the audit is for whoever reaches one that does.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[1] / "requirements.lock"
LIMIT_S = 300


def judge(report: dict[str, Any]) -> tuple[int, list[str]]:
    """(exit code, what to say) of pip-audit's JSON report."""
    packages = report["dependencies"]
    audited = [one for one in packages if "skip_reason" not in one]
    found = [
        f"{one['name']} {one['version']}: {each['id']}, mended in "
        f"{', '.join(each['fix_versions']) or 'no version yet'}"
        for one in audited
        for each in one["vulns"]
    ]
    if found:
        return 1, [*found, "raise the bound in pyproject.toml and write requirements.lock anew"]
    if not audited:
        return 0, [f"not audited: the index tells no vulnerabilities of {len(packages)} packages"]
    missing = len(packages) - len(audited)
    rest = f"; {missing} are unknown to the index" if missing else ""
    return 0, [f"no known vulnerability in {len(audited)} packages{rest}"]


def main() -> int:
    """Audit the lock file."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(LOCK), "--require-hashes"]
    command += ["--disable-pip", "--progress-spinner", "off", "-f", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        report = None
    code, lines = judge(report) if report else (0, ["not audited: the index does not answer"])
    sys.stdout.write("\n".join(lines) + "\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
