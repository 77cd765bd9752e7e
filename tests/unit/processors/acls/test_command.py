"""The options of `kafka-acls` that delete an ACL."""

import shlex

import pytest

from processors.acls.command import removal
from processors.clusters.rights import Acl


@pytest.mark.parametrize(
    ("acl", "options"),
    [
        (
            Acl("mallory", "alter-configs", "cluster", "kafka-cluster", host="10.0.0.1"),
            (
                "--allow-principal User:mallory --allow-host 10.0.0.1 --operation AlterConfigs "
                "--cluster"
            ),
        ),
        (
            Acl("Group:x", "read", "group", "west.", prefixed=True),
            (
                "--allow-principal Group:x --allow-host '*' --operation Read --group west. "
                "--resource-pattern-type prefixed"
            ),
        ),
        (
            Acl("*", "write", "transactional-id", "t", denies=True),
            (
                "--deny-principal 'User:*' --deny-host '*' --operation Write --transactional-id t "
                "--resource-pattern-type literal"
            ),
        ),
        (
            Acl("mallory", "describe", "delegation-token", "tok"),
            (
                "--allow-principal User:mallory --allow-host '*' --operation Describe "
                "--delegation-token tok --resource-pattern-type literal"
            ),
        ),
        (
            Acl("mallory", "create-tokens", "user", "User:east"),
            (
                "--allow-principal User:mallory --allow-host '*' --operation CreateTokens "
                "--user-principal User:east --resource-pattern-type literal"
            ),
        ),
    ],
    ids=str,
)
def test_an_acl_is_named_as_kafka_acls_takes_it(acl: Acl, options: str) -> None:
    assert removal(acl) == f"--remove --force {options}"


def test_a_name_cannot_end_the_command() -> None:
    name = "x; rm -rf '$HOME'"
    command = removal(Acl(name, "read", "topic", name))
    assert command is not None
    assert shlex.split(command).count(name) == 1
    assert f"User:{name}" in shlex.split(command)


@pytest.mark.parametrize(
    "acl", [Acl("a", "operation-20", "topic", "t"), Acl("a", "read", "resource-9", "t")], ids=str
)
def test_a_kind_of_acl_that_the_tool_lacks_has_no_command(acl: Acl) -> None:
    assert removal(acl) is None
