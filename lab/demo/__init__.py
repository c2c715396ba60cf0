"""The main job on embedded defaults: `make demo`.

The extender and several enforcers run as real processes. Each enforcer is attached over a real unix socket to a small
container runtime that speaks NRI, and reads the sysfs tree of a well-known machine. What is not there: containers,
and a Kubernetes cluster (a small API server and a small scheduler stand in).
"""
