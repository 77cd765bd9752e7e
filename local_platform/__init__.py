"""The embedded platform: Kafka, registry, Connect, Postgres and Spark from packages alone.

What lives here: fetching the pinned jars (`jars`), one description per server (`services`), the
supervisor that starts, probes and restarts them (`supervision`), their accounts and rights
(`security`), and the record of where they answer.
What does not: anything about domains, products or rights; that is the mesh itself.
In: `PlatformSettings`. Out: `Endpoints` (addresses and references to secrets, never secrets).
Start reading at `platform.py`.
"""

from local_platform.endpoints import ClusterEndpoint, Endpoints
from local_platform.errors import PlatformError
from local_platform.platform import LocalPlatform
from local_platform.settings import PlatformSettings
from local_platform.supervision.state import Progress, ServiceStatus

__all__ = [
    "ClusterEndpoint",
    "Endpoints",
    "LocalPlatform",
    "PlatformError",
    "PlatformSettings",
    "Progress",
    "ServiceStatus",
]
