/* BCC includes this before every program; these programs need nothing of a kernel's configuration. */
#ifndef NUMAKIN_KCONFIG_H
#define NUMAKIN_KCONFIG_H
#include <linux/compiler.h>
#define CONFIG_BPF_SYSCALL 1
#define CONFIG_64BIT 1
#endif
