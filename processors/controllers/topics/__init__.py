"""Topics of products, what drifted, and the registries that hold their schemas."""
