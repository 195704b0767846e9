/* Friction of a robot at work, one sample at a time: its torque in parts along a motion, and a1 and a2 of every joint from
 * measurements with one common delay. NumPy reference: runtime/friction_estimator.py. Plain C without Python.
 */
#ifndef JOINTWISE_ESTIMATOR_H
#define JOINTWISE_ESTIMATOR_H

#include "adaptation.h"
#include "friction.h"
#include "runtime.h"

#include <string.h>

#define MOST_JOINTS JW_MOST_JOINTS
#define CALIBRATED_CORES 3 /* the model, that without dry friction, that without any friction */

/* A described robot, whose one core has its bodies, with the friction of slip elements; or a calibrated one without laws. */
typedef struct {
    int joints, points, width; /* of the backlash of a joint; numbers of its memory: deformations and last position */
    const jw_model *core[CALIBRATED_CORES];
    const friction_law *laws;
    const double *backlash, *rotors; /* (joints, points) rad, (joints) kg m^2 */
} friction_model;

/* Motion of links (joints) and rotors (motors), one number each; temperatures. */
typedef struct {
    const double *q, *qd, *qdd, *speed, *acceleration, *temperature;
} drive_motion;

/* Torques at the motors: of the bodies, of all friction of the nominal model, and of its dry part. */
typedef struct {
    double body[MOST_JOINTS], friction[MOST_JOINTS], dry[MOST_JOINTS];
} torque_parts;

/* H at a position; the elements and the last position behind them are updated. A position that is not finite: the last. */
INLINED double follow_hysteresis(const friction_law *law, const double *table, int points, double *memory, int width,
                                 double theta)
{
    double *last = memory + width - 1, H = 0.0;
    theta = theta - theta == 0.0 ? theta : *last;
    double backlash = jw_periodic(table, points, theta);
    deform(law, backlash, theta - *last, memory);
    *last = theta;
    for (int i = 0; i < (int)law->elements; i++) {
        double x = memory[i] * law->per_limit[i] / backlash;
        H += law->shares[i] * x * (1.0 + (x < 0.0 ? -law->asymmetry : law->asymmetry));
    }
    return H;
}

/* Friction at H, and its dry part without the thermal one. */
INLINED double slip_friction(const friction_law *law, double H, double speed, double load, double temperature, double *dry)
{
    *dry = dry_level(law, speed, load, 0.0) * H;
    return dry_level(law, speed, load, thermal_factor(law, temperature)) * H + viscous_factor(law, speed) * speed;
}

/* Numbers of the memory of a model. */
INLINED int friction_memory(const friction_model *m)
{
    return m->laws ? m->joints * m->width : CALIBRATED_CORES * JW_MOST_MEMORY;
}

/* Signals that follow the rotor before it is filtered: H, or none of a calibrated robot. */
INLINED int friction_channels(const friction_model *m)
{
    return m->laws ? m->joints : 0;
}

static void follow_friction(const friction_model *m, double *memory, const double *theta, double *H)
{
    for (int j = 0; j < friction_channels(m); j++)
        H[j] = follow_hysteresis(m->laws + j, m->backlash + j * m->points, m->points, memory + j * m->width, m->width,
                                 theta[j]);
}

static void described_parts(const friction_model *m, const drive_motion *at, const double *H, torque_parts *out)
{
    double links[MOST_JOINTS], load[MOST_JOINTS];
    jw_body_torque(m->core[0], at->q, at->qd, at->qdd, links);
    jw_motor_torque(m->core[0], links, load);
    for (int j = 0; j < m->joints; j++) {
        out->body[j] = load[j] + m->rotors[j] * at->acceleration[j];
        out->friction[j] = slip_friction(m->laws + j, H[j], at->speed[j], load[j], at->temperature[j], &out->dry[j]);
    }
}

/* Friction is linear in its parameters: the parts are differences of models. */
static void calibrated_parts(const friction_model *m, double *memory, const drive_motion *at, torque_parts *out)
{
    double full[MOST_JOINTS], without_dry[MOST_JOINTS], *torque[CALIBRATED_CORES] = {full, without_dry, out->body};
    double joints[MOST_JOINTS];
    jw_sample sample = {.q = at->q, .qd = at->qd, .qdd = at->qdd, .temperature = at->temperature};
    for (int c = 0; c < CALIBRATED_CORES; c++) {
        jw_step(m->core[c], (jw_state *)memory + c, &sample, joints);
        jw_motor_torque(m->core[c], joints, torque[c]);
    }
    for (int j = 0; j < m->joints; j++) {
        out->friction[j] = full[j] - out->body[j];
        out->dry[j] = full[j] - without_dry[j];
    }
}

static void friction_parts(const friction_model *m, double *memory, const drive_motion *at, const double *H,
                           torque_parts *out)
{
    if (m->laws)
        described_parts(m, at, H, out);
    else
        calibrated_parts(m, memory, at, out);
}

/* -- parameters from measurements -- */

typedef struct {
    friction_model model;
    const double *taps; /* (length) of the smoothing filter */
    int length;
    double rate; /* Hz */
    const jw_adaptation *laws;
} estimator;

typedef struct {
    double *phase, *memory;
    jw_adapted *adaptation;
} estimator_state;

enum { LINKS, ROTORS, TORQUES, TEMPERATURES, MEASURED };

INLINED int estimator_channels(const estimator *e)
{
    return MEASURED * e->model.joints + friction_channels(&e->model);
}

/* Numbers of the state of the filter. */
INLINED long phase_size(const estimator *e)
{
    return JW_PHASE_HEAD + ((long)e->length + JW_PHASE_SMOOTH) * estimator_channels(e);
}

/* One measurement of link and rotor positions, motor torques and temperatures, (MEASURED, joints): prediction errors and
 * the temperatures of the filter; the state is updated. Parameters do not change before the filter has seen as many
 * samples as it needs. */
WIDE static void estimate_friction(const estimator *e, const estimator_state *at, const double *const *measured,
                                   int enabled, double *error, double *temperature)
{
    int n = e->model.joints, channels = estimator_channels(e);
    double row[(MEASURED + 1) * MOST_JOINTS], x[3 * (MEASURED + 1) * MOST_JOINTS];
    const double *value = x, *first = x + channels, *second = first + channels, *torque = value + TORQUES * n;
    torque_parts parts;
    for (int c = 0; c < MEASURED; c++)
        memcpy(row + c * n, measured[c], (size_t)n * sizeof(double));
    follow_friction(&e->model, at->memory, measured[ROTORS], row + MEASURED * n);
    jw_phase_step(e->taps, e->length, channels, e->rate, at->phase, row, x);
    drive_motion motion = {value, first, second, first + ROTORS * n, second + ROTORS * n, value + TEMPERATURES * n};
    friction_parts(&e->model, at->memory, &motion, value + MEASURED * n, &parts);
    enabled = enabled && at->phase[1] >= (double)(e->length + JW_PHASE_SMOOTH - 1);
    for (int j = 0; j < n; j++) {
        double f = torque[j] - parts.body[j] - (parts.friction[j] - parts.dry[j]);
        error[j] = jw_adapt(e->laws + j, at->adaptation + j, f, parts.dry[j], motion.speed[j], enabled);
        temperature[j] = motion.temperature[j];
    }
}

#endif
