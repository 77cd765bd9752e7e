"""The mesh's own topics: what they are to be, and what differs on a cluster."""
