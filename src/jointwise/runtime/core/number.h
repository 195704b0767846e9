/* The number type of the laws: double, or float where JW_FLOAT is defined. C99. */
#ifndef JOINTWISE_NUMBER_H
#define JOINTWISE_NUMBER_H

#include <math.h>

#ifdef JW_FLOAT
typedef float jw_real;
#define JW(x) x##f
#define jw_fabs fabsf
#define jw_sqrt sqrtf
#define jw_exp expf
#define jw_pow powf
#define jw_tanh tanhf
#define jw_sin sinf
#define jw_cos cosf
#define jw_floor floorf
#define jw_fmax fmaxf
#else
typedef double jw_real;
#define JW(x) x
#define jw_fabs fabs
#define jw_sqrt sqrt
#define jw_exp exp
#define jw_pow pow
#define jw_tanh tanh
#define jw_sin sin
#define jw_cos cos
#define jw_floor floor
#define jw_fmax fmax
#endif

/* Functions that must be inlined: for loops of known length and branches that vanish. */
#if defined(__GNUC__) || defined(__clang__)
#define JW_INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define JW_INLINE static __forceinline
#else
#define JW_INLINE static inline
#endif

#endif
