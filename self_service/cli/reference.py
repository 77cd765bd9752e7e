"""The reference page of the commands, made from the commands themselves.

`python -m self_service.cli.reference write` writes `docs/reference/cli.md`; `check` tells
whether the page is as the commands are.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from self_service.cli.app import COMMANDS, load
from self_service.cli.framework.options import arguments, usage

PAGE = Path("docs") / "reference" / "cli.md"
_HEAD = """\
# The commands of `sdm`

Made by `python -m self_service.cli.reference write` from the commands; change their texts there.

- The answer is on stdout, as a table, or with `-o json` and `-o yaml` for programs; everything
  else (progress, notes, errors) is on stderr. `topic consume -o json` writes one object per line.
- Exit codes: [exit-codes.md](exit-codes.md).
- `$SDM_HOME` is the mesh's folder, `$SDM_DOMAIN` the domain to speak for (else the one that
  `sdm switch-domain` chose), `$SDM_ACTOR` the id of who acts, `SDM_DEBUG=1` shows tracebacks,
  `NO_COLOR=1` writes no colours.
- `--as-of` takes ISO 8601 (without a zone: UTC) or how long ago: `90s ago`, `1h30m ago`.
- `--until` says how far to wait: `decided` is the governor's decision; `applied` is when rights
  and logins exist on the clusters, or are gone; `active` is when all that follows is done too:
  the copy runs, or is purged.
- `sdm --install-completion` completes commands, options, and the names that the last command saw.
"""


def page() -> str:
    """The reference page, Markdown."""
    parts = [_HEAD]
    for name in COMMANDS:
        parts.extend(_sections(f"sdm {name}", load(name)))
    return "\n".join(parts)


def commands() -> Iterator[tuple[str, Any]]:
    """(full name, command) of every command that does something."""
    for name in COMMANDS:
        yield from _leaves(f"sdm {name}", load(name))


def _leaves(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(found, "commands", None)
    if inner is None:
        yield name, found
        return
    for child, command in inner.items():
        if not command.hidden:
            yield from _leaves(f"{name} {child}", command)


def _sections(name: str, found: Any) -> Iterator[str]:
    inner = getattr(found, "commands", None)
    if inner is None:
        yield _command(name, found)
        return
    yield f"## {name}\n\n{found.help}\n"
    for child, command in inner.items():
        if command.hidden:
            continue
        if getattr(command, "commands", None) is None:
            yield _command(f"{name} {child}", command)
        else:
            yield from _sections(f"{name} {child}", command)


def _command(name: str, found: Any) -> str:
    level = "##" if name.count(" ") == 1 else "###"
    told = " ".join([name, "[OPTIONS]", *map(usage, arguments(found))])
    paragraphs = "\n\n".join(
        " ".join(part.split()) for part in (found.help or "").split("\n\n") if part.strip()
    )
    rows = [_row(one) for one in found.params if one.name != "help"]
    table = "\n".join(["| | |", "|---|---|", *rows]) if rows else ""
    examples = "\n".join(line[2:] for line in found.epilog.splitlines() if line.startswith("  "))
    parts = (f"{level} {name}", f"`{told}`", paragraphs, table, f"```sh\n{examples}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(one: Any) -> str:
    if one.param_type_name == "argument":
        name = f"`{one.metavar}`"
    else:
        names = [*one.opts, *one.secondary_opts]
        name = ", ".join(f"`{option}`" for option in sorted(names, key=len))
    text = " ".join((one.help or "").split()).replace("|", "\\|").replace("<", "&lt;")
    return f"| {name} | {text}{_default(one)} |"


def _default(one: Any) -> str:
    if one.required and one.param_type_name == "option":
        return " Required."
    value = one.default
    if value is None or isinstance(value, bool) or value == "" or callable(value):
        return ""
    return f" Default: `{getattr(value, 'value', value)}`."


def main(arguments: list[str]) -> int:
    """Entry point of `python -m self_service.cli.reference write|check`."""
    if arguments == ["write"]:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(), "utf-8")
        return 0
    if arguments == ["check"]:
        same = PAGE.exists() and PAGE.read_text("utf-8") == page()
        if not same:
            sys.stdout.write(f"{PAGE} differs: run `python -m self_service.cli.reference write`\n")
        return 0 if same else 1
    sys.stderr.write("usage: python -m self_service.cli.reference write|check\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
