"""A small kube-scheduler: two of its in-tree scores, and its real HTTP conversation with an extender."""
