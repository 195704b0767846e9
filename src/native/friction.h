/* Friction of a joint: steady laws of speed, load and temperature, carried by slip elements.
 *
 * f = level(w, tau, T) H + (F_V1 + F_V2 |w| + F_V3 w^2) w, H in [-1, 1] the state of the slip elements. H replaces sgn(w)
 * everywhere, so that friction is continuous at reversal and passive. NumPy reference:
 * model/joint_friction.py. Plain C without Python.
 */
#ifndef JOINTWISE_FRICTION_H
#define JOINTWISE_FRICTION_H

#include "compiler.h"
#include "terms.h"

#define MOST_ELEMENTS 16

/* Displacements below this, relative to the backlash, count as none: their inverse would overflow. */
#define SHORTEST 1e-200

/* Power (W) over which friction changes from the load driving the motor to the motor driving the load. */
#define FLOW_WIDTH 1e-3

/* Only doubles, as Python packs them. SI units at the joint side, temperatures in deg C. */
typedef struct {
    double coulomb, load;                                        /* F_C0, F_C1 */
    double stribeck_extra, stribeck_speed, stribeck_exponent;    /* F_S - F_C0, V_S, mu */
    double viscous, square, cube;                                /* F_V1, F_V2, F_V3 */
    double FT1, FT2, reference, coldest, hottest;                /* temperatures T0 and the range of T */
    double asymmetry;                                            /* a: (1 + a sgn H) of the dry part */
    double flow;                                                 /* F_P: more where the motor drives the load, less elsewhere */
    double elements;
    double limits[MOST_ELEMENTS], per_limit[MOST_ELEMENTS], shares[MOST_ELEMENTS]; /* D_i, 1 / D_i, W_i */
} friction_law;

/* F_T1 (T - T0) + F_T2 (T^-3 - T0^-3), T limited to its range; times sqrt|w| it is the thermal part of the level. */
INLINED double thermal_factor(const friction_law *f, double temperature)
{
    return jw_thermal(temperature, f->FT1, f->FT2, f->reference, f->coldest, f->hottest);
}

/* Level of the dry part: F_C0 + F_C1 tau^2 + (F_S - F_C0) exp(-(|w|/V_S)^mu) + sqrt|w| F_T(T) + F_P tanh(w tau / P_0), never
 * below zero. */
INLINED double dry_level(const friction_law *f, double speed, double load, double thermal)
{
    double level = f->coulomb + f->load * jw_load_growth(load, JW_LOAD_SQUARE) + thermal * sqrt(fabs(speed));
    if (f->stribeck_extra != 0.0)
        level += f->stribeck_extra * jw_stribeck(speed, f->stribeck_speed, f->stribeck_exponent);
    if (f->flow != 0.0)
        level += f->flow * tanh(speed * load / FLOW_WIDTH);
    return level > 0.0 ? level : 0.0;
}

/* F_V1 + F_V2 |w| + F_V3 w^2, never below zero. */
INLINED double viscous_factor(const friction_law *f, double speed)
{
    double size = fabs(speed), factor = f->viscous + size * (f->square + size * f->cube);
    return factor > 0.0 ? factor : 0.0;
}

/* Whether there is anything to compute. */
INLINED int has_friction(const friction_law *f)
{
    return f->viscous != 0.0 || f->square != 0.0 || f->cube != 0.0 || f->elements != 0.0;
}

/* Friction of a joint during one step: f(D) = level H(D) + viscous D / h over the displacement D, H(D) its mean. */
typedef struct {
    const friction_law *law;
    const double *deformation; /* of the slip elements, rad */
    double level, viscous, per_backlash;
} step_friction;

/* Mean of H along a displacement, and its derivative with respect to it. */
INLINED jw_path_mean hysteresis_mean(const step_friction *f, double move)
{
    const friction_law *law = f->law;
    double relative = move * f->per_backlash, per_relative;
    relative = fabs(relative) < SHORTEST ? 0.0 : relative;
    per_relative = 1.0 / relative;
    jw_path_mean H = {0.0, 0.0};
    for (int i = 0; i < (int)law->elements; i++) {
        double per_limit = law->per_limit[i];
        jw_path_mean element = jw_slip_mean(f->deformation[i] * f->per_backlash * per_limit, relative * per_limit,
                                      per_relative * law->limits[i], law->asymmetry);
        H.mean += law->shares[i] * element.mean;
        H.slope += law->shares[i] * element.slope * per_limit * f->per_backlash;
    }
    return H;
}

/* The elements take a displacement that ends where the backlash is as given: exact, whatever the rate. */
INLINED void deform(const friction_law *law, double backlash, double move, double *deformation)
{
    for (int i = 0; i < (int)law->elements; i++)
        deformation[i] = jw_clamp(deformation[i] + move, backlash * law->limits[i]);
}

/* Energy of the elements at the level 1, J/Nm; their relative deformations weighed by the asymmetry. */
INLINED double hysteresis_energy(const friction_law *law, double backlash, const double *deformation)
{
    double energy = 0.0, factor = 0.5 / backlash;
    for (int i = 0; i < (int)law->elements; i++) {
        double x = deformation[i];
        energy += law->shares[i] * law->per_limit[i] * factor * x * fabs(x) * (law->asymmetry + copysign(1.0, x));
    }
    return energy;
}

/* Solves D (1 + c v) + c h level H(D) = free for the displacement D, c = h G / 2, G the inverse inertia, and returns the
 * mean friction torque. Newton's method from the slipping side, kept in its bracket by bisection; the left side only
 * grows with D. */
INLINED double solve_friction(const step_friction *f, double free, double h, double G)
{
    double c = 0.5 * h * G, straight = 1.0 + c * f->viscous, dry = c * h * f->level, a = f->law->asymmetry;
    if (dry == 0.0 || f->law->elements == 0.0)
        return f->viscous * free / straight / h;
    double low = (free - dry * (1.0 + a)) / straight, high = (free + dry * (1.0 - a)) / straight;
    double move = low > 0.0 ? low : (high < 0.0 ? high : 0.0), size = straight * (high - low);
    jw_path_mean H = hysteresis_mean(f, move);
    for (int k = 0; k < 60; k++) {
        double rest = straight * move + dry * H.mean - free;
        if (fabs(rest) <= 4e-16 * (fabs(free) + size))
            break;
        if (rest > 0.0)
            high = move;
        else
            low = move;
        double next = move - rest / (straight + dry * H.slope);
        if (!(next >= low && next <= high))
            next = 0.5 * (low + high);
        if (next == move)
            break;
        move = next;
        H = hysteresis_mean(f, move);
    }
    return f->level * H.mean + f->viscous * move / h;
}

#endif
