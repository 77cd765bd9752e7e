"""Whose record is judged next."""

from processors.governor.turns import Turns


def taken(turns: Turns, until: int = 1000) -> list[int]:
    found = []
    while (offset := turns.take(until)) is not None:
        found.append(offset)
    return found


def test_domains_take_turns_and_each_keeps_its_order() -> None:
    turns = Turns()
    for offset in range(5):
        turns.add(offset, "east")
    turns.add(5, "west")
    turns.add(6, "west")
    assert taken(turns) == [0, 5, 1, 6, 2, 3, 4]


def test_what_is_first_comes_before_the_others_of_its_domain_in_its_order() -> None:
    turns = Turns()
    turns.add(3, "east")
    turns.add(4, "west")
    turns.add(1, "east", first=True)
    turns.add(2, "east", first=True)
    assert taken(turns) == [1, 4, 2, 3]


def test_what_is_first_waits_for_its_image_and_holds_nobody_meanwhile() -> None:
    turns = Turns()
    turns.add(3, "east")
    turns.add(1, "east", first=True, since=9)
    turns.add(2, "east", urgent=True, first=True, since=9)
    assert not turns.has_next(2)
    assert turns.take_urgent(8) is None
    assert taken(turns, until=8) == [3]
    assert not turns.has_next(8)
    assert turns.has_next(9)
    assert taken(turns, until=9) == [2, 1]


def test_an_operator_overtakes_everybody() -> None:
    turns = Turns()
    turns.add(0, "east")
    turns.add(1, "mesh", urgent=True)
    assert taken(turns) == [1, 0]


def test_what_lies_behind_the_image_stays_for_the_next_step() -> None:
    turns = Turns()
    turns.add(3, "east")
    turns.add(5, "west")
    assert taken(turns, until=4) == [3]
    assert len(turns) == 1
    assert taken(turns) == [5]
