"""Each link of the documentation leads to a file that is there, and to a heading of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Those of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    in_code = False
    for line in page.read_text("utf-8").splitlines():
        in_code ^= line.startswith("```")
        heading = re.fullmatch(r"#{1,6} (.+)", line)
        if heading and not in_code:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {
        name if not at else f"{name}-{at}" for name, most in found.items() for at in range(most + 1)
    }


@pytest.mark.parametrize("page", PAGES, ids=[str(one.relative_to(ROOT)) for one in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_a_page_has_its_anchors() -> None:
    found = anchors(ROOT / "docs" / "security" / "threat-model.md")
    assert "limits-that-are-known" in found
    assert len(found) > 3
