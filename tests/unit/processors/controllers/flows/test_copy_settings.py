"""Settings of copies over those of their sources: what follows, and what stays within a range."""

import pytest

from processors.clusters.kafka import Topic
from processors.controllers.flows.copy_settings import (
    LARGEST_RECORD,
    copied_settings,
    max_record_bytes,
)

MIB = 1_048_576


@pytest.mark.parametrize(
    ("setting", "source", "copy"),
    [
        ("segment.ms", "1", "600000"),
        ("segment.ms", "600001", "600001"),
        ("segment.bytes", "14", str(16 * MIB)),
        ("segment.bytes", str(2**31 - 1), str(1024 * MIB)),
        ("segment.bytes", str(64 * MIB), str(64 * MIB)),
        ("max.compaction.lag.ms", "1", "600000"),
        ("max.compaction.lag.ms", str(2**63 - 1), str(2**63 - 1)),
        ("min.cleanable.dirty.ratio", "0.0", "0.1"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
        ("delete.retention.ms", "0", "86400000"),
    ],
)
def test_settings_that_cost_files_or_work_stay_within_a_range(
    setting: str, source: str, copy: str
) -> None:
    assert copied_settings({setting: source})[setting] == copy


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "-1"),
        ("delete.retention.ms", "172800000"),
        ("min.compaction.lag.ms", "86400000"),
    ],
)
def test_settings_by_which_records_are_found_follow_the_source(setting: str, value: str) -> None:
    assert copied_settings({setting: value})[setting] == value


@pytest.mark.parametrize("source", [{}, {"retention.bytes": "1"}, {"cleanup.policy": "compact"}])
def test_no_copy_deletes_records_by_its_size(source: dict[str, str]) -> None:
    """It is larger than its source: not compressed, and with a header more."""
    assert copied_settings(source)["retention.bytes"] == "-1"


def test_a_copy_says_by_what_its_records_go_where_the_source_has_kafkas_defaults() -> None:
    """The other cluster may have defaults of its own."""
    assert copied_settings({}) == {
        "cleanup.policy": "delete",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "delete.retention.ms": "86400000",
        "max.message.bytes": str(LARGEST_RECORD + 4096),
    }


@pytest.mark.parametrize(
    "setting", ["min.insync.replicas", "follower.replication.throttled.replicas", "preallocate"]
)
def test_any_other_setting_is_the_clusters_own(setting: str) -> None:
    assert copied_settings({setting: "1"}) == copied_settings({})


@pytest.mark.parametrize("source", [{}, {"max.message.bytes": "1000"}])
def test_a_copy_takes_each_record_with_one_more_header_whatever_the_source_takes_compressed(
    source: dict[str, str],
) -> None:
    config = copied_settings(source)
    assert max_record_bytes(Topic("east.users", "id", 1, config)) == LARGEST_RECORD + 4096
