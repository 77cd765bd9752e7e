"""Connect's words against a setting reach the log from a closed list, without values."""

import pytest

from processors.connect.config_faults import LOGIN_REFUSED, OWN_WORDS, without_values

SECRET = "s3cret"
TOLD = [
    (
        f"Invalid value {SECRET} for configuration tasks.max: Not a number of type INT",
        "Not a number of type INT",
    ),
    (
        f"Invalid value {SECRET} for configuration a.b: String must be one of: none, all",
        "String must be one of: none, all",
    ),
    (
        'Missing required configuration "topic.prefix" which has no default value.',
        "Missing required configuration",
    ),
    ("The 'database.hostname' value is invalid: A value is required", "A value is required"),
    (
        f"The 'snapshot.mode' value {SECRET} is invalid: Value must be one of always, initial",
        "Value must be one of always, initial",
    ),
    (
        f"""The 'column' value {SECRET} is invalid: "column.include.list" is already specified""",
        '"column.include.list" is already specified',
    ),
    (
        f"Error during connection validation: FATAL: password authentication failed for {SECRET}",
        LOGIN_REFUSED,
    ),
    (
        f'Error while validating connector config: FATAL: database "{SECRET}" does not exist',
        "the server has no database of that name",
    ),
    (
        f"Error while validating connector config: Connection to {SECRET}:5432 refused. Check",
        "nothing answers at the host and port",
    ),
]
NOT_TOLD = [
    "",
    SECRET,
    f"Error while validating connector config: ERROR: row {SECRET}",
    f"The 'a' value is invalid: {SECRET}",
    f"A valid regular expressions is expected, but {SECRET}",
    f"Invalid value x for configuration a: Not a number of type {SECRET}",
    f"The 'a' value x is invalid: Value must be one of a, b\n{SECRET}",
    f"Value must be at least {SECRET} of the row",
    f"Connection validation timed out after 5 ms {SECRET}",
]


@pytest.mark.parametrize(("text", "told"), TOLD)
def test_a_known_fault_is_told_without_the_value(text: str, told: str) -> None:
    assert without_values(text) == told
    assert SECRET not in told


@pytest.mark.parametrize("text", NOT_TOLD)
def test_what_is_not_known_is_not_told(text: str) -> None:
    assert without_values(text) == OWN_WORDS


def test_a_very_long_text_is_read_up_to_a_bound() -> None:
    assert without_values("The 'a' value " + "x is invalid: " * 100_000) == OWN_WORDS
