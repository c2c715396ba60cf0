"""The API server's side: what is watched there (pods, nodes) and what is written (Lease, Events, objects for others to
read).
"""
