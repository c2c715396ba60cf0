"""Runtimes that have no NRI, followed over CRI ("bypass"): who runs is looked at, and the cgroups are written a moment
after a container's start.
"""
