"""Which processes are a home's servers."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_platform.layout import Layout
from local_platform.supervision.process import marked
from tests.unit.local_platform.security.test_accounts import free_number

Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def started() -> Iterator[Started]:
    """Processes that are ended with the test."""
    found: Started = []
    yield found
    for one in found:
        one.kill()
        one.wait()


def leader(started: Started, home: Path, name: str | None, account: int | None = None) -> int:
    """Somebody's session leader that bears the mark of a home; its pid."""
    mark = {"SDM_SUPERVISED_HOME": str(home)}
    if name is not None:
        mark["SDM_SUPERVISED_NAME"] = name
    group = {} if account is None else {"user": account, "group": account, "extra_groups": []}
    one = subprocess.Popen(
        ["/bin/sleep", "600"],
        env=mark,
        cwd="/",
        start_new_session=True,
        **group,  # type: ignore[call-overload]
    )
    started.append(one)
    return int(one.pid)


def names(home: Path) -> dict[int, str]:
    return {identity.pid: name for name, identity in marked(home)}


def test_a_process_without_a_services_name_is_none_of_a_homes(
    tmp_path: Path, started: Started
) -> None:
    leader(started, tmp_path, None)
    mine = leader(started, tmp_path, "kafka-east")
    assert names(tmp_path) == {mine: "kafka-east"}


def test_what_another_user_marks_is_none_of_a_homes(tmp_path: Path, started: Started) -> None:
    """Root can read every mark, and stops what it finds."""
    if os.geteuid() != 0:
        pytest.skip("only root can start a process as somebody else")
    server, stranger = free_number(), free_number() + 1
    data = Layout(tmp_path).data / "spark-east"
    data.mkdir(parents=True)
    os.chown(data, server, server)
    leader(started, tmp_path, "kafka-east", stranger)
    kept = leader(started, tmp_path, "spark-east", server)
    assert names(tmp_path) == {kept: "spark-east"}
