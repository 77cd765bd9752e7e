"""The Kafka Connect worker of one domain, for its connectors."""

from local_platform.domain_servers import CONNECT
from local_platform.services.connect import Connect
from local_platform.site import Site
from processors.connect.principals import group_of


class DomainConnect(Connect):
    """Started when the domain first needs it, stopped when it has no connector any more.

    What its records and databases do to a worker's memory and processors harms nobody else's.
    """

    on_demand = True

    def __init__(self, site: Site, domain: str) -> None:
        super().__init__(site)
        self.name, self.user = f"{CONNECT.prefix}{domain}", domain
        self.listeners = (self.name,)
        self._domain = domain

    def password_reference(self) -> str:
        """A reference to the password of its REST API."""
        return self.site.credentials.reference("connect", self.user)

    def _own_topics(self) -> dict[str, str]:
        return {
            "group.id": group_of(self._domain),
            "config.storage.topic": f"connect-configs.{self._domain}",
            # the positions of its exactly-once sources are in connect-offsets.<domain>
            "offset.storage.topic": f"connect-positions.{self._domain}",
            "offset.storage.partitions": "1",
            "status.storage.topic": f"connect-status.{self._domain}",
            "status.storage.partitions": "1",
        }
