"""Where the kernel's files of a machine are, below the root of a sysfs."""

CPU = "devices/system/cpu"
NODE = "devices/system/node"
