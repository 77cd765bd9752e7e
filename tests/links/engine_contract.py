"""What every engine promises; subclassed for the one in memory and for the real one."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from spark_streams.engine import CopySpec, Failed, FlowEngine, Running
from spark_streams.errors import EngineError


class EngineContract(ABC):
    """Subclasses bring an engine, a link that may be started, and a way to look at the copy."""

    engine: FlowEngine

    @abstractmethod
    def other_process(self) -> FlowEngine:
        """The same engine as another process sees it."""

    @abstractmethod
    def spec(self, writer: str, *, may_write: bool = True) -> CopySpec:
        """An incarnation that starts behind the second record of partition 0."""

    @abstractmethod
    def produce(self, keys: list[bytes]) -> None:
        """Append records to partition 0 of the source."""

    @abstractmethod
    def copied(self) -> list[bytes]:
        """Keys in partition 0 of the copy."""

    @abstractmethod
    def wait(self, condition: Callable[[], bool]) -> None:
        """Let time pass until something is so."""

    def states(self, engine: FlowEngine, spec: CopySpec) -> tuple[Running | Failed, ...]:
        return engine.states().get(spec.link, ())

    def test_it_copies_from_the_given_offsets_on(self) -> None:
        self.produce([b"0", b"1", b"2"])
        self.engine.start(self.spec("one"))
        self.wait(lambda: self.copied() == [b"2"])
        self.produce([b"3"])
        self.wait(lambda: self.copied() == [b"2", b"3"])

    def test_another_process_sees_and_stops_what_runs(self) -> None:
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        assert self.states(self.engine, spec) == ()
        self.engine.start(spec)
        other = self.other_process()
        assert self.states(self.engine, spec) == (Running(spec.writer),)
        assert self.states(other, spec) == (Running(spec.writer),)
        other.stop(spec.link)
        assert self.states(other, spec) == ()
        other.close()

    def test_stopping_is_final_and_may_be_repeated(self) -> None:
        self.produce([b"0", b"1", b"2"])
        spec = self.spec("one")
        self.engine.stop(spec.link)
        self.engine.start(spec)
        self.wait(lambda: self.copied() == [b"2"])
        self.engine.stop(spec.link)
        self.engine.stop(spec.link)
        assert self.states(self.engine, spec) == ()

    def test_a_copy_without_the_right_to_write_fails_with_its_reason(self) -> None:
        self.produce([b"0", b"1", b"2", b"3"])
        spec = self.spec("one", may_write=False)
        # an engine may notice at once
        with suppress(EngineError):
            self.engine.start(spec)

        def failed() -> bool:
            self.produce([b"more"])
            return any(isinstance(state, Failed) for state in self.states(self.engine, spec))

        self.wait(failed)
        (state,) = self.states(self.engine, spec)
        assert isinstance(state, Failed)
        assert state.writer == spec.writer
        assert state.reason
        assert spec.destination.password not in state.reason
        assert self.copied() == []
        self.engine.stop(spec.link)
        assert self.states(self.engine, spec) == ()
