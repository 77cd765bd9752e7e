"""The functions, casts and patterns that a statement may use, and how much they give. Pure."""
