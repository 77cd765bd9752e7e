"""ACLs on clusters, groups, transactional ids and delegation tokens, or of one host, on Kafka."""

import json
import shlex
from contextlib import ExitStack

import pytest
from typer.testing import CliRunner

from local_platform import PlatformSettings
from mesh_events.facts import DriftKind, Remedy
from processors.clusters.rights import Acl
from self_service.cli.app import app
from tests.integration.rights.test_drift import changed_behind, told, wait_told
from tests.integration.rights.test_rights import controller_of, filled
from tests.mesh_kit import Application, Domain, Mesh, eventually, fresh


def strange(principal: str, owner: Domain, topic: str) -> list[Acl]:
    """An ACL of each kind of resource that touches the mesh."""
    return [
        Acl(principal, "alter", "cluster", "kafka-cluster"),
        Acl(principal, "read", "group", f"{owner.name}.weekly"),
        Acl(principal, "write", "transactional-id", f"{owner.name}.orders"),
        Acl(principal, "describe", "delegation-token", "tok"),
        Acl(principal, "create-tokens", "user", f"User:{owner.name}"),
        Acl(principal, "read", "topic", topic, host="10.0.0.1"),
    ]


def test_a_login_of_the_mesh_keeps_no_right_that_nobody_granted(
    kit: Mesh, owner: Domain, application: Application
) -> None:
    _, topic = filled(owner)
    acls = strange(application.name, owner, topic)
    subject, admin = f"principal/{application.name}", controller_of(kit, "east")
    own = admin.acls(principal=application.name)
    with ExitStack() as stack:
        for acl in acls:
            stack.enter_context(changed_behind(kit, acl))
        eventually(lambda: admin.acls(principal=application.name) == own, "they are withdrawn")
        wait_told(kit, subject, Remedy.REPAIRED)
    facts = told(kit, subject)
    assert {fact.drift for fact in facts} == {DriftKind.UNGRANTED_RIGHT}
    assert {line for fact in facts for line in fact.bindings} <= {str(acl) for acl in acls}


def test_a_strangers_rights_are_shown_with_the_commands_that_delete_them(
    kit: Mesh, owner: Domain, settings: PlatformSettings
) -> None:
    _, topic = filled(owner)
    stranger = fresh("mallory")
    acls, admin = strange(stranger, owner, topic), controller_of(kit, "east")
    runner = CliRunner(env={"SDM_HOME": str(settings.home), "SDM_DOMAIN": None})
    with ExitStack() as stack:
        for acl in acls:
            stack.enter_context(changed_behind(kit, acl))

        def shown() -> list[dict[str, object]]:
            done = runner.invoke(app, ["drift", "--cluster", "east", "-o", "json"])
            return [one for one in json.loads(done.stdout) if one["principal"] == stranger]

        [found] = shown()
        assert found["kind"] == DriftKind.FOREIGN_RIGHT
        assert found["bindings"] == [str(acl) for acl in sorted(acls)]
        removal = found["removal"]
        assert isinstance(removal, list)
        assert len(removal) == len(acls)
        fact = wait_told(kit, f"principal/{stranger}", Remedy.LEFT)
        assert set(fact.bindings) <= {str(acl) for acl in acls}
        assert admin.acls(principal=stranger) == set(acls)
        # of the six the two whose options differ most, since each starts a Java process
        for command in (removal[0], removal[-1]):
            words = shlex.split(command)
            assert words[0] == "sdm"
            assert runner.invoke(app, words[1:]).exit_code == 0
        left = admin.acls(principal=stranger)
        assert left == set(sorted(acls)[1:-1])


@pytest.mark.usefixtures("application")
def test_what_the_mesh_grants_on_groups_and_transactional_ids_is_not_drift(
    kit: Mesh, owner: Domain
) -> None:
    mine = [f"principal/{owner.name}", f"principal/{owner.name}."]
    acls = controller_of(kit, "east").acls(principal=owner.name)
    assert {acl.resource for acl in acls} == {"topic", "group", "transactional-id"}
    assert not [fact for subject in mine for fact in told(kit, subject)]
