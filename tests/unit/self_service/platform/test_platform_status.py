"""What `sdm status` takes for a mesh that is well."""

from pathlib import Path

import pytest

from local_platform import ServiceStatus
from local_platform.domain_servers import CONNECT, SPARK
from local_platform.supervision.state import State
from self_service.cli.platform.commands import _is_well, _service

NOW = 1_000.0


@pytest.mark.parametrize(
    ("name", "state", "since", "well"),
    [
        ("kafka-east", State.READY, 0.0, True),
        ("kafka-east", State.STARTING, NOW - 1, False),
        ("kafka-east", State.RESTARTING, NOW - 1, False),
        (f"{SPARK.prefix}east", State.READY, 0.0, True),
        (f"{CONNECT.prefix}east", State.STARTING, NOW - 179, True),
        (f"{SPARK.prefix}east", State.STARTING, NOW - 181, False),
        (f"{SPARK.prefix}east", State.NOT_ANSWERING, NOW - 1, False),
        (f"{SPARK.prefix}east", State.FAILED, NOW - 1, False),
    ],
)
def test_only_a_domains_server_may_be_starting_and_not_for_ever(
    name: str, state: State, since: float, well: bool
) -> None:
    service = ServiceStatus(name=name, state=state, since=since, log=Path("x"))
    assert _is_well(service, NOW) is well


@pytest.mark.parametrize(("worker", "detail"), [({"standby": True}, "standby"), ({}, "")])
def test_a_worker_that_stands_by_is_shown_as_standby(worker: dict[str, bool], detail: str) -> None:
    shown = {
        name: _service(ServiceStatus(name=name, state=State.READY, log=Path("x")), None, worker)
        for name in ("governor", "registry")
    }
    assert shown["governor"]["detail"] == detail
    assert shown["registry"]["detail"] == ""
