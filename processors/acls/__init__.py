"""ACLs as a cluster has them, of every kind of resource, principal and host.

`kafka` lists and deletes them, by `wire` where confluent-kafka lacks a kind; `protected` tells what
of a cluster an ACL touches; `command` writes the options by which an administrator deletes it.
Rights as the mesh grants them are in `processors.clusters.rights`.
"""
