"""Packets between two network namespaces that are reordered, lost, duplicated and late, while the kernel's own TCP runs at
both ends. What `tc netem` would do, on kernels without it: a process carries them between two TUN devices.

`scrambling` decides what becomes of each packet, `relay` is the process, `link` makes all of it and takes it away.
"""
