/* BCC's prelude asks for a version. Programs here use no version-dependent helper, so the oldest supported will do. */
#ifndef NUMAKIN_VERSION_H
#define NUMAKIN_VERSION_H
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#ifndef LINUX_VERSION_CODE
#define LINUX_VERSION_CODE KERNEL_VERSION(5, 10, 0)
#endif
#endif
