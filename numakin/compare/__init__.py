"""Does it pay on this hardware? One workload in turn with its ends together, apart, and where the kernel likes.

`statistics` decides what may be concluded, and is pure; `arms` makes CPU lists of a machine; `workloads` has servers
and clients; `running` runs one of them once; `design` says which ways are compared with which, and `rounds` runs all in
turn; `presentation` formats the result; `options` and `command` are the command line.
"""
