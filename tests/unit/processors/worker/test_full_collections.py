"""Collections of a process that holds very many objects."""

import gc
from collections.abc import Iterator

import pytest

from processors.worker import full_collections
from processors.worker.full_collections import ShortCollections


@pytest.fixture
def collected() -> Iterator[None]:
    """Nothing is left frozen, and no callback, whatever a test does."""
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before
    gc.unfreeze()


@pytest.mark.usefixtures("collected")
def test_what_survived_a_long_collection_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_collections, "LONG_S", 0.0)
    gc.callbacks.append(ShortCollections())
    state = [[number] for number in range(100_000)]
    gc.collect()
    assert gc.get_freeze_count() >= len(state)


@pytest.mark.usefixtures("collected")
def test_a_short_collection_freezes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_collections, "LONG_S", 3600.0)
    gc.callbacks.append(ShortCollections())
    gc.collect()
    gc.collect(1)
    assert gc.get_freeze_count() == 0
