"""Numbers of Kafka's protocol for the words of `processors.clusters.rights.Acl`."""

RESOURCES = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional-id",
    6: "delegation-token",
    7: "user",
}
OPERATIONS = {
    2: "all",
    3: "read",
    4: "write",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "cluster-action",
    10: "describe-configs",
    11: "alter-configs",
    12: "idempotent-write",
    13: "create-tokens",
    14: "describe-tokens",
    15: "two-phase-commit",
}
ANY = 1
DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4
USER = "User:"
"""What Kafka puts before the name of a user."""
