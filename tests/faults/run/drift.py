"""Rights and topics that an admin changes behind the mesh's back."""

import os
import subprocess
import sys
import time

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.faults.run.fault import Fault, SkippedError
from tests.faults.run.judge import all_is_right, topic_id
from tests.faults.run.links import closed_and_made_anew, filled
from tests.faults.run.stage import PARTITIONS, WAIT_S, Stage, eventually
from tests.faults.worker import REPOSITORY
from tests.mesh_kit import fresh

REPAIR_S = 40
"""The controller looks every ten seconds; a busy machine may need some rounds."""
USAGE = 2
"""Exit code of `sdm` for a command that it does not know."""
READING = (AclOperation.READ, AclOperation.DESCRIBE)


def admin_of(stage: Stage, cluster: str) -> AdminClient:
    """The cluster's admin, who may do everything there."""
    return AdminClient(stage.kit.admin_login(cluster).config())


def add_right(stage: Stage, cluster: str, principal: str, topic: str) -> None:
    """Let a principal read a topic, without a word on the log."""
    new = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{principal}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in READING
    ]
    # held: a client that is collected fails what it was asked for
    admin = admin_of(stage, cluster)
    for answer in admin.create_acls(new).values():
        answer.result(15)


def remove_rights(stage: Stage, cluster: str, principal: str, topic: str) -> None:
    """Take every right on a topic by its name from a principal."""
    gone = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{principal}",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = admin_of(stage, cluster)
    removed = admin.delete_acls([gone])[gone].result(15)
    assert removed, f"{principal} had no right on {topic}"


def right_removed(stage: Stage) -> float:
    """Who has a grant loses the right; it comes back without a word on the log."""
    right = (stage.copied.reader.name, stage.copied.topic)
    remove_rights(stage, "west", *right)
    began = time.monotonic()
    eventually(lambda: right in stage.plain("west").readers(), "the right is back", REPAIR_S)
    return time.monotonic() - began


def revoked_right_back(stage: Stage) -> float:
    """An admin gives back what the mesh has revoked; it is withdrawn again."""
    _, _, application, _ = stage.next_spare()
    stage.revoke_one(forbid=False)()
    right = (application.name, stage.copied.topic)
    add_right(stage, "east", *right)
    began = time.monotonic()
    eventually(lambda: right not in stage.plain().readers(), "the right is gone", REPAIR_S)
    recovery = time.monotonic() - began
    stage.forbid(application, stage.copied.topic, "one whose right an admin brought back")
    return recovery


def topic_deleted(stage: Stage) -> float:
    """The source of a product is deleted: the link says so, and says so again once it is back."""
    hurt = filled(stage)
    old = topic_id(stage, hurt.topic)
    east = admin_of(stage, "east")
    began = time.monotonic()
    east.delete_topics([hurt.topic])[hurt.topic].result(15)
    stage.kit.wait_for(
        lambda image: image.links[hurt.link].failure_code == "source_missing",
        "the link tells that its source is gone",
        WAIT_S,
    )
    told = time.monotonic() - began

    def made() -> bool:
        east.create_topics([NewTopic(hurt.topic, PARTITIONS, 1)])[hurt.topic].exception(15)
        return topic_id(stage, hurt.topic) != old

    stage.soon(made, "the source is made again")
    stage.kit.wait_for(
        lambda image: image.links[hurt.link].failure_code == "source_recreated",
        "the link tells that its source is another one",
        WAIT_S,
    )
    closed_and_made_anew(stage, hurt, "source_recreated")
    return told


def foreign_right(stage: Stage) -> float:
    """A principal that no domain knows gets the right to read a product: told, and left alone."""
    stranger = fresh("stranger")
    right = (stranger, stage.copied.topic)
    add_right(stage, "east", *right)
    began = time.monotonic()
    try:
        while stranger not in told_of_drift(stage):
            assert time.monotonic() - began < REPAIR_S, "nobody tells of the stranger's right"
            time.sleep(1)
        recovery = time.monotonic() - began
        assert right in stage.plain().readers(), "what the mesh has not given is not its to take"
        return recovery
    finally:
        remove_rights(stage, "east", *right)


def told_of_drift(stage: Stage) -> str:
    """What `sdm drift` tells; SkippedError where this version has no such command."""
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "self_service.cli", "drift", "-o", "json"],
        cwd=REPOSITORY,
        env={**environment, "SDM_HOME": str(stage.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode == USAGE:
        raise SkippedError("this version has no `sdm drift`: strangers' rights are not told")
    return done.stdout


FAULTS = (
    Fault(
        "right-removed",
        "an admin takes a reader's right; time to repair",
        right_removed,
        all_is_right,
    ),
    Fault(
        "revoked-right-back",
        "an admin gives a revoked right back; time to repair",
        revoked_right_back,
        all_is_right,
    ),
    Fault(
        "foreign-right-added",
        "an admin lets a stranger read a product; time until it is told",
        foreign_right,
        all_is_right,
    ),
    Fault(
        "source-deleted",
        "an admin deletes a product's topic; time until it is told",
        topic_deleted,
        all_is_right,
        300,
    ),
)
