"""The one error tree of the project.

    MeshError
    ├── RefusedError         the caller asked for something the mesh does not allow
    │   └── InvalidValueError
    ├── UnusableRecordError  a record on a topic cannot be understood (code, reason)
    ├── StateFaultError      the log contradicts itself or this program: stop and look
    ├── ConfigurationError   a setting, file or reference is missing or wrong
    │   └── LoginRefusedError
    └── InfrastructureError  a server could not be reached or refused (`retriable` says which)
        └── WaitTimeoutError

Every message names the thing, the place and the next step; the command line prints it as it is.
"""


class MeshError(Exception):
    """Root of every error this project raises on purpose.

    text: what a server said of it, in full. It can quote a record: it is for a local file only.
    """

    text: str = ""


class RefusedError(MeshError):
    """The mesh refused a request; `code` is stable and documented, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class InvalidValueError(RefusedError):
    """A value given by the user has the wrong form."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid_value", message)


class UnusableRecordError(MeshError):
    """A record that cannot be understood; `code` is one of the quarantine codes."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class StateFaultError(MeshError):
    """The log says something that cannot be: replaying it further would be a guess."""


class ConfigurationError(MeshError):
    """A setting, a file or a reference is missing or has the wrong form."""


class LoginRefusedError(ConfigurationError):
    """Kafka does not take user and password: wrong, or changed a moment ago."""


class InfrastructureError(MeshError):
    """A server did not do what was asked; `retriable` tells whether trying again can help."""

    def __init__(self, message: str, *, retriable: bool) -> None:
        super().__init__(message)
        self.retriable = retriable


class WaitTimeoutError(InfrastructureError):
    """What was waited for did not happen in time; it may still happen."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retriable=True)
