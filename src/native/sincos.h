/* Sine and cosine by Cody-Waite reduction to [-pi/4, pi/4] and minimax polynomials, below 2 units in the last place for
 * |x| < SINCOS_LIMIT. The macros take doubles or vectors of them. Plain C without Python.
 */
#ifndef JOINTWISE_SINCOS_H
#define JOINTWISE_SINCOS_H

#include "compiler.h"
#include <math.h>

/* Sines of larger angles (rad) are those of libm. */
#define SINCOS_LIMIT 1.0e5

#define PER_QUARTER_TURN 0.63661977236758134308 /* 2 / pi */
#define ROUNDING_SHIFT 6755399441055744.0       /* 1.5 * 2^52: added, it rounds to an integer in the lowest bits */

/* x less a number of quarter turns; pi/2 in three parts. */
#define REDUCED(x, turns)                                                                                              \
    ((x) - (turns) * 1.57079632673412561417e+00 - (turns) * 6.07710050630396597660e-11 -                              \
     (turns) * 2.02226624879595063154e-21)

/* sin r and cos r for |r| < pi/4, z = r r. */
#define SINE_POLYNOMIAL(r, z)                                                                                          \
    ((r) + (r) * (z) *                                                                                                 \
     (-1.66666666666666324348e-01 + (z) * (8.33333333332248946124e-03 + (z) * (-1.98412698298579493134e-04 +          \
      (z) * (2.75573137070700676789e-06 + (z) * (-2.50507602534068634195e-08 + (z) * 1.58969099521155010221e-10))))))
#define COSINE_POLYNOMIAL(z)                                                                                           \
    (1.0 - 0.5 * (z) + (z) * (z) *                                                                                     \
     (4.16666666666666019037e-02 + (z) * (-1.38888888888741095749e-03 + (z) * (2.48015872894767294178e-05 +           \
      (z) * (-2.75573143513906633035e-07 + (z) * (2.08757232129817482790e-09 + (z) * -1.13596475577881948265e-11))))))

INLINED void small_sine_cosine(double x, double *sine, double *cosine)
{
    double turns = floor(x * PER_QUARTER_TURN + 0.5), r = REDUCED(x, turns), z = r * r;
    double s = SINE_POLYNOMIAL(r, z), c = COSINE_POLYNOMIAL(z);
    int quadrant = (int)turns & 3;
    double first = quadrant & 1 ? c : s, second = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -first : first;
    *cosine = quadrant == 1 || quadrant == 2 ? -second : second;
}

/* The same for any angle. */
INLINED void sine_cosine(double x, double *sine, double *cosine)
{
    if (fabs(x) < SINCOS_LIMIT)
        small_sine_cosine(x, sine, cosine);
    else
        *sine = sin(x), *cosine = cos(x);
}

#endif
