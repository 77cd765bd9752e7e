"""The list of services, and what each command line gives away."""

import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from local_platform.domain_servers import KINDS, remember
from local_platform.errors import UnknownServiceError
from local_platform.jvm import POLICY
from local_platform.ports import OFFSETS
from local_platform.security.principals import principals_of
from local_platform.services import SERVERS, catalogue, chosen, stop_waves
from local_platform.services.connect import WORKER, Connect, hand_secrets_to_connectors
from local_platform.services.kafka import MEMORY, SMALL_NODE
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from processors.controllers.flows.copy_settings import copied_settings
from projections.connectors.settings import OF_SOURCES
from projections.deciding.verdict import Refusal
from projections.rules import names


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    found.make_folders()
    return found


def test_every_service_comes_after_those_that_it_needs(site: Site) -> None:
    seen: set[str] = set()
    for service in catalogue(site):
        assert set(service.after) <= seen, service.name
        seen.add(service.name)


def with_west_registry(site: Site) -> Site:
    """The site with all that there can be."""
    return replace(site, settings=site.settings.model_copy(update={"west_registry": True}))


def test_a_registry_that_the_cluster_west_once_had_stays(site: Site) -> None:
    assert not site.has_west_registry
    assert site.endpoints().clusters["west"].registry_url is None
    site.layout.west_registry.mkdir(parents=True)
    assert "registry-west" in [one.name for one in catalogue(site)]
    west = site.endpoints().clusters["west"]
    assert (west.registry_url, west.registry_user) == (site.registry_url("registry-west"), "admin")


def test_every_service_stops_in_exactly_one_wave_before_what_it_needs(site: Site) -> None:
    site = with_west_registry(site)
    waves = stop_waves(service.name for service in catalogue(site))
    wave = {name: number for number, names in enumerate(waves) for name in names}
    assert sorted(wave) == sorted(service.name for service in catalogue(site))
    assert sum(map(len, waves)) == len(wave)
    for service in catalogue(site):
        assert all(
            wave[service.name] < wave[other] or service.name == "governor"
            for other in service.after
            if other != "bootstrap"
        )


def test_every_listener_has_a_port(site: Site) -> None:
    every = catalogue(with_west_registry(site))
    listeners = [name for service in every for name in service.listeners]
    assert sorted(listeners) == sorted(OFFSETS)


def test_some_services_are_chosen_in_start_order(site: Site) -> None:
    found = chosen(catalogue(site), ["registry", "postgres"])
    assert [service.name for service in found] == ["postgres", "registry"]


def test_all_are_chosen_where_none_is_named(site: Site) -> None:
    assert len(chosen(catalogue(site), None)) == len(catalogue(site))
    assert {service.name for service in catalogue(site)} > set(SERVERS)


def test_an_unknown_service_is_told_with_the_known_ones(site: Site) -> None:
    with pytest.raises(UnknownServiceError, match="no service 'kafka': there are postgres, kafka-"):
        chosen(catalogue(site), ["kafka"])


@pytest.mark.parametrize(
    "name",
    ["postgres", "kafka-east", "kafka-west", "connect-east", "spark-east"],
)
def test_no_password_is_in_a_command(site: Site, name: str) -> None:
    site.endpoints()
    for kind in KINDS:
        remember(site.layout, "east", kind)
    line = " ".join(chosen(catalogue(site), [name])[0].command().argv)

    files = [path for path in site.layout.secrets.rglob("*") if path.is_file()]
    assert len(files) >= 5
    assert not [path for path in files if path.read_text() in line]


def test_connect_itself_has_no_right_on_anything_of_a_domain() -> None:
    [connect] = [
        one for one in principals_of("east", lambda *_: "password") if one.name == "connect"
    ]
    # no domain can be called `connect`, or begin so with what a prefix ends in
    own = ("connect-configs", "connect-offsets", "connect-worker-offsets.", "connect-status")
    group = ("connect-east", "connect.")
    for right in connect.rights:
        begins = own if right.resource == "TOPIC" else group
        assert right.name.removeprefix("connect-cluster-").startswith(begins)
        assert right.prefixed == right.name.endswith(".")
    for name in ("connect", "connect-configs"):
        with pytest.raises(Refusal):
            names.domain(name)


def test_connectors_may_read_one_folder_of_secrets(site: Site) -> None:
    endpoints = site.endpoints()
    hand_secrets_to_connectors(endpoints)

    providers = Connect(site, "east")._secret_providers()
    allowed = {value for key, value in providers.items() if key.endswith(".allowed.paths")}
    assert allowed == {str(endpoints.connect_secrets)}
    held = {path.name for path in endpoints.connect_secrets.iterdir()}
    assert held == {"postgres-postgres"}


def test_a_connector_may_set_nothing_of_its_clients_that_loads_a_class() -> None:
    assert WORKER["connector.client.config.override.policy"] == "Allowlist"
    overrides = WORKER["connector.client.config.override.allowlist"].split(",")
    assert not [name for name in overrides if re.search("class|callback|factory|provider", name)]


def test_a_broker_reads_the_largest_record_that_a_link_copies_and_not_much_more() -> None:
    copy = copied_settings({"max.message.bytes": str(2**31 - 1)})
    largest = int(copy["max.message.bytes"])
    bound = int(SMALL_NODE["socket.request.max.bytes"])
    assert largest + 64 * 1024 < bound < largest + 2 * 1024 * 1024


def test_brokers_know_the_settings_of_copies_and_of_the_topics_that_connect_makes() -> None:
    known = {name.removeprefix("mesh.policy.values.") for name in POLICY}
    known |= {name.removeprefix("mesh.policy.range.") for name in POLICY}
    known |= set(POLICY["mesh.policy.free"].split(":"))
    prefix = "topic.creation.default."
    connects = {one.removeprefix(prefix) for one in OF_SOURCES if one.startswith(prefix)}
    assert connects - {"partitions", "replication.factor"} <= known
    assert set(copied_settings(dict.fromkeys(known, "1"))) <= known


def test_a_broker_has_the_heap_of_the_settings_and_outlives_one_failed_allocation(
    site: Site,
) -> None:
    line = chosen(catalogue(site), ["kafka-east"])[0].command().argv
    assert f"-Xmx{site.settings.kafka_heap_mb}m" in line
    assert set(MEMORY) <= set(line)
    # one request that finds no memory would end it for everybody
    assert not [one for one in line if "OutOfMemory" in one]


def test_what_may_quote_data_or_hold_a_secret_is_closed_to_others(site: Site) -> None:
    for folder in (site.layout.logs, site.layout.conf, site.layout.secrets):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_a_folder_of_logs_that_was_open_is_closed_at_the_next_start(site: Site) -> None:
    site.layout.logs.chmod(0o755)
    site.make_folders()
    assert stat.S_IMODE(site.layout.logs.stat().st_mode) == 0o700
