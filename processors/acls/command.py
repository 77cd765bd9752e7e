"""The options of `kafka-acls` by which an administrator deletes an ACL. Pure."""

import re
import shlex

from processors.acls.codes import OPERATIONS, USER
from processors.clusters.rights import Acl

_OPTIONS = {
    "topic": "--topic",
    "group": "--group",
    "transactional-id": "--transactional-id",
    "delegation-token": "--delegation-token",
    "user": "--user-principal",
}
_TYPED = re.compile(r"[A-Z][A-Za-z]*:.+", re.DOTALL)


def removal(acl: Acl) -> str | None:
    """What follows `kafka-acls --bootstrap-server ...` to delete an ACL, quoted for a shell.

    None for a kind of ACL that the tool has no option for.
    """
    if acl.operation not in OPERATIONS.values():
        return None
    verb = "deny" if acl.denies else "allow"
    typed = _TYPED.fullmatch(acl.principal) is not None
    principal = acl.principal if typed else f"{USER}{acl.principal}"
    options = [f"--{verb}-principal", principal, f"--{verb}-host", acl.host]
    options += ["--operation", acl.operation.title().replace("-", "")]
    if acl.resource == "cluster":
        options += ["--cluster"]
    elif acl.resource in _OPTIONS:
        pattern = "prefixed" if acl.prefixed else "literal"
        options += [_OPTIONS[acl.resource], acl.name, "--resource-pattern-type", pattern]
    else:
        return None
    return shlex.join(["--remove", "--force", *options])
