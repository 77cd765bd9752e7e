"""The registries of clusters, which hold what the mesh's own does."""
