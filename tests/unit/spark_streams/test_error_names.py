"""Only names that the software knows come out of an error's text."""

import pytest

from spark_streams.error_names import UNKNOWN, conditions, error_name

CAST = (
    "[STREAM_FAILED] Query [id = 1-2, runId = 3-4] terminated with exception: Job aborted\n"
    "=== Streaming Query ===\n"
    "plan with options\n"
    "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed\n"
    "\tat somewhere\n"
    "Caused by: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'Anna' "
    'of the type "STRING" cannot be cast to "BIGINT"\n'
    "\tat elsewhere\n"
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CAST, "SparkNumberFormatException [CAST_INVALID_INPUT]"),
        (CAST.partition("\n")[0], "[STREAM_FAILED]"),
        ("(org.apache.spark.SparkException) [INTERNAL_ERROR] 0815", "SparkException"),
        ("Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not", None),
        ("org.postgresql.util.PSQLException: Key (id)=(0815) exists", "PSQLException"),
        ("[INVALID_HANDLE.SESSION_CLOSED] The handle", "[INVALID_HANDLE.SESSION_CLOSED]"),
        ("Anna", UNKNOWN),
        ("", UNKNOWN),
        ("\n\n", UNKNOWN),
        ("[ANNA] 0815", UNKNOWN),
        ("com.example.AnnaException: 0815", UNKNOWN),
        ("Caused by: org.apache.spark.Anna: [ANNA]", UNKNOWN),
    ],
)
def test_a_text_gives_its_last_known_name(text: str, name: str | None) -> None:
    found = error_name(text)
    assert found.startswith(name or "TopicAuthorizationException")
    assert "Anna" not in found
    assert "0815" not in found


def test_a_record_that_looks_like_a_cause_adds_nothing() -> None:
    record = "x\nCaused by: org.Anna: [ANNA] 0815\nCaused by: Anna0815"
    assert error_name(CAST.replace("Anna", record)) == error_name(CAST)


def test_a_text_of_any_size_takes_bounded_time() -> None:
    assert error_name("Caused by: a." + "a." * 3_000_000) == UNKNOWN
    assert error_name("a" * 3_000_000) == UNKNOWN
    assert error_name("Caused by: x\n" * 1_000_000) == UNKNOWN


def test_the_conditions_are_those_of_the_installed_spark() -> None:
    assert {"CAST_INVALID_INPUT", "INVALID_HANDLE.SESSION_CLOSED"} <= conditions()
