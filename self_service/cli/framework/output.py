"""Answers on stdout: a table for people, JSON or YAML for programs; everything else on stderr."""

import math
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cache
from typing import Any

from self_service.cli.framework import layout, times
from self_service.formats.json_numbers import Number, written


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


_HEX = "0x"
_MOST_ZEROS = 400
"""Digits behind or before the point that are written out; a schema may give a decimal any scale."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0"
    "\U000e0100-\U000e01ef]|(?<=\\w)[\ufe0e\ufe0f]|(?<=[\0-\x7f\ufe0e\ufe0f])[\ufe0e\ufe0f]"
)
"""Characters that Python calls printable and that take no ink. The last two, variation selectors,
choose how the symbol before them is drawn; behind a letter they are not seen."""
_YAML_FLOAT = "tag:yaml.org,2002:float"
_MARKS = frozenset({"Mn", "Me"})
_MOST_MARKS = 4
"""Combining marks over one letter that are shown; more of them cover other lines."""
_STRANGE = re.compile(rf"[^\w\s\0-\x7f]{{{_MOST_MARKS + 1}}}")
"""Where more marks than that may stand; none of them is a letter or a digit."""


class Multiline(str):
    """A text whose line ends are shown as such, as a field of a `Detail`: SQL, a schema."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Many things of one kind.

    `columns` are the fields that a table shows, in a stable order; `items` hold these and
    perhaps more, which only JSON and YAML show; `empty` is said where there is nothing.
    """

    columns: Sequence[str]
    items: Sequence[Mapping[str, Any]]
    empty: str = "nothing found"


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing: its fields in order, and listings that belong to it by name."""

    fields: Mapping[str, Any]
    parts: Mapping[str, Listing] | None = None

    def document(self) -> dict[str, Any]:
        """All of it as one JSON object."""
        parts = {name: list(part.items) for name, part in (self.parts or {}).items()}
        return {**self.fields, **parts}


def show(answer: Listing | Detail, form: Format) -> None:
    """Write an answer to stdout."""
    if form is Format.TABLE:
        _show_table(answer)
        return
    document = list(answer.items) if isinstance(answer, Listing) else answer.document()
    sys.stdout.write(rendered(document, form))


def rendered(document: Any, form: Format) -> str:
    """A document as JSON or YAML text."""
    plain = _plain(document)
    if form is Format.JSON:
        return json_text(plain, indent=2) + "\n"
    import yaml

    dumper = _yaml_dumper()

    def dumped(*, unicode: bool) -> str:
        text = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=unicode, width=100)
        return str(text)

    text = dumped(unicode=True)
    return text if text == printable(text) else dumped(unicode=False)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that people can read, or, where a terminal would obey a part of it, in ASCII alone."""
    text = written(value, indent=indent)
    return text if text == printable(text) else written(value, indent=indent, in_ascii=True)


def json_line(document: Any) -> str:
    """A document as JSON in one line."""
    return json_text(_plain(document))


@cache
def _yaml_dumper() -> Any:
    """YAML's own types, and numbers with their digits; made once, since each record asks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Of this function."""

    Dumper.add_representer(
        Number, lambda dumper, one: dumper.represent_scalar(_YAML_FLOAT, _in_yaml(one))
    )
    return Dumper


def _in_yaml(number: Number) -> str:
    """YAML knows a float by its point, and an exponent by its sign."""
    mantissa, e, exponent = number.text.lower().partition("e")
    pointed = mantissa if "." in mantissa else f"{mantissa}.0"
    return pointed + e + (exponent if not e or exponent[0] in "+-" else f"+{exponent}")


def note_appended(items: Iterable[Mapping[str, Any]]) -> None:
    """Tell how many of the shown records have an append time, `appended`, that is wrong."""
    wrong = sum(one["appended"] is not None for one in items)
    if wrong:
        note(
            f"times are the mesh's; the broker's clock was off by more than a minute when {wrong} "
            "of these records were appended: -o json shows its time as `appended`"
        )


def note(text: str) -> None:
    """Tell the person something beside the answer, on stderr."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def cell(value: Any) -> str:
    """A value as a table shows it; nothing is a dash."""
    match value:
        case None | "" | [] | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case datetime():
            return times.value(value)
        case Decimal():
            return digits(value)
        case Mapping():
            return (
                ", ".join(f"{one_line(str(name))}={cell(inner)}" for name, inner in value.items())
                or "-"
            )
        case list() | tuple() | set() | frozenset():
            return ", ".join(cell(inner) for inner in value)
        case _:
            return one_line(str(value))


def one_line(text: str) -> str:
    """Text of any domain for one line: line ends are escaped, too, since they begin other rows."""
    return printable(text).replace("\n", r"\n")


def printable(text: str) -> str:
    """Text of any domain without characters that a terminal obeys or does not show."""
    if not text.isascii():
        text = _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)
        if _STRANGE.search(text):
            text = "\n".join(map(_with_few_marks, text.split("\n")))
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)


def _with_few_marks(text: str) -> str:
    """Combining marks beyond the first few over a letter are escaped."""
    if not _STRANGE.search(text):
        return text
    shown, marks = list[str](), 0
    for one in text:
        marks = marks + 1 if unicodedata.category(one) in _MARKS else 0
        shown.append(one if marks <= _MOST_MARKS else ascii(one)[1:-1])
    return "".join(shown)


def _plain(value: Any) -> Any:
    """The same value in JSON's own types."""
    match value:
        case Enum():
            return value.value
        case Multiline():
            return str(value)
        # JSON has no number for what is not finite
        case Number() | None | bool() | int() | float() | str() if not _is_endless(value):
            return value
        case datetime():
            return times.value(value)
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case bytes():
            return text_of(value)
        case _:
            return digits(value) if isinstance(value, Decimal) else str(value)


def digits(value: Decimal) -> str:
    """A decimal with the digits of its scale, without an exponent unless it has very many."""
    exponent = value.as_tuple().exponent
    short = isinstance(exponent, int) and abs(exponent) <= _MOST_ZEROS
    return format(value, "f") if short else str(value)


def _is_endless(value: Any) -> bool:
    return type(value) is float and not math.isfinite(value)


def text_of(data: bytes) -> str:
    """Bytes as text: UTF-8 where they are, else 0x and hex digits, as of a text that begins so."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = _HEX
    return f"{_HEX}{data.hex()}" if text.startswith(_HEX) else text


def _show_table(answer: Listing | Detail) -> None:
    if isinstance(answer, Listing):
        _print_listing(answer)
        return
    _print_fields(answer.fields)
    for name, part in (answer.parts or {}).items():
        sys.stdout.write(f"\n{name}\n")
        _print_listing(part)


def _print_listing(listing: Listing) -> None:
    if not listing.items:
        note(listing.empty)
        return
    head = [_title(column) for column in listing.columns]
    rows = [[cell(item.get(column)) for column in listing.columns] for item in listing.items]
    if found := layout.widths([head, *rows], _available()):
        _print_grid(found, rows, head)
    elif found := layout.widths([head[:-1], *(row[:-1] for row in rows)], _available()):
        _print_with_last_below(found, rows, head)
    else:
        _print_cards(listing.columns, rows)


def _print_with_last_below(
    widths: Sequence[int], rows: Sequence[Sequence[str]], head: Sequence[str]
) -> None:
    """The last column is the one of long texts: each stands below its row, indented."""
    indent = layout.GAP * 2
    room = max(sum(widths) + layout.GAP * len(widths), _available() or 0) - indent
    _print_grid(widths, [], head[:-1])
    for row in rows:
        _print_grid(widths, [row[:-1]])
        if row[-1] != cell(None):
            width = layout.folded_width([row[-1]], room)
            _print_grid([indent - layout.GAP, width], [["", row[-1]]])


def _print_cards(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Each row as lines of name and value: a terminal too narrow for the columns side by side."""
    for number, row in enumerate(rows):
        if number:
            sys.stdout.write("\n")
        _print_pairs(list(zip(columns, row, strict=True)))


def _print_fields(fields: Mapping[str, Any]) -> None:
    _print_pairs(
        [
            (name, printable(value) if isinstance(value, Multiline) else cell(value))
            for name, value in fields.items()
        ]
    )


def _print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    if not pairs:
        return
    names = [name.replace("_", " ") for name, _ in pairs]
    label = max(map(len, names))
    available = _available()
    left = None if available is None else available - label - layout.GAP
    texts = [text for _, text in pairs]
    _print_grid([label, layout.folded_width(texts, left)], list(zip(names, texts, strict=True)))


def _title(column: str) -> str:
    return column.replace("_", " ").upper()


def _print_grid(
    widths: Sequence[int], rows: Sequence[Sequence[str]], head: Sequence[str] = ()
) -> None:
    """Rows in columns of these widths, under their heads if they have any."""
    if head:
        lines = layout.lines(head, widths)
        sys.stdout.writelines(f"{_bold(line)}\n" for line in lines)
    for row in rows:
        sys.stdout.writelines(f"{line}\n" for line in layout.lines(row, widths))


def _bold(line: str) -> str:
    """A line in bold on a terminal that shows it."""
    from rich.console import Console
    from rich.text import Text

    class Quiet(Console):
        """Rich ends the process with 1 where nobody reads stdout, before anything is told."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Quiet(width=max(1, layout.cells(line)), highlight=False)
    with console.capture() as captured:
        console.print(Text(line, style="bold"), end="")
    return captured.get()


def _available() -> int | None:
    """Cells of a line; None where nobody looks: cutting lines in a pipe breaks what reads them."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns
