/* What compilers spell differently. */
#ifndef JOINTWISE_COMPILER_H
#define JOINTWISE_COMPILER_H

/* Of functions whose loops are to be of known length, or whose branches are to be gone where they are called. */
#if defined(__GNUC__) || defined(__clang__)
#define INLINED static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINED static __forceinline
#else
#define INLINED static inline
#endif

/* Of plain loops that the compiler turns into vectors: compiled for newer processors too, chosen at run time. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define WIDE
#endif

#endif
