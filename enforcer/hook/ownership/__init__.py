"""Whose work a running container's cpuset is: what was given is written down in RUN_DIR, and known again after a
restart.
"""
