"""Snapshots of the log for this home, made by a process of their own.

Making them folds the log a second time: within the worker that would take turns from the governor.
`controller` says when, `process` runs `python -m processors.snapshotting`, `growth` is what that
does.
"""
