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
UNREACHED = (0, ["not audited: the package index does not answer"])


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


def failed(said: str) -> tuple[int, list[str]]:
    """The same where pip-audit made no report: no way to the index is no failure, all else is."""
    if any(word in said for word in ("ConnectionError", "Timeout", "Max retries exceeded")):
        return UNREACHED
    return 1, [f"the audit itself failed: {said.strip()[-500:] or 'without a word'}"]


def main() -> int:
    """Audit the lock file."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(LOCK), "--require-hashes"]
    command += ["--disable-pip", "--progress-spinner", "off", "-f", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        code, lines = judge(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        code, lines = UNREACHED
    except json.JSONDecodeError:
        code, lines = failed(done.stderr)
    sys.stdout.write("\n".join(lines) + "\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
