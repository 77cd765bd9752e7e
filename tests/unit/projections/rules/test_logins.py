"""No principal that the mesh issues credentials to is a login that administers a cluster."""

import pytest

from mesh_events import intents
from projections.deciding.verdict import Accepted, Rejected, Verdict
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.fixture
def log() -> MemoryLog:
    """Cluster `east` is administered as `east.admin`, cluster `west` as `kafka`."""
    made = MemoryLog()
    made.start_governor()
    for name, user in (("east", "east.admin"), ("west", "kafka")):
        made.operator(intents.ClusterRegistered, **{**story.cluster(name), "admin_user": user})
    made.operator(intents.DomainRegistered, **story.domain("east", "east"))
    made.govern()
    return made


def code_of(verdict: Verdict) -> str:
    return verdict.code if isinstance(verdict, Rejected) else ""


def test_an_application_with_the_name_of_an_administrators_login_is_refused(log: MemoryLog) -> None:
    offset = log.say(intents.ApplicationRegistered, "east", application="east.admin")
    assert code_of(log.verdict(offset)) == "administrator_login"


def test_a_domain_with_the_name_of_an_administrators_login_is_refused(log: MemoryLog) -> None:
    offset = log.operator(intents.DomainRegistered, **story.domain("kafka", "east"))
    assert code_of(log.verdict(offset)) == "administrator_login"


def test_an_application_with_any_other_name_is_accepted(log: MemoryLog) -> None:
    offset = log.say(intents.ApplicationRegistered, "east", application="east.admins")
    assert log.verdict(offset) == Accepted()


@pytest.mark.parametrize("user", ["east", "east.app", "mesh.governor", "mesh.link.x.00000000"])
def test_a_cluster_cannot_be_administered_with_a_login_that_the_mesh_issues(
    log: MemoryLog, user: str
) -> None:
    log.say(intents.ApplicationRegistered, "east", application="east.app")
    log.govern()
    offset = log.operator(
        intents.ClusterRegistered, **{**story.cluster("north"), "admin_user": user}
    )
    assert code_of(log.verdict(offset)) == "administrator_login"
