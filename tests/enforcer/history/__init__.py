"""Long random histories of a node: `steps` that may happen, the `truth` about it, and the `laws` that must hold."""
