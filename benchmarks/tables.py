"""`docs/figures.md` and the README's table, from the result files."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.rows import ROWS, Place, Row

ROOT = Path(__file__).parents[1]
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
BEGIN, END = "<!-- figures: ./scripts/bench --write -->", "<!-- end of figures -->"
_P99_FROM = 100
"""Samples from which on a 99th percentile says something; with fewer the greatest is shown."""
_COLUMNS = ("figure", "measured", "beside it", "ratio", "goal", "what bounds it", "file, commit")
_SHORT = ("figure", "measured", "beside it", "ratio", "goal", "file, commit")
_HEAD = """# Figures

Written by `./scripts/bench --write` from the files in `benchmarks/results`, each measured at the
commit beside it, on {machine}. `./scripts/bench NAME` measures one again, `./scripts/bench` all of
them, and `./scripts/bench --stale` lists those whose code has changed since. Latencies are the
median and the 99th percentile (of fewer than 100 samples, the greatest); a ratio is ours to what
stands beside it, in the same run. No test asserts one of these figures.

"""
_FAULTS = """
## Recovery from faults

From the fault to the next decision, row or record of what it concerns, at {commit}
(`{command}`): {verdicts}.

"""


def write() -> None:
    """Both files, from the results as they are."""
    PAGE.write_text(page(), "utf-8")
    README.write_text(readme(README.read_text("utf-8")), "utf-8")


def page() -> str:
    """The text of `docs/figures.md`."""
    head = _HEAD.format(machine=_machine())
    return head + _table(ROWS, _COLUMNS) + _faults()


def readme(text: str) -> str:
    """The README with the table of the figures that it shows."""
    table = _table([row for row in ROWS if row.short], _SHORT)
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{table}{END}", text)


def _table(rows: Any, columns: tuple[str, ...]) -> str:
    lines = [columns, ("---",) * len(columns), *(_cells(row, columns) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(row: Row, columns: tuple[str, ...]) -> tuple[str, ...]:
    result = _result(row.file)
    figures, commit = result["figures"], result["measured_on"]["commit"]
    ours = _found(figures, row.ours)
    beside = _found(figures, row.beside[1]) if row.beside else None
    cells = {
        "figure": row.text,
        "measured": shown(ours, row.ours) if ours else "not measured",
        "beside it": f"{row.beside[0]}: {shown(beside, row.beside[1])}"
        if row.beside and beside
        else "",
        "ratio": ratio(ours, beside) if ours and beside else "",
        "goal": _goal(row, ours, beside),
        "what bounds it": row.bound,
        "file, commit": f"`{row.file}`, {commit}",
    }
    return tuple(cells[column] for column in columns)


def _goal(row: Row, figure: Mapping[str, float] | None, beside: Mapping[str, float] | None) -> str:
    if row.goal is None:
        return ""
    if figure is None or (row.goal.is_ratio and beside is None):
        return row.goal.text
    return f"{row.goal.text}{', missed' if row.goal.is_missed(figure, beside) else ''}"


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found


def _found(figures: Mapping[str, Any], place: Place) -> dict[str, float] | None:
    """The fields of a place: one of a rate or a size, or the median and the most of a latency."""
    label, *names = place
    row = figures.get(label)
    # a result from before a field was measured
    if row is None or any(name not in row for name in names):
        return None
    if names:
        return {name: row[name] for name in names}
    most = "p99_ms" if row["n"] >= _P99_FROM else "max_ms"
    return {"p50_ms": row["p50_ms"], most: row[most], "n": row["n"]}


def shown(fields: Mapping[str, float], place: Place) -> str:
    """Values with their units, as a cell has them."""
    if len(place) > 1:
        return ", ".join(_with_unit(value, name) for name, value in fields.items())
    most = "p99_ms" if "p99_ms" in fields else "max_ms"
    word = "" if most == "p99_ms" else "max "
    samples = f"{fields['n']:,}".replace(",", " ")
    return f"{_ms(fields['p50_ms'])} / {word}{_ms(fields[most])} (n = {samples})"


def ratio(ours: Mapping[str, float], beside: Mapping[str, float]) -> str:
    """Ours to the other's, of each field that both have."""
    both = [name for name in ours if name != "n" and beside.get(name)]
    return " / ".join(f"{ours[name] / beside[name]:.2f}" for name in both)


def _with_unit(value: float, name: str) -> str:
    units: Mapping[str, Callable[[float], str]] = {
        "mib": lambda found: f"{_thousands(found)} MiB",
        "s": lambda found: f"{found:g} s",
        "/s": lambda found: f"{_thousands(found)}/s",
        "us": lambda found: f"{found:g} µs",
    }
    for end, unit in (
        ("mib", "mib"),
        ("_us", "us"),
        ("per_s", "/s"),
        ("/s", "/s"),
        ("_s", "s"),
        ("seconds", "s"),
    ):
        if name.endswith(end):
            return units[unit](value)
    raise ValueError(f"{name} has no unit that is known")


def _ms(value: float) -> str:
    return f"{value / 1000:.2f} s" if value >= 1000 else f"{value:.1f} ms"


def _thousands(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def _machine() -> str:
    around = [_result(name)["measured_on"] for name in sorted({row.file for row in ROWS})]
    cores, memory = around[0]["cores"], around[0]["memory_gib"] + 1
    loads = [one["load_before"] for one in around]
    load = f"load {min(loads):g} to {max(loads):g} before a run"
    if speeds := [one["signatures_per_s"] for one in around if "signatures_per_s" in one]:
        load += f"; a core checks {min(speeds)} to {max(speeds)} signatures a second"
    return f"{cores} cores with {memory} GiB and one broker per cluster ({load})"


def _faults() -> str:
    found = _result("faults")
    faults = found["faults"]
    outcomes = sorted({one["outcome"] for one in faults})
    verdicts = ", ".join(
        f"{sum(one['outcome'] == each for one in faults)} {each}" for each in outcomes
    )
    head = _FAULTS.format(
        commit=found["measured_on"]["commit"], command="./scripts/faults --json", verdicts=verdicts
    )
    rows = "".join(
        f"| `{one['name']}` | {one['sentence']} | {one['outcome']} | {_recovery(one)} |\n"
        for one in faults
    )
    return f"{head}| fault | what is done | verdict | recovery |\n| --- | --- | --- | --- |\n{rows}"


def _recovery(one: Mapping[str, Any]) -> str:
    return "" if one["recovery_s"] is None else f"{one['recovery_s']:.1f} s"
