"""Domains with a Spark server of their own: their numbers, ports and places in the order."""

import json
import os
from pathlib import Path

import pytest

from local_platform import launch
from local_platform.domain_servers import MOST, numbers, remember
from local_platform.errors import ServiceFailedError
from local_platform.platform import LocalPlatform
from local_platform.ports import OFFSETS
from local_platform.process import Identity
from local_platform.services import catalogue, chosen, stop_waves
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.state import ServiceStatus, State


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    found.make_folders()
    return found


def test_a_domain_keeps_its_number_and_its_port(site: Site) -> None:
    for domain in ("east", "west", "east", "a-b"):
        remember(site.layout, domain)
    assert numbers(site.layout) == {"east": 0, "west": 1, "a-b": 2}
    base = site.settings.port_base
    ports = [site.port(f"spark-{domain}") for domain in ("east", "west", "a-b")]
    assert ports == [base + 3, base + 4, base + 5]


def test_the_last_domains_port_is_no_other_services(site: Site) -> None:
    for number in range(MOST):
        remember(site.layout, f"d{number}")
    taken = {site.settings.port_base + offset for offset in OFFSETS.values()}
    assert not taken & {site.port(f"spark-d{number}") for number in range(MOST)}
    with pytest.raises(ServiceFailedError, match=f"{MOST} domains have a Spark server here"):
        remember(site.layout, "one-more")


def test_a_domains_server_is_started_on_demand_only_and_has_a_token_of_its_own(site: Site) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain)
    every = catalogue(site)
    assert "spark-east" not in [service.name for service in chosen(every, None)]
    servers = [chosen(every, [name])[0] for name in ("spark-east", "spark-west")]
    tokens = {one.command().environment["SPARK_CONNECT_AUTHENTICATE_TOKEN"] for one in servers}
    assert len(tokens) == 2
    assert servers[0].data != servers[1].data


def test_the_servers_of_domains_stop_after_the_governor_and_before_the_brokers(site: Site) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain)
    waves = stop_waves(service.name for service in catalogue(site))
    places = {name: number for number, names in enumerate(waves) for name in names}
    assert places["governor"] < places["spark-east"] == places["spark-west"] < places["kafka-east"]
    assert sum(map(len, waves)) == len(catalogue(site))


def test_a_server_is_still_wanted_though_the_supervisor_has_not_heard_of_it_yet(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for domain in ("east", "west"):
        remember(site.layout, domain)
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
    waiting = LocalPlatform(site.settings, ["found"])
    remember(site.layout, "b")
    launch._want(site, chosen(catalogue(site), ["postgres", "spark-b"]))
    assert "spark-b" in launch._wanted(site)
    waiting._extend(Identity.own())
    assert "spark-b" in launch._wanted(site)
