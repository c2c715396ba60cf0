"""Whether an installation works, asked as a program of its own from inside the cluster: what `helm test` runs.

It has the rights of a reader of the extender, and none at the API server. `replicas` asks, `verdict` judges.
"""
