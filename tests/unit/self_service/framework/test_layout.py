import pytest

from self_service.cli.framework.layout import folded_width, lines, widths

HEAD = ["ID", "REASON"]
LONG = "a reason of some more words than fit"
ROWS = [HEAD, ["0199f3a2-7c1e", LONG], ["0199f3a2-7c1f", "why not"]]


def test_columns_take_what_they_need_where_there_is_room() -> None:
    assert widths(ROWS, None) == widths(ROWS, 100) == [13, len(LONG)]


def test_prose_gives_way_and_words_stay_whole() -> None:
    found = widths(ROWS, 35)
    assert found is not None
    assert found[0] == 13
    assert sum(found) + 2 == 35


def test_what_does_not_fit_even_folded_has_no_widths() -> None:
    assert widths(ROWS, 20) is None


def test_a_narrow_column_is_not_folded() -> None:
    rows = [["TOOK", "REASON"], ["12 h 10 min", LONG]]
    found = widths(rows, 30)
    assert found is not None
    assert found[0] == len("12 h 10 min")


@pytest.mark.parametrize(("available", "expected"), [(None, 36), (50, 36), (20, 20), (3, 6)])
def test_a_single_text_is_as_wide_as_its_longest_word_at_least(
    available: int | None, expected: int
) -> None:
    assert folded_width([LONG], available) == expected


def test_a_row_is_one_line_where_its_texts_fit() -> None:
    assert lines(["a", "why not"], [3, 10]) == ["a    why not"]


def test_a_text_that_is_too_wide_folds_between_its_words() -> None:
    assert lines(["a", "one two three", ""], [2, 8, 3]) == ["a   one two", "    three"]


def test_a_word_that_is_too_wide_is_cut_and_a_bracket_stays() -> None:
    assert lines(["[bold]abcdef"], [6]) == ["[bold]", "abcdef"]


def test_wide_letters_take_two_cells() -> None:
    assert lines(["\u6771\u6771", "x"], [6, 1]) == ["\u6771\u6771    x"]
