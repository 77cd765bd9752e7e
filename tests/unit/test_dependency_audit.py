"""What an audit of the pinned packages says, and that there is no package without a hash."""

import re
from typing import Any

from tests.dependency_audit import LOCK, UNREACHED, failed, judge


def package(name: str, *vulnerable: tuple[str, list[str]]) -> dict[str, Any]:
    vulns = [{"id": one, "fix_versions": mended} for one, mended in vulnerable]
    return {"name": name, "version": "1.0", "vulns": vulns}


UNKNOWN = {"name": "ours", "skip_reason": "not found"}


def test_a_vulnerability_fails_and_names_the_version_that_mends_it() -> None:
    report = {"dependencies": [package("good"), package("bad", ("CVE-1", ["1.1"]), ("CVE-2", []))]}
    code, lines = judge(report)
    assert code == 1
    assert lines[:2] == [
        "bad 1.0: CVE-1, mended in 1.1",
        "bad 1.0: CVE-2, mended in no version yet",
    ]


def test_what_could_not_be_audited_is_told() -> None:
    assert judge({"dependencies": [UNKNOWN, UNKNOWN]}) == (
        0,
        ["not audited: the index tells no vulnerabilities of 2 packages"],
    )
    code, lines = judge({"dependencies": [package("good"), UNKNOWN]})
    assert (code, lines) == (
        0,
        ["no known vulnerability in 1 packages; 1 are unknown to the index"],
    )


def test_an_audit_that_cannot_be_made_fails_unless_nobody_answers() -> None:
    assert failed("requests.exceptions.ConnectionError: Max retries exceeded") == UNREACHED
    assert failed("No module named pip_audit")[0] == 1
    assert failed("")[0] == 1


def test_every_package_is_pinned_with_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.read_text("utf-8"))
    packages = [one for one in entries if not one.startswith("#")]
    assert len(packages) > 50
    for one in packages:
        assert re.match(r"[\w.-]+==\S+", one), one
        assert "--hash=sha256:" in one, one
