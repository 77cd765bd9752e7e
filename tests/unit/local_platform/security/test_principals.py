"""Whether a cluster answers, by what its brokers and its controller say."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from local_platform.errors import NotReadyError
from local_platform.security import principals
from local_platform.security.principals import Asking
from mesh_events.kafka.connection import Connection


class Cluster:
    """An administrator's client of a cluster that says the same to each new topic."""

    def __init__(self, says: BaseException | None) -> None:
        self.says = says

    def __call__(self, _: Any) -> "Cluster":
        return self

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(brokers={1: f"one that answers within {timeout}"})

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, "Future[None]"]:
        answer: Future[None] = Future()
        if self.says is None:
            answer.set_result(None)
        else:
            answer.set_exception(self.says)
        return {topic.topic: answer for topic in topics}


@pytest.fixture
def login() -> Connection:
    return Connection("here:1", "admin", "secret", None)


@pytest.mark.parametrize(
    "says",
    [
        None,
        KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)),
        KafkaException(KafkaError(KafkaError.POLICY_VIOLATION)),
    ],
)
def test_a_topic_that_is_there_is_an_answer_as_well(
    says: BaseException | None, login: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(principals, "AdminClient", Cluster(says))
    Asking(lambda: login).require_answer(1.0)


@pytest.mark.parametrize(
    "says", [KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)), TimeoutError()]
)
def test_a_controller_that_does_not_answer_is_told(
    says: BaseException, login: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(principals, "AdminClient", Cluster(says))
    with pytest.raises(NotReadyError, match="Kafka at here:1"):
        Asking(lambda: login).require_answer(1.0)
