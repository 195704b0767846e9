/* Compiler-specific attributes and pragmas. */
#ifndef JOINTWISE_COMPILER_H
#define JOINTWISE_COMPILER_H

/* Functions that must be inlined: for loops of known length, branches that vanish, or the instruction set of the caller. */
#if defined(__GNUC__) || defined(__clang__)
#define INLINED static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINED static __forceinline
#else
#define INLINED static inline
#endif

/* Plain loops that the compiler vectorises: compiled for newer processors too, chosen at run time by what they can do
 * ("arch=..." would choose by the name of the processor, and leave out those of another maker). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("fma", "default")))
#else
#define WIDE
#endif

/* Functions between BEGIN_... and END_TARGET are compiled for an instruction set; the caller checks that it is there. */
#if defined(__clang__)
#define BEGIN_AVX2 _Pragma("clang attribute push(__attribute__((target(\"avx2,fma\"))), apply_to = function)")
#define BEGIN_AVX512 _Pragma("clang attribute push(__attribute__((target(\"avx512f,avx512dq,fma\"))), apply_to = function)")
#define END_TARGET _Pragma("clang attribute pop")
#elif defined(__GNUC__)
#define BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define BEGIN_AVX512 _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx512dq,fma\")")
#define END_TARGET _Pragma("GCC pop_options")
#endif

#endif
