"""The hardware and the kernel of this node: sysfs and procfs (read), cgroup v1 and v2 (read and write).

Every reader takes the root of the tree that it reads, so that a recorded machine can be tried anywhere.
"""
