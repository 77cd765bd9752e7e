"""No topic is filled twice."""

import pytest

from mesh_events.errors import RefusedError
from self_service.cli.captured_tables import require_alone, topics_of
from self_service.cli.debezium import Database, config

PLACE = Database("127.0.0.1", 5432, "postgres", "${dir:/x:y}", "east")


def deployed(**configs: dict[str, str]) -> dict[str, object]:
    return {name.replace("_", "-"): {"info": {"config": one}} for name, one in configs.items()}


def test_a_tables_topic_is_the_domains() -> None:
    made = config("shop", "east", ["users", "sales.orders"], PLACE)
    assert topics_of(made) == {"east.users", "east.orders"}
    assert topics_of({"connector.class": "any", "topics": "a"}) == set()


def test_a_second_connector_of_one_table_is_refused() -> None:
    first = config("first", "east", ["users", "orders"], PLACE)
    second = config("second", "east", ["public.users", "other"], PLACE)
    with pytest.raises(RefusedError, match=r"east\.users is filled by the connector first") as told:
        require_alone("second", second, deployed(first=first))
    assert told.value.code == "topic_filled"


def test_a_connector_may_be_changed_and_others_capture_other_tables() -> None:
    first = config("first", "east", ["users"], PLACE)
    more = config("first", "east", ["users", "orders"], PLACE)
    require_alone("first", more, deployed(first=first))
    require_alone("second", config("second", "west", ["users"], PLACE), deployed(first=first))
