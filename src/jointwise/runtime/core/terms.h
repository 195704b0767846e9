/* The laws of a joint, one function each, one sample at a time.
 *
 * The torque of a joint is a sum of terms. Every law gives
 *
 *     torque = level * direction + factor * w + constant,
 *
 * w the speed of the rotor. The direction of dry friction is the sign of the speed (or tanh), or the state H in [-1, 1] of
 * the slip term of the joint that a position drives: then friction is continuous at a reversal. Runtime, exports and
 * monitors take the torque at a sample; the simulated robot takes level, factor and constant in the middle of a step and the
 * mean of the direction along the displacement of the step.
 *
 * A new law is a function jw_term_<law> and a line of JW_TERM_LIST; a law with memory of the position is four functions and
 * a line of JW_SLIP_LIST. Its Python twin with the equation is in model/terms/<law>.py. C99.
 */
#ifndef JOINTWISE_TERMS_H
#define JOINTWISE_TERMS_H

#include "number.h"

#define JW_MOST_ELEMENTS 64 /* of a term */
#define JW_NUMBERS 8        /* of a term */

/* What drives friction with memory: the joint position, the integrated measured speed, the rotor position. A level acts in
 * the direction of the speed, or of the nearest slip term before it in the list with the same driver. */
enum { JW_DRIVER_Q, JW_DRIVER_TRACK, JW_DRIVER_ROTOR, JW_DRIVER_SPEED };

/* How dry friction grows with the load torque; JW_LOAD_MIXED: not linear in one of the others. */
enum { JW_LOAD_NONE, JW_LOAD_ABSOLUTE, JW_LOAD_SQUARE, JW_LOAD_MIXED };

/* Dry friction; dry friction with memory of a position; other torques that need no measured speed; the inertia of a rotor
 * that is not part of the load torque; the response of the drive to the ripple of the measured speed. */
enum { JW_ROLE_DRY, JW_ROLE_SLIP, JW_ROLE_SMOOTH, JW_ROLE_ROTOR, JW_ROLE_DRIVE };

/* X(law, role, columns of its elements, numbers that it remembers beside the last position of JW_ROLE_SLIP) */
#define JW_SLIP_LIST(X)                                \
    X(slip, JW_ROLE_SLIP, 4, term->count)              \
    X(rate_slip, JW_ROLE_SLIP, 2, 2 * term->count + 1) \
    X(lugre, JW_ROLE_SLIP, 0, 1)
#define JW_TERM_LIST(X)             \
    X(offset, JW_ROLE_SMOOTH, 0, 0) \
    X(coulomb, JW_ROLE_DRY, 0, 0)   \
    X(load, JW_ROLE_DRY, 0, 0)      \
    X(stribeck, JW_ROLE_DRY, 0, 0)  \
    X(power_flow, JW_ROLE_DRY, 0, 0) \
    X(viscous, JW_ROLE_SMOOTH, 2, 0) \
    X(thermal, JW_ROLE_SMOOTH, 0, 0) \
    JW_SLIP_LIST(X)                 \
    X(spring, JW_ROLE_SMOOTH, 0, 0) \
    X(inertia, JW_ROLE_ROTOR, 0, 0) \
    X(ripple, JW_ROLE_DRIVE, 0, term->count)

#define JW_TERM_NAME(law, role, columns, memory) JW_TERM_##law,
enum { JW_TERM_LIST(JW_TERM_NAME) JW_TERM_KINDS };
#undef JW_TERM_NAME

typedef struct {
    int kind, load, driver, count, points;
    jw_real width; /* speed (rad/s) over which the sign of the speed turns as tanh; 0: at once */
    jw_real number[JW_NUMBERS];
    const jw_real *elements; /* columns of `count` numbers, one after the other */
    const jw_real *backlash; /* relative backlash b over a turn, `points` numbers; NULL for 1 everywhere */
} jw_term;

#ifndef __cplusplus /* C++ programs use the types alone */

/* What the terms of a joint depend on. */
typedef struct {
    jw_real speed, load, temperature, ripple, path[3]; /* path by driver */
    jw_real sharpest;                                  /* speed over which a sign turns at least, rad/s */
    jw_real acceleration, position;
    jw_real direction[3]; /* H of the slip terms so far, by driver */
} jw_input;

typedef struct {
    jw_real level, direction, factor, constant;
} jw_part;

JW_INLINE jw_real jw_part_torque(jw_part part, jw_real speed)
{
    return part.level * part.direction + part.factor * speed + part.constant;
}

/* -- functions that laws share -- */

JW_INLINE jw_real jw_sign(jw_real x)
{
    return x > JW(0.0) ? JW(1.0) : (x < JW(0.0) ? JW(-1.0) : JW(0.0));
}

/* sgn(s) min(|s|, limit); a NaN stays one. */
JW_INLINE jw_real jw_clamp(jw_real s, jw_real limit)
{
    s = s > limit ? limit : s;
    return s < -limit ? -limit : s;
}

/* x^p of x >= 0; the usual powers without a call of pow. */
JW_INLINE jw_real jw_power(jw_real x, jw_real p)
{
    return p == JW(0.0) ? JW(1.0)
                        : (p == JW(1.0) ? x : (p == JW(2.0) ? x * x : (p == JW(0.5) ? jw_sqrt(x) : jw_pow(x, p))));
}

/* max(x, 0): fmax is slow, as it keeps NaN apart. */
JW_INLINE jw_real jw_positive(jw_real x) { return x > JW(0.0) ? x : JW(0.0); }

/* sgn(w), or tanh(w / width) where width > 0. */
JW_INLINE jw_real jw_direction(jw_real speed, jw_real width)
{
    return width > JW(0.0) ? jw_tanh(speed / width) : jw_sign(speed);
}

/* The direction in which a level acts. */
JW_INLINE jw_real jw_term_direction(const jw_term *term, const jw_input *in)
{
    return term->driver == JW_DRIVER_SPEED ? jw_direction(in->speed, jw_fmax(term->width, in->sharpest))
                                           : in->direction[term->driver];
}

/* How dry friction grows with the load torque: 0, |tau| or tau^2. */
JW_INLINE jw_real jw_load_growth(jw_real load, int law)
{
    return law == JW_LOAD_SQUARE ? load * load : (law == JW_LOAD_ABSOLUTE ? jw_fabs(load) : JW(0.0));
}

/* Exponents above this give a Stribeck curve below 1e-17. */
#define JW_FLAT JW(40.0)

/* exp(-(|w| / V_S)^mu) */
JW_INLINE jw_real jw_stribeck(jw_real speed, jw_real stribeck_speed, jw_real exponent)
{
    jw_real power = jw_power(jw_fabs(speed) / stribeck_speed, exponent);
    return power < JW_FLAT ? jw_exp(-power) : JW(0.0);
}

/* F_T1 (T - T0) + F_T2 (T^-3 - T0^-3), T limited to its range. */
JW_INLINE jw_real jw_thermal(jw_real T, jw_real FT1, jw_real FT2, jw_real T0, jw_real coldest, jw_real hottest)
{
    T = T < coldest ? coldest : (T > hottest ? hottest : T);
    jw_real cube = T * T * T, cube0 = T0 * T0 * T0; /* one division for both */
    return FT1 * (T - T0) + FT2 * ((cube0 - cube) / (cube * cube0));
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

JW_INLINE jw_real jw_term_backlash(const jw_term *term, jw_real position)
{
    return term->points > 1 ? jw_periodic(term->backlash, term->points, position)
                            : (term->points == 1 ? term->backlash[0] : JW(1.0));
}

/* -- laws without memory -- */

#define JW_LAW(law) JW_INLINE jw_part jw_term_##law(const jw_term *term, jw_input *in, jw_real *memory)

/* n0 */
JW_LAW(offset)
{
    (void)in, (void)memory;
    return (jw_part){.constant = term->number[0]};
}

/* F_C0 = n0 */
JW_LAW(coulomb)
{
    (void)memory;
    return (jw_part){.level = term->number[0], .direction = jw_term_direction(term, in)};
}

/* F_C1 = n0 times the growth with the load */
JW_LAW(load)
{
    (void)memory;
    return (jw_part){.level = term->number[0] * jw_load_growth(in->load, term->load),
                     .direction = jw_term_direction(term, in)};
}

/* F_S = n0 times the curve of the speed n1 with the exponent n2 */
JW_LAW(stribeck)
{
    const jw_real *n = term->number;
    (void)memory;
    return (jw_part){.level = n[0] * jw_stribeck(in->speed, n[1], n[2]), .direction = jw_term_direction(term, in)};
}

/* T_dir = n0 where the joint drives its load, T_rev = n1 elsewhere; between them over the power n2 (W; 0: at once) */
JW_LAW(power_flow)
{
    const jw_real *n = term->number;
    jw_real power = in->speed * in->load, level = power > JW(0.0) ? n[0] : n[1];
    (void)memory;
    if (n[2] > JW(0.0))
        level = JW(0.5) * (n[0] + n[1]) + JW(0.5) * (n[0] - n[1]) * jw_tanh(power / n[2]);
    return (jw_part){.level = level, .direction = jw_term_direction(term, in)};
}

/* Sum of e1 sgn(w) |w|^e0, above the speed n0 (0: no limit) along its tangent. Powers below 1 are steep at standstill: they
 * are a level, the others a factor. */
JW_LAW(viscous)
{
    const jw_real *powers = term->elements, *values = powers + term->count;
    jw_real size = jw_fabs(in->speed), known = term->number[0], root = JW(0.0), factor = JW(0.0);
    int beyond = known > JW(0.0) && size > known;
    (void)memory;
    for (int i = 0; i < term->count; i++) {
        jw_real p = powers[i];
        if (beyond)
            factor += values[i] * (jw_power(known, p) + p * jw_power(known, p - JW(1.0)) * (size - known)) / size;
        else if (p < JW(1.0))
            root += values[i] * jw_power(size, p);
        else
            factor += values[i] * jw_power(size, p - JW(1.0));
    }
    return (jw_part){.level = root, .direction = jw_sign(in->speed), .factor = factor};
}

/* sqrt|w| (F_T1 (T - T0) + F_T2 (T^-3 - T0^-3)); F_T1, F_T2, T0 and the range of T are n0 to n4. It vanishes at standstill:
 * the sign of the speed may jump. */
JW_LAW(thermal)
{
    const jw_real *n = term->number;
    (void)memory;
    return (jw_part){.level = jw_sqrt(jw_fabs(in->speed)) * jw_thermal(in->temperature, n[0], n[1], n[2], n[3], n[4]),
                     .direction = term->driver == JW_DRIVER_SPEED ? jw_sign(in->speed) : in->direction[term->driver]};
}

/* n0 q + n1 q^3 */
JW_LAW(spring)
{
    jw_real q = in->position;
    (void)memory;
    return (jw_part){.constant = q * (term->number[0] + term->number[1] * q * q)};
}

/* n0 times the acceleration */
JW_LAW(inertia)
{
    (void)memory;
    return (jw_part){.constant = term->number[0] * in->acceleration};
}

/* n0 u(t - lag) + (n1 + n2) u(t), |u| < n4 (0: no limit), lag n3 samples; the memory is the u of `count` samples before */
JW_LAW(ripple)
{
    const jw_real *n = term->number;
    jw_real u = n[4] > JW(0.0) ? jw_clamp(in->ripple, n[4]) : in->ripple;
    int whole = (int)jw_floor(n[3]); /* between `whole` and whole + 1 samples ago */
    jw_real part = n[3] - (jw_real)whole, late = whole > 0 ? memory[whole - 1] : u;
    if (part > JW(0.0))
        late += part * (memory[whole] - late);
    for (int i = term->count - 1; i > 0; i--)
        memory[i] = memory[i - 1];
    if (term->count > 0)
        memory[0] = u;
    return (jw_part){.constant = n[0] * late + (n[1] + n[2]) * u};
}

/* -- dry friction with memory: what a law does with a displacement --
 *
 * jw_step_<law> takes a displacement `move` that ends at a sample, and returns the torque there and H, the direction of other
 * levels. The other functions are those of the simulated robot, where a level L of other terms acts on the same elements:
 * jw_along_<law> is the mean torque along a displacement and its derivative with respect to it; jw_range_<law> bounds it;
 * jw_energy_<law> is what the elements hold. No weight of an element is below zero there, so that friction is passive.
 * b is the relative backlash at the end of the displacement, per_b = 1 / b, h the level in steady sliding. */

/* Mean along a displacement, and its derivative with respect to it. */
typedef struct {
    jw_real mean, slope;
} jw_path_mean;

/* Bounds of a torque, Nm. */
typedef struct {
    jw_real least, most;
} jw_range;

/* u (1 + a sgn u): dry friction that differs by direction. */
JW_INLINE jw_real jw_asymmetric(jw_real u, jw_real a) { return u * (JW(1.0) + (u < JW(0.0) ? -a : a)); }

/* -- slip elements: springs of the deformation d (rad) that slip at their limits b D -- */

/* Derivative of the deformation with respect to D: ±b where an element slips, else that of its last slip. */
JW_INLINE jw_real jw_slip_slope(jw_real s, jw_real limit, jw_real b, jw_real before)
{
    before = s > limit ? b : before;
    return s < -limit ? -b : before;
}

/* One slip element of the relative deformation x, moved by `move` (relative to its limit too): the mean of
 * x (1 + a sgn x) along the displacement, x kept within +-1. By energies, without cancellation:
 * (E(end) - E(start) + work in slip) / move. `per_move` = 1 / move. */
JW_INLINE jw_path_mean jw_slip_mean(jw_real x, jw_real move, jw_real per_move, jw_real a)
{
    x = jw_clamp(x, JW(1.0));
    jw_real end = x + move, side = end < JW(0.0) ? JW(-1.0) : JW(1.0), factor = JW(1.0) + a * side, slipped = JW(0.0);
    if (jw_fabs(end) > JW(1.0)) { /* not |end| - 1, which cancels for tiny moves */
        slipped = jw_positive(jw_fabs(move) - jw_fabs(side - x));
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

/* u = d / (b D), d kept within +-b D: torque sum of W u, direction H = sum of s u, both weighed by the asymmetry n1. Columns
 * D, W, s and 1 / D; the part n0 of a deformation remains after a sample; the memory is the deformations. */
JW_INLINE jw_real jw_step_slip(const jw_term *term, jw_real speed, jw_real move, jw_real b, jw_real *memory, jw_real *H)
{
    int m = term->count;
    const jw_real *limits = term->elements, *forces = limits + m, *shares = forces + m, *per_limit = shares + m;
    jw_real per_b = JW(1.0) / b, decay = term->number[0], a = term->number[1], torque = JW(0.0), u[JW_MOST_ELEMENTS];
    (void)speed;
    for (int i = 0; i < m; i++) {
        memory[i] = jw_clamp(decay * memory[i] + move, b * limits[i]);
        u[i] = jw_asymmetric(memory[i] * (per_b * per_limit[i]), a);
    }
    *H = JW(0.0);
    for (int i = 0; i < m; i++) {
        torque += forces[i] * u[i];
        *H += shares[i] * u[i];
    }
    return torque;
}

JW_INLINE jw_path_mean jw_along_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real h, jw_real b,
                                     jw_real per_b, jw_real move)
{
    int m = term->count;
    const jw_real *limits = term->elements, *forces = limits + m, *shares = forces + m, *per_limit = shares + m;
    jw_real decay = term->number[0], a = term->number[1], per_move = b / move;
    jw_path_mean sum = {JW(0.0), JW(0.0)};
    (void)h;
    for (int i = 0; i < m; i++) {
        jw_real weight = jw_positive(forces[i] + shares[i] * L), scale = per_b * per_limit[i];
        jw_path_mean element = jw_slip_mean(decay * memory[i] * scale, move * scale, per_move * limits[i], a);
        sum.mean += weight * element.mean;
        sum.slope += weight * scale * element.slope;
    }
    return sum;
}

JW_INLINE jw_range jw_range_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real h)
{
    int m = term->count;
    const jw_real *forces = term->elements + m, *shares = forces + m;
    jw_real a = term->number[1], sum = JW(0.0);
    (void)memory, (void)h;
    for (int i = 0; i < m; i++)
        sum += jw_positive(forces[i] + shares[i] * L);
    return (jw_range){-sum * (JW(1.0) - a), sum * (JW(1.0) + a)};
}

JW_INLINE jw_real jw_energy_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real b)
{
    int m = term->count;
    const jw_real *forces = term->elements + m, *shares = forces + m, *per_limit = shares + m;
    jw_real energy = JW(0.0);
    for (int i = 0; i < m; i++) {
        jw_real weight = jw_positive(forces[i] + shares[i] * L), d = memory[i];
        energy += JW(0.5) * weight * per_limit[i] * d * jw_asymmetric(d, term->number[1]) / b;
    }
    return energy;
}

/* -- slip that depends on the rate: level h = 1 + n2 stribeck(w, n3, n4) in steady sliding -- */

JW_INLINE jw_real jw_steady_level(const jw_term *term, jw_real speed)
{
    const jw_real *n = term->number;
    return JW(1.0) + n[2] * jw_stribeck(speed, n[3], n[4]);
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

/* n0 H with H = sum of s u; columns D and s; n1 = c T. The memory is u, the directions of slip, and b - 1 at the sample
 * before. */
JW_INLINE jw_real jw_step_rate_slip(const jw_term *term, jw_real speed, jw_real move, jw_real b, jw_real *memory, jw_real *H)
{
    int m = term->count;
    const jw_real *limits = term->elements, *shares = limits + m;
    jw_real h = jw_steady_level(term, speed), remains = jw_exp(-term->number[1] / h), before = JW(1.0) + memory[2 * m];
    *H = JW(0.0);
    for (int i = 0; i < m; i++) {
        jw_real limit = limits[i];
        memory[i] = jw_rate_slip_step(memory[i], move, before * limit, b * limit, h, remains, &memory[m + i]);
        *H += shares[i] * memory[i];
    }
    memory[2 * m] = b - JW(1.0);
    return term->number[0] * *H;
}

/* Its elements slip in time, not along the path: the mean of start and end. */
JW_INLINE jw_path_mean jw_along_rate_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real h, jw_real b,
                                          jw_real per_b, jw_real move)
{
    int m = term->count;
    const jw_real *limits = term->elements, *shares = limits + m;
    jw_real remains = jw_exp(-term->number[1] / h), before = JW(1.0) + memory[2 * m];
    jw_real weight = JW(0.5) * jw_positive(term->number[0] + L);
    jw_path_mean sum = {JW(0.0), JW(0.0)};
    (void)per_b;
    for (int i = 0; i < m; i++) {
        jw_real limit = b * limits[i], slipping = memory[m + i];
        jw_real end = jw_rate_slip_step(memory[i], move, before * limits[i], limit, h, remains, &slipping);
        sum.mean += weight * shares[i] * (memory[i] + end);
        sum.slope += slipping == JW(0.0) ? weight * shares[i] / limit : JW(0.0);
    }
    return sum;
}

JW_INLINE jw_range jw_range_rate_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real h)
{
    int m = term->count;
    const jw_real *shares = term->elements + m;
    jw_real sum = JW(0.0);
    for (int i = 0; i < m; i++)
        sum += jw_fabs(shares[i]) * jw_fmax(h, jw_fabs(memory[i]));
    sum *= jw_positive(term->number[0] + L);
    return (jw_range){-sum, sum};
}

JW_INLINE jw_real jw_energy_rate_slip(const jw_term *term, const jw_real *memory, jw_real L, jw_real b)
{
    int m = term->count;
    const jw_real *limits = term->elements, *shares = limits + m;
    jw_real energy = JW(0.0);
    for (int i = 0; i < m; i++)
        energy += shares[i] * limits[i] * memory[i] * memory[i];
    return JW(0.5) * b * jw_positive(term->number[0] + L) * energy;
}

/* The relative deflection u of LuGre bristles of the length b D h = `length` after a move, exact for constant h and b. */
JW_INLINE jw_real jw_lugre_step(jw_real u, jw_real move, jw_real h, jw_real length)
{
    jw_real target = move < JW(0.0) ? -h : h;
    return target + (u - target) * jw_exp(-jw_fabs(move) / length);
}

/* n0 H with H = u + n5 (u - u before), u the deflection of bristles of the length n1; the memory is u. */
JW_INLINE jw_real jw_step_lugre(const jw_term *term, jw_real speed, jw_real move, jw_real b, jw_real *memory, jw_real *H)
{
    const jw_real *n = term->number;
    jw_real h = jw_steady_level(term, speed), before = memory[0];
    memory[0] = jw_lugre_step(before, move, h, n[1] * b * h);
    *H = memory[0] + n[5] * (memory[0] - before);
    return n[0] * *H;
}

JW_INLINE jw_path_mean jw_along_lugre(const jw_term *term, const jw_real *memory, jw_real L, jw_real h, jw_real b,
                                      jw_real per_b, jw_real move)
{
    const jw_real *n = term->number;
    jw_real weight = jw_positive(n[0] + L), u = memory[0], length = n[1] * b * h, side = move < JW(0.0) ? -JW(1.0) : JW(1.0);
    jw_real x = jw_fabs(move) / length, left = jw_exp(-x), beside = u - side * h;
    /* mean of exp(-s) for s from 0 to x, and its derivative; series where the quotient would cancel */
    jw_real mean = x > JW(1e-4) ? (JW(1.0) - left) / x : JW(1.0) - x * (JW(0.5) - x / JW(6.0));
    jw_real slope = x > JW(1e-4) ? (left - mean) / x : -JW(0.5) + x / JW(3.0);
    (void)per_b;
    return (jw_path_mean){weight * (side * h + beside * mean + n[5] * beside * (left - JW(1.0))),
                          weight * side * beside * (slope - n[5] * left) / length};
}

JW_INLINE jw_range jw_range_lugre(const jw_term *term, const jw_real *memory, jw_real L, jw_real h)
{
    jw_real u = memory[0], n5 = term->number[5], weight = jw_positive(term->number[0] + L);
    jw_real most = jw_fmax(h, u) + n5 * jw_fmax(h - u, JW(0.0)), least = jw_fmax(h, -u) + n5 * jw_fmax(h + u, JW(0.0));
    return (jw_range){-weight * least, weight * most};
}

JW_INLINE jw_real jw_energy_lugre(const jw_term *term, const jw_real *memory, jw_real L, jw_real b)
{
    return JW(0.5) * b * term->number[1] * jw_positive(term->number[0] + L) * memory[0] * memory[0];
}

/* The same functions for the law of a term. */
#define JW_SLIP_CASE(law, role, columns, remembers) \
    case JW_TERM_##law: return JW_SLIP_CALL(law);
JW_INLINE jw_real jw_slip_step(const jw_term *term, jw_real speed, jw_real move, jw_real b, jw_real *memory, jw_real *H)
{
#define JW_SLIP_CALL(law) jw_step_##law(term, speed, move, b, memory, H)
    switch (term->kind) { JW_SLIP_LIST(JW_SLIP_CASE) }
#undef JW_SLIP_CALL
    return *H = JW(0.0);
}
JW_INLINE jw_path_mean jw_slip_along(const jw_term *term, const jw_real *memory, jw_real L, jw_real h, jw_real b,
                                     jw_real per_b, jw_real move)
{
#define JW_SLIP_CALL(law) jw_along_##law(term, memory, L, h, b, per_b, move)
    switch (term->kind) { JW_SLIP_LIST(JW_SLIP_CASE) }
#undef JW_SLIP_CALL
    return (jw_path_mean){JW(0.0), JW(0.0)};
}
JW_INLINE jw_range jw_slip_range(const jw_term *term, const jw_real *memory, jw_real L, jw_real h)
{
#define JW_SLIP_CALL(law) jw_range_##law(term, memory, L, h)
    switch (term->kind) { JW_SLIP_LIST(JW_SLIP_CASE) }
#undef JW_SLIP_CALL
    return (jw_range){JW(0.0), JW(0.0)};
}
JW_INLINE jw_real jw_slip_energy(const jw_term *term, const jw_real *memory, jw_real L, jw_real b)
{
#define JW_SLIP_CALL(law) jw_energy_##law(term, memory, L, b)
    switch (term->kind) { JW_SLIP_LIST(JW_SLIP_CASE) }
#undef JW_SLIP_CALL
    return JW(0.0);
}
#undef JW_SLIP_CASE

/* A term with memory at a sample: its memory takes the way from the last position, and H becomes the direction of its driver. */
#define JW_SLIP_LAW(law, role, columns, remembers)                                                              \
    static inline jw_part jw_term_##law(const jw_term *term, jw_input *in, jw_real *memory)                     \
    {                                                                                                           \
        jw_real position = in->path[term->driver], *last = &memory[remembers], H;                               \
        jw_real b = jw_term_backlash(term, position);                                                           \
        jw_real torque = jw_step_##law(term, in->speed, position - *last, b, memory, &H);                       \
        *last = position;                                                                                       \
        in->direction[term->driver] = H;                                                                        \
        return (jw_part){.level = JW(1.0), .direction = torque};                                                \
    }
JW_SLIP_LIST(JW_SLIP_LAW)
#undef JW_SLIP_LAW

/* -- all laws -- */

/* Level, direction, factor and constant of a term; its memory takes the sample. */
JW_INLINE jw_part jw_term_part(const jw_term *term, jw_input *in, jw_real *memory)
{
#define JW_TERM_CASE(law, role, columns, remembers) \
    case JW_TERM_##law: return jw_term_##law(term, in, memory);
    switch (term->kind) { JW_TERM_LIST(JW_TERM_CASE) }
#undef JW_TERM_CASE
    return (jw_part){.level = JW(0.0)};
}

JW_INLINE int jw_term_role(const jw_term *term)
{
#define JW_TERM_CASE(law, role, columns, remembers) \
    case JW_TERM_##law: return role;
    switch (term->kind) { JW_TERM_LIST(JW_TERM_CASE) }
#undef JW_TERM_CASE
    return JW_ROLE_SMOOTH;
}

/* Columns of the elements of a term. */
JW_INLINE int jw_term_columns(const jw_term *term)
{
#define JW_TERM_CASE(law, role, columns, remembers) \
    case JW_TERM_##law: return columns;
    switch (term->kind) { JW_TERM_LIST(JW_TERM_CASE) }
#undef JW_TERM_CASE
    return 0;
}

/* Numbers that a term remembers; with a slip term the last one is the last position. */
JW_INLINE int jw_term_memory(const jw_term *term)
{
#define JW_TERM_CASE(law, role, columns, remembers) \
    case JW_TERM_##law: return (remembers) + (role == JW_ROLE_SLIP);
    switch (term->kind) { JW_TERM_LIST(JW_TERM_CASE) }
#undef JW_TERM_CASE
    return 0;
}

#endif
#endif
