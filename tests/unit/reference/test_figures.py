"""The tables of figures against the results, and the catalogue of benchmarks against the code."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as bench
from benchmarks import report, stale, tables
from benchmarks.catalogue import BENCHMARKS, Benchmark
from benchmarks.rows import ROWS

ROOT = Path(__file__).parents[3]


def test_the_page_of_figures_is_what_the_results_say() -> None:
    assert tables.PAGE.read_text("utf-8") == tables.page(), "run ./scripts/bench --write"


def test_the_readme_shows_what_the_results_say() -> None:
    text = tables.README.read_text("utf-8")
    assert text == tables.readme(text), "run ./scripts/bench --write"
    assert all(row.text in text for row in ROWS if row.short)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_result_names_its_commit(name: str) -> None:
    around = stale.measured_on(name)
    assert around is not None
    assert re.fullmatch(r"[0-9a-f]{7,}", around["commit"])


def test_each_benchmark_runs_and_names_code_that_there_is() -> None:
    assert {*bench.RUNS, bench.START, bench.FAULTS} == set(BENCHMARKS)
    assert {path.stem for path in report.RESULTS.glob("*.json")} == set(BENCHMARKS)
    assert [
        path for one in BENCHMARKS.values() for path in one.code if not (ROOT / path).exists()
    ] == []


def test_each_row_is_of_a_result() -> None:
    assert {row.file for row in ROWS} | {bench.FAULTS} == set(BENCHMARKS)


@pytest.mark.parametrize(
    ("fields", "place", "expected"),
    [
        ({"p50_ms": 5.8, "p99_ms": 10.8, "n": 1300}, ("x",), "5.8 ms / 10.8 ms (n = 1 300)"),
        ({"p50_ms": 89.2, "max_ms": 1297.4, "n": 10}, ("x",), "89.2 ms / max 1.30 s (n = 10)"),
        ({"events/s": 26730}, ("x", "events/s"), "26 730/s"),
        ({"after_mib": 1091}, ("x", "after_mib"), "1 091 MiB"),
        ({"ready_s": 17.6}, ("x", "ready_s"), "17.6 s"),
    ],
)
def test_values_are_shown_with_their_units(
    fields: dict[str, float], place: tuple[str, ...], expected: str
) -> None:
    assert tables.shown(fields, place) == expected


def test_a_ratio_is_of_each_field_that_both_have() -> None:
    assert (
        tables.ratio({"p50_ms": 6.0, "max_ms": 9.0, "n": 5}, {"p50_ms": 4.0, "p99_ms": 2.0})
        == "1.50"
    )


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one benchmark, measured at its commit."""
    monkeypatch.setattr(stale, "ROOT", tmp_path)
    monkeypatch.setattr(stale, "RESULTS", tmp_path)
    one = Benchmark("x", ("code",), "./scripts/bench one", 1)
    monkeypatch.setattr(stale, "BENCHMARKS", {"one": one})
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "a")
    measured(tmp_path, commit=git(tmp_path, "rev-parse", "--short", "HEAD"))
    return tmp_path


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@invalid"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def measured(folder: Path, **around: Any) -> None:
    (folder / "one.json").write_text(json.dumps({"measured_on": around}))


def test_a_result_of_the_code_as_it_is_is_not_stale(clone: Path) -> None:
    (clone / "beside").write_text("2")
    assert stale.listing(["one"]) == []


def test_a_result_is_stale_once_its_code_changes(clone: Path) -> None:
    (clone / "code" / "a.py").write_text("2")
    [line] = stale.listing(["one"])
    assert "1 files changed since" in line
    assert "code/a.py" in line
    assert "./scripts/bench one" in line


@pytest.mark.parametrize(
    ("commit", "why"),
    [
        ("", "no commit holds"),
        ("1234567+", "no commit holds"),
        ("1234567", "does not have"),
        ("; rm -rf /", "does not have"),
    ],
)
def test_a_result_of_no_commit_that_there_is_is_stale(clone: Path, commit: str, why: str) -> None:
    measured(clone, commit=commit)
    [line] = stale.listing(["one"])
    assert why in line


def test_a_benchmark_that_was_never_measured_is_stale(clone: Path) -> None:
    (clone / "one.json").unlink()
    [line] = stale.listing(["one"])
    assert "not measured" in line


def test_what_a_run_writes_is_no_change_of_the_code_that_the_next_one_measures(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = clone / "benchmarks" / "results"
    results.mkdir(parents=True)
    monkeypatch.setattr(report, "RESULTS", results)
    for path in (clone / "README.md", results / "one.json"):
        path.write_text("1")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "b")
    head = git(clone, "rev-parse", "--short", "HEAD")
    for path in (clone / "README.md", results / "one.json"):
        path.write_text("2")
    assert report.surroundings()["commit"] == head
    (clone / "code" / "a.py").write_text("2")
    assert report.surroundings()["commit"] == f"{head}+"
