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

/* The elements take a displacement that ends where the backlash is as given: exact, whatever the rate. */
INLINED void deform(const friction_law *law, double backlash, double move, double *deformation)
{
    for (int i = 0; i < (int)law->elements; i++)
        deformation[i] = jw_clamp(deformation[i] + move, backlash * law->limits[i]);
}

#endif
