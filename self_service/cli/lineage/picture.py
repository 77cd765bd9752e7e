"""Lineage as a picture: boxes in columns, data flows from left to right. SVG, and PNG of the same.

Pure but for what Pillow needs to draw letters: it brings a font of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from mesh_events.errors import InvalidValueError
from self_service.cli.framework.output import one_line

FONT, LINE, PAD, GAP_X, GAP_Y, MARGIN = 13, 17, 10, 56, 18, 20
"""Sizes in pixels; a letter is about 0.58 of the font's size wide."""
LONGEST_LINE, MOST_ROWS = 60, 100
MOST_PIXELS = 50_000_000
"""A PNG is made in memory, three bytes a pixel."""
COLOURS = {
    "topic": ("#e8f1fb", "#2b6cb0"),
    "job": ("#fdf3e1", "#b7791f"),
    "outside": ("#eeeeee", "#606060"),
    "asked": ("#d3e9d3", "#2f7d32"),
}
"""Kind of a box -> (its colour, that of its edge)."""


@dataclass
class Box:
    """A topic, a job, or what is outside; `column` 0 is what was asked for, left of it is less.

    rows: a line each below the others, where arrows of their own may begin and end.
    """

    name: str
    kind: str
    lines: list[str]
    column: int
    rows: list[str] = field(default_factory=list)
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    _numbers: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._numbers = {row: min(number, MOST_ROWS) for number, row in enumerate(self.rows)}

    @property
    def texts(self) -> list[str]:
        """All lines, from above: long ones cut, and the rows beyond `MOST_ROWS` as a number."""
        more = len(self.rows) - MOST_ROWS
        rows = [*self.rows[:MOST_ROWS], *([f"... and {more} more"] if more > 0 else ())]
        return [_cut(one_line(text)) for text in (*self.lines, *rows)]

    def middle(self, row: str | None) -> float:
        """Where an arrow meets the edge: at a row, else in the middle of what is above the rows."""
        number = self._numbers.get(row) if row is not None else None
        if number is not None:
            return self.y + PAD / 2 + (len(self.lines) + number + 0.5) * LINE
        return self.y + (PAD + len(self.lines) * LINE) / 2


@dataclass
class Picture:
    """Boxes by name, and arrows from one to another."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: dict[tuple[str, str, str | None, str | None], None] = field(default_factory=dict)

    def box(
        self, name: str, kind: str, lines: list[str], column: int, rows: Iterable[str] = ()
    ) -> str:
        """Put a box; one that comes again stands where it is farthest out."""
        known = self.boxes.get(name)
        if known is None:
            self.boxes[name] = Box(name, kind, lines, column, list(rows))
        elif abs(column) > abs(known.column):
            known.column = column
        return name

    def arrow(
        self, source: str, target: str, source_row: str | None = None, row: str | None = None
    ) -> None:
        """Data flows from one box to another, or from a row to a row."""
        self.arrows[source, target, source_row, row] = None

    def laid_out(self) -> tuple[float, float]:
        """Give every box its place; (width, height) of the picture."""
        columns: dict[int, list[Box]] = {}
        for box in self.boxes.values():
            box.width = max(len(line) for line in box.texts) * FONT * 0.58 + 2 * PAD
            box.height = len(box.texts) * LINE + PAD
            columns.setdefault(box.column, []).append(box)
        heights = {
            number: sum(box.height + GAP_Y for box in here) - GAP_Y
            for number, here in columns.items()
        }
        tallest, x = max(heights.values()), float(MARGIN)
        for number in sorted(columns):
            y = MARGIN + (tallest - heights[number]) / 2
            widest = max(box.width for box in columns[number])
            for box in columns[number]:
                box.x, box.y, box.width = x, y, widest
                y += box.height + GAP_Y
            x += widest + GAP_X
        return x - GAP_X + MARGIN, tallest + 2 * MARGIN


def svg(picture: Picture) -> str:
    """The picture as SVG."""
    width, height = picture.laid_out()
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    letters = f'font-family="sans-serif" font-size="{FONT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {letters}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for points in _arrows(picture):
        (x1, y1), (x2, y2) = points
        middle = (x1 + x2) / 2
        parts.append(
            f'<path d="M{x1:.1f},{y1:.1f} C{middle:.1f},{y1:.1f} {middle:.1f},{y2:.1f} '
            f'{x2:.1f},{y2:.1f}" fill="none" stroke="#808080"/>'
            f'<path d="M{x2 - 7:.1f},{y2 - 4:.1f} L{x2:.1f},{y2:.1f} L{x2 - 7:.1f},{y2 + 4:.1f}" '
            'fill="none" stroke="#808080"/>'
        )
    for box in picture.boxes.values():
        fill, edge = COLOURS[box.kind]
        parts.append(
            f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
            f'height="{box.height:.1f}" rx="5" fill="{fill}" stroke="{edge}"/>'
        )
        for number, line in enumerate(box.texts):
            y = box.y + PAD / 2 + (number + 0.75) * LINE
            weight = ' font-weight="bold"' if number == 0 else ' fill="#505050"'
            parts.append(f'<text x="{box.x + PAD:.1f}" y="{y:.1f}"{weight}>{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def write_png(picture: Picture, path: Path, scale: int = 2) -> None:
    """The picture as PNG, `scale` pixels for one; raises InvalidValueError for a huge one."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = picture.laid_out()
    if width * height * scale**2 > MOST_PIXELS:
        raise InvalidValueError(
            f"the picture has {width * scale:.0f} x {height * scale:.0f} pixels, too many for a "
            f"PNG: name a file that ends in .svg, or leave out --columns"
        )
    image = Image.new("RGB", (round(width * scale), round(height * scale)), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(FONT * scale)

    def scaled(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x * scale, y * scale) for x, y in points]

    for (x1, y1), (x2, y2) in _arrows(picture):
        draw.line(scaled(_curve((x1, y1), (x2, y2))), fill="#808080", width=scale)
        head = [(x2 - 7, y2 - 4), (x2, y2), (x2 - 7, y2 + 4)]
        draw.line(scaled(head), fill="#808080", width=scale)
    for box in picture.boxes.values():
        fill, edge = COLOURS[box.kind]
        corners = scaled([(box.x, box.y), (box.x + box.width, box.y + box.height)])
        draw.rounded_rectangle(corners, 5 * scale, fill, edge, scale)
        for number, line in enumerate(box.texts):
            [place] = scaled([(box.x + PAD, box.y + PAD / 2 + number * LINE)])
            draw.text(place, line, "black" if number == 0 else "#505050", font)
    image.save(path, "PNG")


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"


def _arrows(picture: Picture) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """From the right edge of one box to the left edge of another, each once."""
    found: dict[tuple[tuple[float, float], tuple[float, float]], None] = {}
    for source, target, begin, end in picture.arrows:
        one, other = picture.boxes[source], picture.boxes[target]
        start = (one.x + one.width, one.middle(begin))
        found[start, (other.x, other.middle(end))] = None
    return list(found)


def _curve(
    start: tuple[float, float], end: tuple[float, float], steps: int = 24
) -> list[tuple[float, float]]:
    """Points of the same curve that the SVG has, a cubic of Bezier."""
    (x1, y1), (x2, y2) = start, end
    middle, found = (x1 + x2) / 2, []
    for number in range(steps + 1):
        t = number / steps
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        found.append((a * x1 + b * middle + c * middle + d * x2, a * y1 + b * y1 + c * y2 + d * y2))
    return found
