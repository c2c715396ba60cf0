"""A small kube-scheduler: what of the real one decides where a pod goes, and when others see it.

It samples nodes, adds whole-numbered in-tree scores and an extender's, draws lots among the best, counts the pod in its
own cache at once, and binds on another thread while the next pod is scored already.
"""
