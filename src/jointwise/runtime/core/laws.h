/* Laws of friction without memory, one sample at a time. NumPy reference: model/friction. C99. */
#ifndef JOINTWISE_LAWS_H
#define JOINTWISE_LAWS_H

#include "number.h"

/* Exponents above this give a Stribeck curve below 1e-17. */
#define JW_FLAT JW(40.0)

JW_INLINE jw_real jw_sign(jw_real x)
{
    return x > JW(0.0) ? JW(1.0) : (x < JW(0.0) ? JW(-1.0) : JW(0.0));
}

/* sgn(w), or tanh(w / width) where width > 0. */
JW_INLINE jw_real jw_direction(jw_real speed, jw_real width)
{
    return width > JW(0.0) ? jw_tanh(speed / width) : jw_sign(speed);
}

/* x^p of x >= 0; the usual powers without a call of pow. */
JW_INLINE jw_real jw_power(jw_real x, jw_real p)
{
    return p == JW(1.0) ? x : (p == JW(2.0) ? x * x : (p == JW(0.5) ? jw_sqrt(x) : jw_pow(x, p)));
}

/* exp(-(|w| / V_S)^mu) */
JW_INLINE jw_real jw_stribeck(jw_real speed, jw_real stribeck_speed, jw_real exponent)
{
    jw_real power = jw_power(jw_fabs(speed) / stribeck_speed, exponent);
    return power < JW_FLAT ? jw_exp(-power) : JW(0.0);
}

/* sgn(w) |w|^p, above the speed `known` (0: no limit) along its tangent. */
JW_INLINE jw_real jw_viscous(jw_real speed, jw_real p, jw_real known)
{
    jw_real size = jw_fabs(speed), sign = jw_sign(speed);
    if (known > JW(0.0) && size > known)
        return sign * (jw_power(known, p) + p * jw_power(known, p - JW(1.0)) * (size - known));
    return sign * jw_power(size, p);
}

/* F_V1 + F_V2 |w| + F_V3 w^2: viscous friction over speed. */
JW_INLINE jw_real jw_viscous_factor(jw_real speed, jw_real FV1, jw_real FV2, jw_real FV3)
{
    jw_real size = jw_fabs(speed);
    return FV1 + size * (FV2 + size * FV3);
}

/* F_T1 (T - T0) + F_T2 (T^-3 - T0^-3), T limited to its range. */
JW_INLINE jw_real jw_thermal(jw_real T, jw_real FT1, jw_real FT2, jw_real T0, jw_real coldest, jw_real hottest)
{
    T = T < coldest ? coldest : (T > hottest ? hottest : T);
    return FT1 * (T - T0) + FT2 * (JW(1.0) / (T * T * T) - JW(1.0) / (T0 * T0 * T0));
}

enum { JW_LOAD_NONE, JW_LOAD_ABSOLUTE, JW_LOAD_SQUARE };

/* How dry friction grows with the load torque: 0, |tau| or tau^2. */
JW_INLINE jw_real jw_load_growth(jw_real load, int law)
{
    return law == JW_LOAD_SQUARE ? load * load : (law == JW_LOAD_ABSOLUTE ? jw_fabs(load) : JW(0.0));
}

/* Value of a table over one turn, equally spaced from 0, linear in between, at the angle theta (rad), and its slope, 1/rad.
 * A NaN stays one. */
JW_INLINE jw_real jw_periodic_slope(const jw_real *table, int points, jw_real theta, jw_real *slope)
{
    const jw_real turns_per_radian = JW(0.15915494309189533577);
    jw_real turns = theta * turns_per_radian, index = (turns - jw_floor(turns)) * (jw_real)points;
    int left = index >= JW(0.0) ? (int)index : 0;
    left = left < points ? left : points - 1;
    jw_real rise = table[left + 1 < points ? left + 1 : 0] - table[left];
    *slope = rise * (jw_real)points * turns_per_radian;
    return table[left] + (index - (jw_real)left) * rise;
}

JW_INLINE jw_real jw_periodic(const jw_real *table, int points, jw_real theta)
{
    jw_real slope;
    return jw_periodic_slope(table, points, theta, &slope);
}

#endif
