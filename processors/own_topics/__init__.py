"""The mesh's own topics: their settings, and whether the cluster has them so.

`wanted` is what they are to be, `findings` compares that with a cluster, `described` asks one.
Comes in: settings and a login. Goes out: findings with a code and the next step.
"""
