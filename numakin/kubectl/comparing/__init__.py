"""`compare` with the user's own Deployments: their pods run in turn with numakin and without, under the user's load.

`templates` says what changes in a Deployment and how it is undone, and is pure; `deployment` does it in the cluster;
`measuring` runs all ways in turn, and restores.
"""
