"""ACLs on every kind of resource: what they touch, how they are listed, how they are deleted."""
