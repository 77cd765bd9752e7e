"""Generators that the mesh keeps: their files, their places among the services, how they end."""

from pathlib import Path

import pytest

from local_platform import generators
from local_platform.errors import ServiceFailedError, UnknownServiceError
from local_platform.generators import GIVEN_UP, STOPPED, Generator, Progress
from local_platform.services import catalogue, chosen, stop_waves, wanted_generators
from local_platform.services.base import Outcome
from local_platform.services.generator import GeneratorService
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from mesh_events.errors import InvalidValueError

CLICKS = Generator(
    name="east.clicks",
    domain="east",
    topic="east.clicks",
    topic_id="t1",
    run="0a0b0c0d",
    kind="clickstream",
    recipe={"kind": "clickstream", "start": 0, "rate": 10.0},
    first=5,
    count=10,
    rate=10.0,
    made=1.0,
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site.of(PlatformSettings(home=tmp_path / "home", cache=tmp_path / "cache"))
    found.make_folders()
    return found


def test_what_was_kept_is_read_until_it_is_forgotten(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    generators.save_progress(site.layout, CLICKS.name, Progress(next=7))
    assert generators.known(site.layout) == ["east.clicks"]
    assert generators.read(site.layout, "east.clicks") == CLICKS
    assert generators.progress(site.layout, "east.clicks").written(CLICKS) == 2

    generators.forget(site.layout, CLICKS.name)
    assert generators.known(site.layout) == []
    assert generators.progress(site.layout, CLICKS.name) == Progress()
    with pytest.raises(UnknownServiceError, match=r"no generator east\.clicks"):
        generators.read(site.layout, CLICKS.name)


def test_it_is_done_with_its_last_record_and_without_a_count_never() -> None:
    assert [Progress(next=one).is_done(CLICKS) for one in (None, 5, 14, 15)] == [
        False,
        False,
        False,
        True,
    ]
    assert not Progress(next=10**9).is_done(CLICKS.model_copy(update={"count": None}))


@pytest.mark.parametrize("name", ["", "a/b", ".a", "-a", "a b", "../a", "a" * 101, "ä"])
def test_a_name_that_could_be_no_file_of_its_own_is_refused(site: Site, name: str) -> None:
    with pytest.raises(InvalidValueError, match="cannot be a generator"):
        generators.read(site.layout, name)


def test_a_fresh_start_forgets_it(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    [written] = site.layout.generators.iterdir()
    assert any(written.is_relative_to(path) for path in site.layout.of_one_life)


def test_it_comes_with_the_mesh_until_it_is_stopped_and_nobody_waits_for_it(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    service = "generator-east.clicks"
    assert [one.name for one in wanted_generators(site)] == [service]
    assert service not in [one.name for one in chosen(catalogue(site), None)]
    assert [one.name for one in chosen(catalogue(site), [service])] == [service]

    generators.write(site.layout, CLICKS.model_copy(update={"wanted": False}))
    assert wanted_generators(site) == []
    assert service in [one.name for one in catalogue(site)]


def test_one_that_cannot_be_read_is_told_of_and_harms_nobody(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    (site.layout.generators / "east.clicks.json").write_text("{")
    [service] = wanted_generators(site)
    with pytest.raises(ServiceFailedError, match=r"sdm generator delete east\.clicks"):
        service.command()


def test_it_stops_before_the_brokers_that_it_writes_to(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    waves = stop_waves(one.name for one in catalogue(site))
    [own] = [number for number, wave in enumerate(waves) if "generator-east.clicks" in wave]
    [brokers] = [number for number, wave in enumerate(waves) if "kafka-east" in wave]
    assert own < brokers


def test_its_process_acts_for_its_domain_and_is_given_no_password(site: Site) -> None:
    generators.write(site.layout, CLICKS)
    command = GeneratorService(site, CLICKS.name).command()
    assert command.environment["SDM_DOMAIN"] == "east"
    assert command.argv[1:] == ("-m", "self_service.cli.generate.job", "east.clicks")


def test_it_is_started_again_unless_it_is_done_or_would_fail_alike(site: Site) -> None:
    generators.save_progress(site.layout, CLICKS.name, Progress(error="no such topic"))
    service = GeneratorService(site, CLICKS.name)
    assert service.outcome(0) == Outcome(is_well=True, detail="done")
    assert service.outcome(GIVEN_UP) == Outcome(is_well=False, detail="no such topic")
    assert [service.outcome(code) for code in (STOPPED, 75, -9, 1)] == [None] * 4
