"""The embedded platform: Kafka, registry, Connect, Postgres and Spark from packages alone.

What lives here: fetching the pinned jars, one description per server, the supervisor that
starts, probes and restarts them, and the record of where they answer.
What does not: anything about domains, products or rights; that is the mesh itself.
In: `PlatformSettings`. Out: `Endpoints` (addresses and references to secrets, never secrets).
Start reading at `platform.py`; `services/` holds one server per file.
"""

from local_platform.endpoints import ClusterEndpoint, Endpoints
from local_platform.errors import PlatformError
from local_platform.platform import LocalPlatform
from local_platform.settings import PlatformSettings
from local_platform.state import Progress, ServiceStatus

__all__ = [
    "ClusterEndpoint",
    "Endpoints",
    "LocalPlatform",
    "PlatformError",
    "PlatformSettings",
    "Progress",
    "ServiceStatus",
]
