"""Logins that were on a cluster before the mesh, on real brokers."""

import secrets

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from mesh_events.intents import ApplicationRegistered
from processors.clusters.kafka import KafkaAdmin
from projections.identity import LOGIN_TAKEN
from tests.mesh_kit import Domain, Mesh, eventually, fresh


def made_before(kit: Mesh, name: str, password: str) -> None:
    """A SCRAM user as an administrator makes one."""
    admin = kit.admin()
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(name, info, password.encode())
    for answer in admin.alter_user_scram_credentials([change]).values():
        answer.result(15)


def test_a_login_with_a_life_before_the_mesh_keeps_its_password(kit: Mesh, owner: Domain) -> None:
    name, password = f"{owner.name}.{fresh('legacy')}", secrets.token_hex(12)
    admin = KafkaAdmin("east", kit.admin_login("east"))
    made_before(kit, name, password)
    eventually(lambda: admin.lets_in(name, password), f"the login {name}")

    kit.accepted(owner.say(ApplicationRegistered, application=name))
    image = kit.wait_for(
        lambda image: (
            (login := image.identity.credentials[name, "east"]).failure_code or login.issued
        ),
        f"the controller's word on {name}",
    )

    login = image.identity.credentials[name, "east"]
    assert (login.failure_code, login.issued) == (LOGIN_TAKEN, None)
    assert "use another name" in (login.failure or "")
    assert admin.lets_in(name, password)


def test_a_login_that_is_closed_is_told_from_an_open_one(kit: Mesh) -> None:
    name, admin = fresh("closing"), KafkaAdmin("east", kit.admin_login("east"))
    assert admin.login_of(name) == "absent"
    admin.retire_login(name)
    assert admin.login_of(name) == "absent"
    admin.set_password(name, "one")
    eventually(lambda: admin.login_of(name) == "open", "the login")
    admin.retire_login(name)
    eventually(lambda: admin.login_of(name) == "closed", "its end")
