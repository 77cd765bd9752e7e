"""The topics that the bootstrap makes."""

from processors.bootstrap import TOPICS


def test_every_topic_of_the_mesh_takes_records_whatever_the_clock_of_its_broker() -> None:
    """By default Kafka refuses a record that is more than an hour ahead of the broker."""
    most = str(2**63 - 1)
    for name, config in TOPICS.items():
        by_broker = config.get("message.timestamp.type") == "LogAppendTime"
        assert by_broker or config.get("message.timestamp.after.max.ms") == most, name
