/* Slip elements: the law behind Generalised Maxwell-Slip friction, one sample at a time.
 *
 * An element is a spring of the deformation d (rad) that slips at its limit b D; b is the relative backlash at the new
 * position. NumPy reference: model/friction/maxwell_slip.py. C99.
 */
#ifndef JOINTWISE_SLIP_H
#define JOINTWISE_SLIP_H

#include "number.h"

/* sgn(s) min(|s|, limit); a NaN stays one. */
JW_INLINE jw_real jw_clamp(jw_real s, jw_real limit)
{
    s = s > limit ? limit : s;
    return s < -limit ? -limit : s;
}

/* Derivative of the deformation with respect to D: ±b where an element slips, else that of its last slip. */
JW_INLINE jw_real jw_slip_slope(jw_real s, jw_real limit, jw_real b, jw_real before)
{
    before = s > limit ? b : before;
    return s < -limit ? -b : before;
}

/* Mean along a displacement, and its derivative with respect to it. */
typedef struct {
    jw_real mean, slope;
} jw_path_mean;

/* One slip element of the relative deformation x, moved by `move` (relative to its limit too): the mean of
 * x (1 + a sgn x) along the displacement, x kept within +-1. By energies, without cancellation:
 * (E(end) - E(start) + work in slip) / move. `per_move` = 1 / move. */
JW_INLINE jw_path_mean jw_slip_mean(jw_real x, jw_real move, jw_real per_move, jw_real a)
{
    x = jw_clamp(x, JW(1.0));
    jw_real end = x + move, side = end < JW(0.0) ? JW(-1.0) : JW(1.0), factor = JW(1.0) + a * side, slipped = JW(0.0);
    if (jw_fabs(end) > JW(1.0)) { /* not |end| - 1, which cancels for tiny moves */
        slipped = jw_fmax(jw_fabs(move) - jw_fabs(side - x), JW(0.0));
        end = side;
    }
    if (move == JW(0.0))
        return (jw_path_mean){x * factor, JW(0.5) * factor};
    jw_real mean;
    if (x * end >= JW(0.0)) /* does not pass zero; (end - x) / move is 1 without slip */
        mean = factor * (JW(0.5) * (slipped > JW(0.0) ? (end - x) * per_move : JW(1.0)) * (x + end) +
                         slipped * jw_fabs(per_move) * side);
    else
        mean = per_move * (factor * (JW(0.5) * end * end + slipped) - JW(0.5) * x * x * (JW(1.0) - a * side));
    return (jw_path_mean){mean, (end * factor - mean) * per_move};
}

/* A rate-dependent element of the relative force u at b D = `limit`: it sticks until |u| reaches the level h in the
 * direction of the motion, then follows du/dt = c (sgn w - u / h) until the motion reverses; `remains` = exp(-c T / h).
 * `limit_before` is b D at the sample before; `slipping` the direction of slip, 0 for sticking. */
JW_INLINE jw_real jw_rate_slip_step(jw_real u, jw_real move, jw_real limit_before, jw_real limit, jw_real h,
                                    jw_real remains, jw_real *slipping)
{
    jw_real side = move > JW(0.0) ? JW(1.0) : (move < JW(0.0) ? JW(-1.0) : JW(0.0)), target = side * h;
    if (*slipping != JW(0.0) && *slipping == side)
        return target + (u - target) * remains;
    jw_real stuck = (u * limit_before + move) / limit;
    if (side == JW(0.0))
        return stuck;
    int reached = side * stuck >= h;
    *slipping = reached ? side : JW(0.0);
    return reached ? target : stuck;
}

/* The relative deflection u of LuGre bristles of the length b D h = `length` after a move, exact for constant h and b. */
JW_INLINE jw_real jw_lugre_step(jw_real u, jw_real move, jw_real h, jw_real length)
{
    jw_real target = move < JW(0.0) ? -h : h;
    return target + (u - target) * jw_exp(-jw_fabs(move) / length);
}

#endif
