"""What every Kafka Connect promises to controllers; subclassed for one in memory and a real one."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from mesh_events.errors import RefusedError
from processors.connect.rest import Connect, Deployed


class ConnectContract(ABC):
    """Subclasses bring a cluster, and a name and configs for a source connector of their own."""

    api: Connect
    name: str
    config: dict[str, str]

    @abstractmethod
    def fail(self) -> None:
        """Let the connector's task fail, now and whenever it is started."""

    @abstractmethod
    def wait(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""

    def seen(self) -> Deployed | None:
        return self.api.deployed().get(self.name)

    def until(self, condition: Callable[[Deployed], bool]) -> Deployed:
        def reached() -> bool:
            found = self.seen()
            return found is not None and condition(found)

        self.wait(reached)
        found = self.seen()
        assert found is not None
        return found

    def test_what_is_put_runs_with_its_config(self) -> None:
        assert self.seen() is None
        self.api.put(self.name, self.config)
        found = self.until(lambda one: one.runs)
        assert (found.name, found.kind, dict(found.config)) == (self.name, "source", self.config)
        assert (found.failed, found.failure, found.is_still) == ([], None, False)
        assert found.planned == len(found.tasks) == 1

    def test_a_config_that_is_put_again_is_changed(self) -> None:
        self.api.put(self.name, self.config)
        self.until(lambda one: one.runs)
        changed = {**self.config, "errors.retry.timeout": "7"}
        self.api.put(self.name, changed)
        self.until(lambda one: dict(one.config) == changed and one.runs)

    def test_a_stopped_connector_stays_so_until_it_is_resumed(self) -> None:
        self.api.put(self.name, self.config)
        self.until(lambda one: one.runs)
        self.api.stop(self.name)
        found = self.until(lambda one: one.is_still)
        assert not found.runs
        changed = {**self.config, "errors.retry.timeout": "7"}
        self.api.put(self.name, changed)
        self.until(lambda one: dict(one.config) == changed)
        assert self.until(lambda one: one.is_still)
        self.api.resume(self.name)
        self.until(lambda one: one.runs)

    def test_a_task_that_failed_says_why_and_stays_failed(self) -> None:
        self.api.put(self.name, self.config)
        self.until(lambda one: one.runs)
        self.fail()
        found = self.until(lambda one: bool(one.failed))
        assert not found.runs
        assert [part.task for part in found.failed] == [0]
        assert found.failure
        self.api.restart(self.name, failed_only=True)
        self.until(lambda one: bool(one.failed))

    def test_what_is_not_there_is_told_and_may_be_dropped(self) -> None:
        for act in (
            lambda: self.api.resume(self.name),
            lambda: self.api.restart(self.name, failed_only=False),
        ):
            with pytest.raises(RefusedError) as refused:
                act()
            assert refused.value.code == "unknown_connector"
        assert not self.api.stop(self.name)
        assert not self.api.delete(self.name)
        self.api.put(self.name, self.config)
        self.until(lambda one: one.runs)
        assert self.api.stop(self.name)
        assert self.api.delete(self.name)
        self.wait(lambda: self.seen() is None)
