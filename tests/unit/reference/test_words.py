"""Words that were replaced by those of the field stay out of code and documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RETIRED = {
    "keeper": "controller",
    "reign": "leadership",
    "telling": "reporter",
    "voice": "reporter",
    "Saying": "SubmitOptions",
    "SideBySide": "ThreadedLanes",
    "OneByOne": "SerialLanes",
    "LinkRemoved": "LinkDeleted",
    "StatementDropped": "StatementDeleted",
    "ConnectorDropped": "ConnectorDeleted",
    "minder": "service runner",
    "founding": "bootstrap",
    "ledger": "verifier",
    "DistrustError": "IntegrityError",
    "Layered": "OverlayMap",
    "Paired": "PairsMapping",
    "PaperLog": "MemoryLog",
    "speaker": "signer",
    "enact": "apply_accepted",
    "Consequent": "DerivedIntents",
}
"""Retired word -> the one to use; a capital is asked for where the word has another meaning."""
ENDS = (".py", ".md", ".scala", ".avsc", ".sh")
KEPT = ("CHANGELOG.md", "docs/security/tries/", "tests/unit/reference/test_words.py")
"""What tells of how it was."""


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of what is written by hand."""
    folders = [one for one in ROOT.iterdir() if one.is_dir() and not one.name.startswith(".")]
    for page in [*ROOT.glob("*.md"), *(page for one in folders for page in one.rglob("*"))]:
        name = str(page.relative_to(ROOT))
        if page.suffix in ENDS and not name.startswith(KEPT):
            yield name, page.read_text("utf-8")


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_stands_nowhere(word: str) -> None:
    # as a word of its own, also within a name: link_keeper, LinkKeeper, LINK_KEEPER
    forms = [rf"(?<![A-Za-z]){word}(?:s|ed|ing)?(?![a-z])"]
    if word.islower():
        forms += [rf"{word.capitalize()}(?![a-z])", rf"(?<![A-Z]){word.upper()}"]
    pattern = re.compile("|".join(forms))
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in pages()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"say {RETIRED[word]}: " + "; ".join(found[:5])
