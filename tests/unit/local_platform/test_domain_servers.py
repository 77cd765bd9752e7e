"""Domains with servers of their own: their numbers, ports and places in the order."""

import json
import os
from pathlib import Path

import pytest

from local_platform.domain_servers import CONNECT, KINDS, SPARK, Kind, numbers, remember
from local_platform.errors import ServiceFailedError
from local_platform.platform import LocalPlatform
from local_platform.ports import OFFSETS
from local_platform.services import catalogue, chosen, connect, stop_waves
from local_platform.services.connect import WORKER, Connect
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision import launch
from local_platform.supervision.process import Identity
from local_platform.supervision.state import ServiceStatus, State
from local_platform.supervision.supervisor import Supervisor


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    found.make_folders()
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.prefix)
def test_a_domain_keeps_its_number_and_its_port(site: Site, kind: Kind) -> None:
    for domain in ("east", "west", "east", "a-b"):
        remember(site.layout, domain, kind)
    assert numbers(site.layout, kind) == {"east": 0, "west": 1, "a-b": 2}
    first = site.settings.port_base + kind.first_offset
    ports = [site.port(f"{kind.prefix}{domain}") for domain in ("east", "west", "a-b")]
    assert ports == [first, first + 1, first + 2]


def test_no_two_services_have_the_same_port(site: Site) -> None:
    names = [f"d{number}" for number in range(max(kind.most for kind in KINDS))]
    for kind in KINDS:
        for name in names[: kind.most]:
            remember(site.layout, name, kind)
    ports = [site.port(f"{kind.prefix}{name}") for kind in KINDS for name in names[: kind.most]]
    taken = [site.settings.port_base + offset for offset in OFFSETS.values()]
    assert len({*ports, *taken}) == len(ports) + len(taken)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.prefix)
def test_there_are_no_more_servers_than_ports(site: Site, kind: Kind) -> None:
    names = [f"d{number}" for number in range(kind.most)]
    for name in names:
        remember(site.layout, name, kind)
    running = [f"{kind.prefix}{name}" for name in names]
    with pytest.raises(ServiceFailedError, match=f"{kind.most} domains have a {kind.what} here"):
        remember(site.layout, "one-more", kind, running)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.prefix)
def test_the_last_numbers_are_those_of_servers_that_do_not_run(site: Site, kind: Kind) -> None:
    names = [f"d{number}" for number in range(kind.most)]
    for name in names:
        remember(site.layout, name, kind)
    remember(site.layout, "d3", kind, running=())
    assert len(numbers(site.layout, kind)) == kind.most
    running = {f"{kind.prefix}{name}" for name in names} - {f"{kind.prefix}d3"}
    remember(site.layout, "one-more", kind, running)
    found = numbers(site.layout, kind)
    assert (found.pop("one-more"), "d3" in found) == (3, False)
    assert found == {name: number for number, name in enumerate(names) if name != "d3"}


def test_a_worker_of_connect_is_idle_once_it_has_run_nothing_for_long_and_nobody_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache", connect_idle_s=9)
    site = Site.of(settings)
    site.make_folders()
    remember(site.layout, "east", CONNECT)
    now = [0.0]
    monkeypatch.setattr(connect.time, "monotonic", lambda: now[0])
    status = {"shop": {"status": {"connector": {"state": "STOPPED"}}}}
    status["users"] = {"status": {"connector": {"state": "STOPPED"}}}
    worker = Connect(site, "east")
    monkeypatch.setattr(worker, "_ask", lambda *_: status)

    def is_idle(after_s: float) -> bool:
        now[0] += after_s
        worker.check()
        return worker.is_idle

    # it is being started, or waits for its turn
    assert [is_idle(9), worker.is_idle] == [False, False]
    worker._is_needed()
    assert [is_idle(8.9), is_idle(0.1)] == [False, True]
    status["users"]["status"]["connector"]["state"] = "RUNNING"
    assert [is_idle(0), is_idle(9)] == [False, False]
    status["users"]["status"]["connector"]["state"] = "STOPPED"
    assert [is_idle(8.9), is_idle(0.1)] == [False, True]
    site.layout.asked(worker.name).touch()
    # at once, before the next check
    assert not worker.is_idle
    assert [is_idle(0), is_idle(8.9), is_idle(0.1)] == [False, False, True]
    # it is started again
    worker.command()
    now[0] += 9
    assert not worker.is_idle


def test_no_more_domains_have_a_worker_of_connect_than_the_memory_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache", connect_workers=2)
    platform = LocalPlatform(settings)
    platform._site.make_folders()
    monkeypatch.setattr(platform, "_supervisor", Identity.own)
    log = Path("log")
    platform._layout.wanted.write_text(json.dumps(["kafka-east", "connect-east", "connect-west"]))
    known = [
        ServiceStatus(name="connect-east", state=State.READY, log=log),
        ServiceStatus(name="connect-west", state=State.READY, log=log),
        ServiceStatus(name="connect-south", state=State.FAILED, log=log),
    ]
    monkeypatch.setattr(platform, "status", lambda: known)
    monkeypatch.setattr(LocalPlatform, "_extend", lambda *_: None)
    platform._ask_for(CONNECT, "east")
    with pytest.raises(ServiceFailedError, match=r"2 domains have .*SDM_CONNECT_WORKERS.*: north"):
        platform._ask_for(CONNECT, "north")
    platform._layout.wanted.write_text(json.dumps(["kafka-east", "connect-east"]))
    del known[1]
    platform._ask_for(CONNECT, "north")
    assert numbers(platform._layout, CONNECT).keys() == {"east", "north"}


def test_a_supervisor_leaves_out_what_it_does_not_know(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.layout.wanted.write_text('["connect-nowhere"]')
    Supervisor(site)._heed()
    assert "no service is called connect-nowhere" in capsys.readouterr().err


def test_who_asks_for_a_server_that_is_being_stopped_has_it_started_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(site.layout, "east", CONNECT)
    site.layout.wanted.write_text("[]")
    orders: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: orders.append(pid))
    wanted = chosen(catalogue(site), ["connect-east"])
    known = [ServiceStatus(name="connect-east", state=State.READY, log=Path("log"))]
    for _ in range(2):
        launch.extend(site, Identity.own(), known, catalogue(site), wanted)
    assert launch.wanted(site) == ["connect-east"]
    assert orders == [os.getpid()]


def test_a_domains_worker_of_connect_has_its_own_topics_group_and_password(site: Site) -> None:
    site.endpoints()
    for domain in ("east", "west"):
        remember(site.layout, domain, CONNECT)
    workers = [Connect(site, domain) for domain in ("east", "west")]
    told = [WORKER | one._own_topics() for one in workers]
    for name in ("group.id", *(f"{one}.storage.topic" for one in ("config", "offset", "status"))):
        assert len({WORKER[name], *(one[name] for one in told)}) == 3
    assert len({one.url for one in workers}) == 2
    assert told[0]["group.id"] == "connect.east"
    assert len({one.password_reference() for one in workers}) == 2
    assert len({one.command().argv[-1] for one in workers}) == 2


def test_a_domains_server_is_started_on_demand_only_and_has_a_token_of_its_own(site: Site) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain, SPARK)
    every = catalogue(site)
    assert "spark-east" not in [service.name for service in chosen(every, None)]
    servers = [chosen(every, [name])[0] for name in ("spark-east", "spark-west")]
    tokens = {one.command().environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] for one in servers}
    assert len(tokens) == 2
    assert servers[0].data != servers[1].data


def test_the_servers_of_domains_stop_after_the_governor_and_before_the_brokers(site: Site) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain, SPARK)
        remember(site.layout, domain, CONNECT)
    waves = stop_waves(service.name for service in catalogue(site))
    places = {name: number for number, names in enumerate(waves) for name in names}
    assert places["governor"] < places["spark-east"] == places["spark-west"] < places["kafka-east"]
    assert places["governor"] < places["connect-east"] < places["kafka-east"]
    assert sum(map(len, waves)) == len(catalogue(site))


def test_a_server_is_still_wanted_though_the_supervisor_has_not_heard_of_it_yet(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain, SPARK)
    orders: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: orders.append(pid))
    monkeypatch.setattr(launch, "require_free", lambda _: None)
    every = catalogue(site)
    site.layout.wanted.write_text(json.dumps(["kafka-east"]))
    known = [ServiceStatus(name="kafka-east", state=State.READY, log=site.layout.log("any"))]
    for name in ("spark-east", "spark-west"):
        launch.extend(site, Identity(pid=4711, started="now"), known, every, chosen(every, [name]))
    wanted = set(json.loads(site.layout.wanted.read_bytes()))
    assert {"kafka-east", "spark-east", "spark-west"} <= wanted
    assert orders == [4711, 4711]


def test_who_adds_services_stops_none_that_was_added_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process waits for the lock while another one, which holds it, has a domain's server."""
    monkeypatch.setattr(os, "kill", lambda *_: None)
    launch._want(site, chosen(catalogue(site), ["postgres"]))
    waiting = LocalPlatform(site.settings, ["bootstrap"])
    remember(site.layout, "b", SPARK)
    launch._want(site, chosen(catalogue(site), ["postgres", "spark-b"]))
    assert "spark-b" in launch.wanted(site)
    waiting._extend(Identity.own())
    assert "spark-b" in launch.wanted(site)
