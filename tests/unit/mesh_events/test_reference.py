from pathlib import Path

from mesh_events.reference import catalogue

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"


def test_the_event_catalogue_is_up_to_date():
    told = PAGE.read_text("utf-8") == catalogue()
    assert told, "run `python -m mesh_events.reference > docs/reference/events.md`"
