import pytest

from mesh_events.errors import RefusedError
from self_service.cli.connector_owner import owner_of, require_own_topics, require_owner

LOGIN = {"producer.override.sasl.jaas.config": 'x required username="east" password="${dir:a:b}";'}


@pytest.mark.parametrize(
    ("config", "owner"),
    [
        (LOGIN, "east"),
        ({**LOGIN, "topic.prefix": "west.shop"}, "east"),
        ({"topic.prefix": "west.shop"}, "west"),
        ({"topic.prefix": "west"}, "west"),
        ({}, None),
    ],
)
def test_the_owner_is_who_logs_in_and_else_whose_topics_they_are(
    config: dict[str, str], owner: str | None
) -> None:
    assert owner_of(config) == owner


def test_the_owner_and_the_operator_may_change_a_connector_and_nobody_else() -> None:
    for domain in ("east", "mesh"):
        require_owner("shop", LOGIN, domain)
    require_owner("shop", {}, "mesh")
    for config, said in ((LOGIN, "east's: ask east"), ({}, "nobody's in this mesh: ask the oper")):
        with pytest.raises(RefusedError, match=said):
            require_owner("shop", config, "west")


@pytest.mark.parametrize("value", ["east", "east.", "east.shop", "east.shop.users"])
def test_topics_of_the_domain_are_its_own(value: str) -> None:
    for name in ("topic", "topic.prefix", "kafka.topic"):
        require_own_topics({name: value, "database.dbname": "west"}, "east")


@pytest.mark.parametrize("value", ["west", "west.shop", "eastern", "eastern.shop", "", "mesh.x"])
def test_other_topics_are_refused(value: str) -> None:
    with pytest.raises(RefusedError, match=r"begin with 'east\.'"):
        require_own_topics({"topic.prefix": value}, "east")
