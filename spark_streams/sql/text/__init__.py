"""A statement's text: words, grammar, and the tree that stands for it. Pure."""
