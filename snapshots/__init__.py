"""Snapshots: images of the mesh in a file, so that a state is found without replaying all of it.

Everything here comes from the log and can be thrown away: it is made again. `store` is the file,
`image_tables` says which tables an image has, `values` how their rows are written, `history` makes
snapshots of a log and answers what was at any offset or time.
"""
