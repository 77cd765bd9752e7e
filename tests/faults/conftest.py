"""Fixtures of the run's mesh; most tests here start their own. A failure shows workers' logs."""

from collections.abc import Generator

import pytest

from tests.faults.worker import WorkerProcess
from tests.mesh_fixtures import governor_pid, kit

__all__ = ["governor_pid", "kit", "pytest_runtest_makereport"]
_LAST_LINES = 80


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what each worker said last to the report of a failed test."""
    report = yield
    stage = getattr(item, "funcargs", {}).get("stage")
    if report.failed and stage is not None:
        for worker in _last_on_each_port(stage.workers):
            report.sections.append(
                (f"worker on port {worker.port}", worker.last_lines(_LAST_LINES))
            )
    return report


def _last_on_each_port(workers: list[WorkerProcess]) -> list[WorkerProcess]:
    return list({worker.port: worker for worker in workers}.values())
