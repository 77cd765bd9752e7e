"""What `sdm` returns to the shell, and how an error is told: one or two lines, never a traceback.

`docs/reference/exit-codes.md` explains each code; a test holds page and table together.
"""

import os
import sys
import traceback
from enum import IntEnum

from mesh_events.errors import (
    ConfigurationError,
    InfrastructureError,
    InvalidValueError,
    MeshError,
    RefusedError,
    StateFaultError,
    UnusableRecordError,
    WaitTimeoutError,
)
from mesh_events.topics import GOVERNANCE
from self_service.cli.framework.output import one_line, printable


class ExitCode(IntEnum):
    """The exit codes of `sdm`."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    TIMEOUT = 5
    INFRASTRUCTURE = 6
    CONFIGURATION = 7
    FINDING = 8
    INTERRUPTED = 130
    CLOSED_PIPE = 141


class NotFoundError(MeshError):
    """Nothing in the mesh has the given name; the text tells where to look."""


class UsageError(MeshError):
    """Options that do not fit together; the text tells which to give."""


class FindingError(MeshError):
    """An audit found something that must not be; the text names the first offset."""


_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    # the first match counts, so a kind stands before the kinds that it belongs to
    (UsageError, ExitCode.USAGE),
    (InvalidValueError, ExitCode.USAGE),
    (NotFoundError, ExitCode.NOT_FOUND),
    (FindingError, ExitCode.FINDING),
    (RefusedError, ExitCode.REFUSED),
    (WaitTimeoutError, ExitCode.TIMEOUT),
    (ConfigurationError, ExitCode.CONFIGURATION),
    (InfrastructureError, ExitCode.INFRASTRUCTURE),
    (StateFaultError, ExitCode.FINDING),
    (UnusableRecordError, ExitCode.FINDING),
)


_OWN = f" {GOVERNANCE.partition('.')[0]}."
"""How a text names one of the mesh's own topics."""
_CUT_OFF = (
    "the domain may be in quarantine; the operator can check: SDM_DOMAIN=mesh sdm domain list, "
    "and sdm switch-domain mesh"
)


_OPERATOR = f"{_OWN}operator"
_ADMINISTRATORS = (
    "the mesh's own topics belong to the cluster administrator, who uses `sdm kafka`, as in "
    "sdm kafka topics -- --delete --topic NAME"
)


def code_of(error: BaseException) -> ExitCode:
    """The exit code of an error."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return _platform_code(error) if isinstance(error, MeshError) else ExitCode.UNEXPECTED


def _platform_code(error: MeshError) -> ExitCode:
    from local_platform import errors

    if isinstance(error, errors.UnknownServiceError):
        return ExitCode.NOT_FOUND
    unset = (
        errors.NoLocalMeshError
        | errors.BadLockFileError
        | errors.UnreachableFolderError
        | errors.UnusableSettingError
    )
    return ExitCode.CONFIGURATION if isinstance(error, unset) else ExitCode.INFRASTRUCTURE


def sentence(error: BaseException) -> str:
    """The error as a person reads it; a refusal begins with its code."""
    if isinstance(error, RefusedError) and not isinstance(error, InvalidValueError):
        # the reason may quote what another domain wrote
        said = f"refused ({error.code}): {one_line(str(error))}"
        # a domain in quarantine cannot read that it is
        if error.code != "kafka_denied" or _OWN not in said:
            return said
        # an operator is in no quarantine
        return f"{said}\n{_ADMINISTRATORS if _OPERATOR in said else _CUT_OFF}"
    if isinstance(error, MeshError):
        return f"error: {error}"
    text = " ".join(str(error).split()) or "no message"
    return (
        f"unexpected {type(error).__name__}: {text}\n"
        "run the command with SDM_DEBUG=1 to see the traceback, and report it"
    )


def tell(error: BaseException) -> ExitCode:
    """Write the error to stderr and return its exit code; SDM_DEBUG=1 adds the traceback."""
    if os.environ.get("SDM_DEBUG") == "1":
        sys.stderr.write(printable("".join(traceback.format_exception(error))))
    # a reason, a path or a server's answer in it may be a stranger's words
    sys.stderr.write(printable(sentence(error)) + "\n")
    return code_of(error)
