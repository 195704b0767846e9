/* The calibrated robot at run time: torque of a motion, sample by sample, and the motion of a torque.
 *
 * Where a transmission couples motors and joints, motor angles (at the joint side) are theta = C q. Terms, rotors, gains,
 * temperatures, rotor positions and outputs are those of the motors; all other positions and torques those of the joints.
 *
 * C99, no allocation, no global variables. Parameters are in jw_model, memory of friction in jw_state. SI units and
 * radians; arrays have one number a joint. Define JW_FLOAT to compute in float instead of double.
 *
 *     jw_state state;
 *     jw_init(&model, q, NULL, &state);
 *     for (;;) {                                    (at the rate of model.period)
 *         jw_sample sample = {.q = q, .qd = qd, .qdd = qdd};
 *         jw_step(&model, &state, &sample, torque);
 *     }
 */
#ifndef JOINTWISE_RUNTIME_H
#define JOINTWISE_RUNTIME_H

#include "terms.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef JW_MOST_JOINTS
#define JW_MOST_JOINTS 16
#endif
#ifndef JW_MOST_MEMORY
#define JW_MOST_MEMORY 1024 /* numbers of a state */
#endif

typedef struct {
    int revolute, terms;
    const jw_term *term;
    jw_real rotation[9], translation[3]; /* of frame {j} in {j-1} at q = 0, by rows, m; z is the joint axis */
    jw_real inertial[10], rotor;         /* XX XY XZ YY YZ ZZ mX mY mZ m in {j}; reflected inertia */
    jw_real load_inertial[10], load_rotor; /* of the load torque on which friction depends, where `other_load` */
    jw_real gain;                        /* torque per unit of the measured output: Nm/A */
    jw_real reference;                   /* temperature (deg C) where none is measured */
} jw_joint;

typedef struct {
    int joints, other_load;
    const jw_joint *joint;
    jw_real gravity[3]; /* in the base frame, m/s^2 */
    jw_real period;     /* s between samples; the numbers of the terms hold for it */
    jw_real track;      /* share of the encoder in the integrated measured speed after one sample */
    const jw_real *coupling, *decoupling; /* C and its inverse, joints x joints by rows; NULL without coupling */
} jw_model;

typedef struct {
    jw_real memory[JW_MOST_MEMORY];
} jw_state;

/* One sample. NULL: `speed` for a planned motion, `rotor` for that of the joints, `temperature` for the references,
 * `path` (a smoother position that deforms the elements of friction) for q. */
typedef struct {
    const jw_real *q, *qd, *qdd, *speed, *rotor, *temperature, *path;
} jw_sample;

/* Numbers of the state that a model uses, or -1 if the model is larger than a state or JW_MOST_JOINTS. */
int jw_memory(const jw_model *model);

/* The state of relaxed gears at the positions q; `rotor` may be NULL. */
void jw_init(const jw_model *model, const jw_real *q, const jw_real *rotor, jw_state *state);

/* Torque (Nm) of the next sample, one period after the one before. */
void jw_step(const jw_model *model, jw_state *state, const jw_sample *sample, jw_real *torque);

/* Torque of bodies and rotors without friction, M(q) qdd + C(q, qd) qd + g(q). */
void jw_body_torque(const jw_model *model, const jw_real *q, const jw_real *qd, const jw_real *qdd, jw_real *torque);

/* M(q) with the rotors, joints x joints by rows. */
void jw_mass_matrix(const jw_model *model, const jw_real *q, jw_real *M);

/* M = L L^T in place, n x n by rows, the lower half; 0 if M is not positive definite. Then x of M x = b in place of b. */
int jw_factorize(int n, jw_real *M);
void jw_solve(int n, const jw_real *L, jw_real *x);

/* M(q) x: the torque of bodies and rotors without gravity and speeds, one number a joint. */
void jw_inertia_torque(const jw_model *model, const jw_real *q, const jw_real *x, jw_real *torque);

/* Torque of the terms that are not dry friction: offsets, viscous and thermal friction, springs, rotor inertias. */
void jw_smooth_torque(const jw_model *model, const jw_sample *sample, jw_real *torque);

/* Torques of `count` further bodies on the last link, ten parameters each as in jw_joint: joints x count by rows. */
void jw_body_columns(const jw_model *model, const jw_real *q, const jw_real *qd, const jw_real *qdd,
                     const jw_real (*bodies)[10], int count, jw_real *columns);

/* Positions or speeds of the motors, C q, and of the joints, C^-1 theta; torques of the motors, C^-T tau, and of the
 * joints, C^T tau. None in place. */
void jw_to_motors(const jw_model *model, const jw_real *joints, jw_real *motors);
void jw_to_joints(const jw_model *model, const jw_real *motors, jw_real *joints);
void jw_motor_torque(const jw_model *model, const jw_real *joints, jw_real *motors);
void jw_joint_torque(const jw_model *model, const jw_real *motors, jw_real *joints);

/* A mass matrix of the joints at the motors, C^-T M C^-1, in place. */
void jw_motor_mass_matrix(const jw_model *model, jw_real *M);

/* Measured output (motor current in A, or motor torque in Nm) of a torque; may be done in place. */
void jw_output(const jw_model *model, const jw_real *torque, jw_real *output);

/* Moves q and qd by one period under constant torques of the motors at the joints; friction with its memory acts,
 * implicitly. `temperature` may be NULL. Returns 0, or -1 if the mass matrix is not positive definite; q, qd and state are
 * then unchanged. */
int jw_move(const jw_model *model, jw_state *state, const jw_real *torque, const jw_real *temperature, jw_real *q,
            jw_real *qd);

#ifdef __cplusplus
}
#endif

#endif
