"""The values that the cluster's state is made of: nodes' views and their numbers in columns, pods, where workloads are,
groups.
"""
