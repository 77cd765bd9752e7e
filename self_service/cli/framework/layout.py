"""How wide the columns of a table are: words stay whole, prose gives way first. Pure.

Ids, names, times and paths are single words. A reader copies them, so that none of them may be
cut or folded; a column of sentences can fold between its words.
"""

from collections.abc import Sequence

GAP = 2
"""Blanks between two columns."""
_NARROW = 12
"""A column of so many cells is never folded: there is nothing to be won."""


def widths(rows: Sequence[Sequence[str]], available: int | None) -> list[int] | None:
    """Width of each column in cells; None where even folded prose does not fit.

    Args:
        rows: header and rows, all of the same length.
        available: cells of a line; None for as many as it takes.
    """
    columns = list(zip(*rows, strict=True))
    natural = [max(_longest(cell.splitlines()) for cell in column) for column in columns]
    spare = None if available is None else available - GAP * (len(columns) - 1)
    if spare is None or sum(natural) <= spare:
        return natural
    least = [
        whole if whole <= _NARROW else max(_longest(cell.split()) for cell in column)
        for whole, column in zip(natural, columns, strict=True)
    ]
    spare -= sum(least)
    if spare < 0:
        return None
    # what is left goes to the columns that fold, each by its share of what they lack
    lacking = [whole - word for whole, word in zip(natural, least, strict=True)]
    return [word + spare * lack // sum(lacking) for word, lack in zip(least, lacking, strict=True)]


def folded_width(texts: Sequence[str], available: int | None) -> int:
    """Width of a single column of texts: what is available, but no less than its longest word."""
    natural = max((_longest(text.splitlines()) for text in texts), default=0)
    if available is None:
        return natural
    return max(min(natural, available), max((_longest(text.split()) for text in texts), default=0))


def lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row as lines of a terminal: a text that is wider than its column folds between words."""
    columns = [_folded(text, width) for text, width in zip(row, widths, strict=True)]
    found = []
    for number in range(max(map(len, columns))):
        parts = [
            part + " " * (width - cells(part) + GAP)
            for column, width in zip(columns, widths, strict=True)
            for part in (column[number] if number < len(column) else "",)
        ]
        found.append("".join(parts).rstrip())
    return found


def cells(text: str) -> int:
    """Cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _folded(text: str, width: int) -> list[str]:
    """The lines of a text in a column; a word that is too long is cut."""
    if "\n" not in text and cells(text) <= width:
        return [text]
    from rich.console import Console
    from rich.text import Text

    # Text, so that a description with [brackets] is shown and not obeyed
    wrapped = Text(text).wrap(Console(width=max(1, width)), width, overflow="fold")
    return [line.plain.rstrip() for line in wrapped]


def _longest(parts: Sequence[str]) -> int:
    return max(map(cells, parts), default=0)
