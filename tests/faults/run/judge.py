"""What must hold after every fault, found out from outside.

The load is held, everything that was acknowledged is given time to be decided and done, then:
each acknowledged intent stands on the log, is decided exactly once and takes effect once; the rows
equal a replay in a new process and the naive oracle; the rights on the clusters are the grants in
force; the copy is the committed source, exactly and completely; nobody read without a right.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.admin import AdminClient

from tests import kafka_client
from tests.faults.copy_checker import differences, missing, read
from tests.faults.oracle import entitled, not_taken_once, unsettled
from tests.faults.run.ground import Ground
from tests.faults.run.prober import Attempt
from tests.faults.run.stage import WAIT_S, Stage
from tests.faults.worker import REPOSITORY

MESH_OWN = ("mesh.", "registry", "connect", "admin")


def all_is_right(stage: Stage) -> list[str]:
    """Hold the load, judge, let it go on; what is wrong, [] where nothing is."""
    return held(stage, lambda: [*the_log(stage), *right_copy(stage), *nobody_read(stage)])


def log_is_right(ground: Ground) -> list[str]:
    """The same for a mesh without links and probers."""
    return held(ground, lambda: the_log(ground))


def held(ground: Ground, look: Callable[[], list[str]]) -> list[str]:
    """Judge while nobody speaks."""
    wrong = [f"{each.name} does not stand still" for each in ground.busy if not each.hold(WAIT_S)]
    try:
        return [*wrong, *look(), *failures(ground)]
    finally:
        for each in ground.busy:
            each.resume()


def the_log(ground: Ground) -> list[str]:
    """Intents, rows and rights."""
    return [*settled(ground), *right_rows(ground), *right_rights(ground)]


def settled(ground: Ground, seconds: float = WAIT_S) -> list[str]:
    """Wait until everything is decided and every right is as decided; then look at each intent."""
    deadline = time.monotonic() + seconds
    while waiting := unsettled(ground.transcript.read().said()):
        if time.monotonic() > deadline:
            return [f"not settled within {seconds:g} s: {', '.join(waiting[:5])}"]
        time.sleep(0.3)
    said = {each.offset: each.id for speaking in ground.speaking for each in speaking.said}
    return not_taken_once(ground.transcript.history(), said)


def right_rows(ground: Ground, seconds: float = 60) -> list[str]:
    """Rows equal a replay; the controller of rows repairs them a moment after a governor died."""
    deadline = time.monotonic() + seconds
    while True:
        expected = replayed(ground)
        found = ground.plain().rows()
        if found == expected["rows"] and not expected["undecided"]:
            return unlike_oracle(ground.transcript.read().said(), found)
        if time.monotonic() > deadline:
            return [f"rows differ from a replay: {difference(expected['rows'], found)}"]


def replayed(ground: Ground) -> dict[str, Any]:
    """What a new process makes of the log."""
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    environment |= {"SDM_HOME": str(ground.home), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.replayed"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode:
        raise AssertionError(f"the replay failed: {done.stderr.strip()[-500:]}")
    return dict(json.loads(done.stdout))


def unlike_oracle(said: dict[str, Any], rows: dict[str, dict[str, Any]]) -> list[str]:
    """Where rows say another state than the naive oracle works out."""
    states = {name: each["state"] for name, each in said["accesses"].items()}
    links = {name: each["state"] for name, each in said["links"].items()}
    texts = {name: each["description"] for name, each in said["products"].items()}
    pairs = (
        ("mesh.access", {key: row["state"] for key, row in rows["mesh.access"].items()}, states),
        ("mesh.links", {key: row["state"] for key, row in rows["mesh.links"].items()}, links),
        (
            "mesh.catalog",
            {key: row["description"] for key, row in rows["mesh.catalog"].items()},
            texts,
        ),
    )
    return [
        f"{topic} differs from the oracle: {sorted(set(found.items()) ^ set(told.items()))[:4]}"
        for topic, found, told in pairs
        if found != told
    ]


def difference(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Keys of rows that differ."""
    return [
        f"{topic} {key}"
        for topic in expected
        for key in expected[topic].keys() | found[topic].keys()
        if expected[topic].get(key) != found[topic].get(key)
    ][:6]


def right_rights(ground: Ground, seconds: float = 30) -> list[str]:
    """Who may read a topic by its name is who has a grant in force, on every cluster."""
    deadline = time.monotonic() + seconds
    while True:
        said = ground.transcript.read().said()
        wanted = {each for each in entitled(said) if not broken_link(said, each)}
        found = {
            (cluster, principal, topic)
            for cluster in ground.kit.endpoints.clusters
            for principal, topic in ground.plain(cluster).readers()
            if not principal.startswith(MESH_OWN)
        }
        if found == wanted:
            return []
        if time.monotonic() > deadline:
            extra, lacking = sorted(found - wanted), sorted(wanted - found)
            return [f"rights without a grant: {extra}; grants without a right: {lacking}"]
        time.sleep(0.5)


def broken_link(said: dict[str, Any], right: tuple[str, str, str]) -> bool:
    """Whether the right is one over a link that was deleted under its grant."""
    _, application, topic = right
    return any(
        each["application"] == application
        and said["products"][each["product"]]["topic"] == topic
        and each["link"] in said["links"]
        and said["links"][each["link"]]["desired"] == "DELETED"
        for each in said["accesses"].values()
    )


def right_copy(stage: Stage, seconds: float = WAIT_S) -> list[str]:
    """The reader finds in west what is committed in east, record for record, to the last one."""
    copied, deadline = stage.copied, time.monotonic() + seconds
    reader = stage.kit.login(copied.reader.name, "west").config()
    # the copy's first partition may have no record yet
    if (told := Attempt(reader, copied.topic, "the reader").make(20)) in ("refused", "no answer"):
        return [f"who has a grant cannot read the copy: {told}"]
    while True:
        source = read(stage.kit.admin_login("east").config(), copied.topic)
        copy = read(stage.kit.admin_login("west").config(), copied.topic)
        wrong = differences(source, copy, f"east/{topic_id(stage, copied.topic)}")
        if wrong:
            return wrong
        left = missing(source, copy)
        if left == 0:
            return unwritten(stage, source)
        if time.monotonic() > deadline:
            return [f"the copy lacks {left} records after {seconds:g} s"]
        time.sleep(0.5)


def unwritten(stage: Stage, source: dict[int, list[tuple[Any, ...]]]) -> list[str]:
    """Records that Kafka acknowledged and the source does not have."""
    stands = {
        (partition, offset): value
        for partition, records in source.items()
        for offset, _, value, _ in records
    }
    acknowledged = stage.writing.acknowledged.records
    lost = [place for place, value in acknowledged.items() if stands.get(place) != value]
    return [f"the source lost {len(lost)} acknowledged records: {lost[:3]}"] if lost else []


def topic_id(stage: Stage, topic: str, cluster: str = "east") -> str:
    """The id that Kafka gave a topic."""
    return kafka_client.topic_id(AdminClient(stage.kit.admin_login(cluster).config()), topic)


def nobody_read(stage: Stage, seconds: float = WAIT_S) -> list[str]:
    """Everybody without a right is refused behind the fault, and nobody ever read."""
    probing = stage.probing
    unproven = [f"was not refused behind the fault: {who}" for who in probing.unproven(seconds)]
    return unproven + [f"read without a right: {leak}" for leak in probing.leaks]


def failures(ground: Ground) -> list[str]:
    """What the load itself stumbled over; told once."""
    found = [failure for each in ground.busy for failure in each.failures]
    for each in ground.busy:
        each.failures.clear()
    return found[:5]
