"""What can go wrong with the local platform, by what the caller can do about it.

PlatformError
├── NoLocalMeshError        start one
├── BadLockFileError        repair the installation
├── FetchFailedError        check the network, run again (resumes)
├── PortInUseError          stop the other program or choose other ports
├── UnreachableFolderError  choose another folder
├── UnusableSettingError    correct the named variable
├── BadCertificateError     replace the named file
├── ServiceFailedError      read the named log
├── UnknownServiceError     correct the name
└── NotReadyError           raised by probes: not yet, ask again
"""

from mesh_events.errors import MeshError


class PlatformError(MeshError):
    """Root of every error of the local platform; its text is meant for a person."""


class NoLocalMeshError(PlatformError):
    """No platform is running at the given home."""


class BadLockFileError(PlatformError):
    """The lock file of the jars is missing or cannot be understood."""


class FetchFailedError(PlatformError):
    """A jar could not be fetched or is not the one that the lock file pins."""


class PortInUseError(PlatformError):
    """A port that a service needs is held by another program."""


class UnreachableFolderError(PlatformError):
    """A folder cannot be reached by the account that a service runs as."""


class UnusableSettingError(PlatformError):
    """An `SDM_*` variable has a value that cannot be used; the text says what it may be."""


class BadCertificateError(PlatformError):
    """A certificate or key of the home is missing, of no use, or has ended."""


class ServiceFailedError(PlatformError):
    """A service did not become ready; the text names it and shows its log's end."""


class UnknownServiceError(PlatformError):
    """The caller named a service that this platform does not have."""


class NotReadyError(PlatformError):
    """A probe found that the service does not work yet; the text says what is missing."""
