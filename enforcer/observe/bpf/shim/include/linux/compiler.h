#ifndef NUMAKIN_COMPILER_H
#define NUMAKIN_COMPILER_H
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#endif
