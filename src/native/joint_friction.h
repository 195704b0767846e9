/* Friction of one identified joint along its motion, one sample at a time.
 *
 * Steady friction over speed, load and temperature times the state H in [-1, 1] of slip elements (or of tanh where there are
 * none); or the dry friction of a law with its own memory beside viscous friction. NumPy references: `OnlineFriction` of
 * joint/combined_friction.py and the laws that it names. Plain C without Python.
 */
#ifndef JOINTWISE_JOINT_FRICTION_H
#define JOINTWISE_JOINT_FRICTION_H

#include "compiler.h"
#include "terms.h"

/* -- steady friction -- */

/* f = (sgn w + a) (F_C + (F_S - F_C) exp(-(|w|/V_S)^mu)) + F_V1 w + F_V2 |w| w + F_V3 w^3 + o, |w| limited to the measured
 * range. */
typedef struct {
    double coulomb, rest, stribeck_speed, shape, viscous, square, cube, asymmetry, offset, slowest, fastest;
} velocity_law;

/* F_l sgn(w) |tau|^p, |tau| up to the largest measured. */
typedef struct {
    double factor, power, largest;
} load_law;

enum { THERMAL_NONE, THERMAL_LINEAR, THERMAL_CUBIC, THERMAL_EXPONENTIAL };

/* Friction that a temperature adds to that at the reference; `usual` is the temperature of the velocity law. */
typedef struct {
    int kind;
    double number[4], reference, coldest, hottest, fastest, usual;
} temperature_law;

typedef struct {
    velocity_law velocity;
    load_law load;
    temperature_law thermal;
} steady_law;

INLINED double viscous_part(const velocity_law *law, double speed)
{
    double size = fabs(speed = jw_clamp(speed, law->fastest));
    return (law->viscous + size * (law->square + size * law->cube)) * speed;
}

INLINED double velocity_torque(const velocity_law *law, double speed)
{
    double side = jw_sign(speed), size = fmin(fmax(fabs(speed), law->slowest), law->fastest);
    double dry = law->coulomb + (law->rest - law->coulomb) * jw_stribeck(size, law->stribeck_speed, law->shape);
    return fabs(side) * ((side + law->asymmetry) * dry + viscous_part(law, side * size) + law->offset);
}

INLINED double load_torque(const load_law *law, double speed, double load)
{
    return law->factor == 0.0 ? 0.0 : law->factor * jw_sign(speed) * jw_power(fmin(fabs(load), law->largest), law->power);
}

/* (A_0 + A_1 T) exp(-|w| (b_0 + b_1 T)) */
INLINED double exponential_level(const double *n, double speed, double T)
{
    return (n[0] + n[1] * T) * exp(-fabs(speed) * (n[2] + n[3] * T));
}

INLINED double thermal_torque(const temperature_law *law, double speed, double T)
{
    const double *n = law->number;
    speed = jw_clamp(speed, law->fastest);
    T = fmin(fmax(T, law->coldest), law->hottest);
    if (law->kind == THERMAL_EXPONENTIAL)
        return jw_sign(speed) * (exponential_level(n, speed, T) - exponential_level(n, speed, law->reference));
    double root = jw_sign(speed) * sqrt(fabs(speed));
    if (law->kind == THERMAL_LINEAR) /* without T^-3, which diverges at 0 deg C */
        return root * n[0] * (T - law->reference);
    return root * jw_thermal(T, n[0], n[1], law->reference, law->coldest, law->hottest);
}

INLINED double steady_torque(const steady_law *law, double speed, double load, double T)
{
    double torque = velocity_torque(&law->velocity, speed) + load_torque(&law->load, speed, load);
    if (law->thermal.kind != THERMAL_NONE)
        torque += thermal_torque(&law->thermal, speed, T) - thermal_torque(&law->thermal, speed, law->thermal.usual);
    return torque;
}

/* -- friction with memory -- */

enum { MEMORY_NONE, MEMORY_SLIP, MEMORY_RATE_SLIP, MEMORY_LUGRE, MEMORY_SGN, MEMORY_TANH, MEMORY_STRIBECK };

typedef struct {
    int kind, elements, forces, points, has_load;
    const double *limit, *force, *backlash; /* D_i, W_i, table of the relative backlash */
    double viscous, growth, extra, speed, exponent, rate, power, most_load; /* rate: c T of rate-dependent elements */
    double period;
} memory_law;

/* Numbers of the state; its last one is the last position. */
static inline int memory_size(const memory_law *law)
{
    switch (law->kind) {
    case MEMORY_SLIP: return law->elements + 1;         /* deformations */
    case MEMORY_RATE_SLIP: return 2 * law->elements + 2; /* forces, directions of slip, last backlash */
    case MEMORY_LUGRE: return 2;                        /* deflection */
    default: return law->kind == MEMORY_NONE ? 0 : 1;
    }
}

INLINED double relative_backlash(const memory_law *law, double position)
{
    return law->points ? jw_periodic(law->backlash, law->points, position) : 1.0;
}

/* sum_i W_i u_i of slip elements. */
INLINED double slip_forces(const memory_law *law, double position, double *memory)
{
    int m = law->elements;
    double move = position - memory[m], b = relative_backlash(law, position), sum = 0.0;
    for (int i = 0; i < m; i++) {
        double limit = b * law->limit[i];
        memory[i] = jw_clamp(memory[i] + move, limit);
        sum += law->force[i] * (memory[i] / limit);
    }
    memory[m] = position;
    return sum;
}

INLINED double rate_slip_forces(const memory_law *law, double position, double h, double *memory)
{
    int m = law->elements;
    double move = position - memory[2 * m + 1], before = memory[2 * m], b = relative_backlash(law, position);
    double remains = exp(-law->rate / h), sum = 0.0;
    for (int i = 0; i < m; i++) {
        double limit = law->limit[i];
        memory[i] = jw_rate_slip_step(memory[i], move, before * limit, b * limit, h, remains, &memory[m + i]);
        sum += law->force[i] * memory[i];
    }
    memory[2 * m] = b;
    memory[2 * m + 1] = position;
    return sum;
}

INLINED double lugre_forces(const memory_law *law, double position, double h, double *memory)
{
    double before = memory[0];
    memory[0] = jw_lugre_step(before, position - memory[1], h, relative_backlash(law, position) * law->limit[0] * h);
    memory[1] = position;
    return law->force[0] * memory[0] + law->force[1] * (memory[0] - before) / law->period;
}

/* (W_1 + W_2 |tau|^p) d(w) + W_3 d(w) exp(-(|w|/V)^mu), W_2 only with a load law. */
INLINED double memoryless_forces(const memory_law *law, double speed, double load)
{
    double level = law->force[0];
    if (law->has_load)
        level += law->force[1] * jw_power(fabs(load), law->power);
    if (law->kind == MEMORY_STRIBECK)
        level += law->force[1 + law->has_load] * jw_stribeck(speed, law->speed, law->exponent);
    return level * jw_direction(speed, law->kind == MEMORY_TANH ? law->speed : 0.0);
}

/* Dry friction of a law with its own level. */
INLINED double dry_torque(const memory_law *law, double position, double speed, double load, double *memory)
{
    load = jw_clamp(load, law->most_load);
    if (law->kind >= MEMORY_SGN)
        return memoryless_forces(law, speed, load);
    double grown = law->growth != 0.0 ? law->growth * jw_power(fabs(load), law->power) : 0.0;
    double h = law->extra != 0.0 ? 1.0 + law->extra * jw_stribeck(speed, law->speed, law->exponent) : 1.0;
    if (law->kind == MEMORY_SLIP)
        return (h + grown) * slip_forces(law, position, memory);
    if (law->kind == MEMORY_RATE_SLIP)
        return (1.0 + grown) * rate_slip_forces(law, position, h, memory);
    return (1.0 + grown) * lugre_forces(law, position, h, memory);
}

/* -- both -- */

typedef struct {
    int has_steady;
    double width, standstill; /* of tanh where there is no memory; speed at which the level at standstill is taken: rad/s */
    steady_law steady;
    memory_law memory;
    double sum; /* of the forces of the memory */
} joint_friction;

INLINED double friction_torque(const joint_friction *law, double position, double speed, double load, double T,
                               double *memory)
{
    int kind = law->memory.kind;
    if (!law->has_steady || kind > MEMORY_SLIP) {
        double viscous = law->has_steady ? viscous_part(&law->steady.velocity, speed) : law->memory.viscous * speed;
        return dry_torque(&law->memory, position, speed, load, memory) + viscous;
    }
    double H = kind == MEMORY_NONE ? jw_direction(speed, law->width)
                                   : slip_forces(&law->memory, position, memory) / law->sum;
    return fabs(H) * steady_torque(&law->steady, copysign(fmax(fabs(speed), law->standstill), H), load, T);
}

#endif
