/* Monitoring of the calibrated robot: external torque, contact, payload and friction from measured samples.
 *
 * The residual of a joint is its measured torque less that of the model. A Kalman filter explains it by a payload (mass
 * and first moments), changes of dry and viscous friction, and, for a joint at rest, the torque that static friction
 * holds. What remains beyond the limits is a contact. Where a transmission couples motors and joints, everything is that
 * of the motors but the positions and speeds of a sample. NumPy reference: jointwise/monitoring/reference.py. C99.
 *
 *     jw_watch_init(&monitor, &state);
 *     jw_watch(&monitor, &state, t, &sample, &report);      (for every sample, at any stamps)
 */
#ifndef JOINTWISE_MONITOR_H
#define JOINTWISE_MONITOR_H

#include "runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define JW_FEATURES 5 /* of the spread of a residual: 1, |v|, |M a|, slowness, shock */
#define JW_MOMENTS 4  /* of a payload: mass, first moments */
#define JW_SHARES 3   /* of a joint: dry and viscous friction, torque held at rest */
#define JW_UNKNOWNS (JW_MOMENTS + JW_SHARES * JW_MOST_JOINTS)
#define JW_MOST_DELAY 64
#define JW_CHANGES 3    /* samples over which changes of the momentum observer are averaged */

typedef struct {
    jw_real fast[JW_FEATURES], slow[JW_FEATURES]; /* spread of both residuals per unit of the features, Nm */
    jw_real rest_fast, rest_slow;                 /* spread at rest, Nm */
    jw_real held;                                 /* standard deviation of the torque that static friction holds, Nm */
    jw_real viscous;                              /* that of a change of the viscous coefficient, Nm s/rad */
    jw_real gain;                                 /* Nm per unit of the output */
    int measured;                                 /* whether the output is measured */
    jw_real predictor[2], change;                 /* of the momentum observer from its last two values; error, Nm */
    jw_real fastest;                              /* rad/s up to which changes are known */
} jw_watched;

typedef struct {
    const jw_model *model;
    jw_watched joint[JW_MOST_JOINTS];
    jw_real body[JW_MOMENTS][10]; /* unit mass and unit first moments in the tool frame as bodies of the last link */
    jw_real mass, moment;         /* standard deviations of a payload: kg, kg m */
    jw_real limit_fast, limit_slow; /* contact above these multiples of the spread */
    jw_real limit_change;         /* contact above this change of the momentum observer; 0: not used */
    jw_real lag;                  /* s by which the output is before the motion */
    int derived;                  /* whether speeds are differences of positions: then the slow residual alone decides */
} jw_monitor;

/* What a sample was: the first three are not used, at the next three the signals begin again. */
enum { JW_NOT_FINITE, JW_REPEATED, JW_REORDERED, JW_GAP, JW_JUMP, JW_RESTART, JW_GOOD, JW_VERDICTS };

/* Results of a sample; one number a joint where it is an array. Torques in Nm. */
typedef struct {
    jw_real external[JW_MOST_JOINTS];  /* external torque: generalised-momentum observer */
    jw_real residual[JW_MOST_JOINTS];  /* external torque: direct residual, smoother */
    jw_real deviation[JW_MOST_JOINTS]; /* standard deviation of `residual` without contact */
    jw_real ratio[JW_MOST_JOINTS];     /* largest of both over their limits; contact above 1 */
    jw_real frozen[JW_MOST_JOINTS];    /* 0, or: 1 position repeats, 2 output repeats, 4 output is saturated (added) */
    jw_real speed[JW_MOST_JOINTS], inertia[JW_MOST_JOINTS], shock[JW_MOST_JOINTS]; /* what the spread depends on */
    jw_real rest[JW_MOST_JOINTS];      /* whether the joint is at rest */
    jw_real bound_fast[JW_MOST_JOINTS], bound_slow[JW_MOST_JOINTS]; /* what dry friction may add to both residuals */
    jw_real dry[JW_MOST_JOINTS];       /* dry friction of the model, smoothed */
    jw_real contact, joint, verdict;   /* whether; joint of the largest ratio; what the sample was */
    jw_real change;                    /* sudden change of the momentum observer, all joints, in standard deviations */
} jw_watch_report;

typedef struct {
    jw_state friction;
    jw_real started, origin, stamp, grid, backwards; /* whether a sample came; first stamp; last one and next time on the
                                                      * uniform clock, both less the first; falling stamps in a row */
    jw_real q[JW_MOST_JOINTS], qd[JW_MOST_JOINTS], output[JW_MOST_JOINTS], temperature[JW_MOST_JOINTS]; /* as measured */
    jw_real fresh;                           /* whether the signals below begin with the next sample */
    jw_real position[JW_MOST_JOINTS], speed[JW_MOST_JOINTS], path[JW_MOST_JOINTS], acceleration[JW_MOST_JOINTS];
    jw_real fast[JW_MOST_JOINTS], slow[JW_MOST_JOINTS], expected[JW_MOST_JOINTS], mean_torque[JW_MOST_JOINTS];
    jw_real net[JW_MOST_JOINTS], direct[JW_MOST_JOINTS]; /* torque less that of the model without inertia; residual, Nm */
    jw_real shock[JW_MOST_JOINTS];
    jw_real columns[JW_MOST_JOINTS * JW_MOMENTS], dry[JW_MOST_JOINTS], slow_speed[JW_MOST_JOINTS];
    jw_real delayed[JW_MOST_DELAY * JW_MOST_JOINTS];
    jw_real late_q[JW_MOST_JOINTS], late_torque[JW_MOST_JOINTS]; /* with the filter of derived speeds, rad, Nm */
    jw_real anchor[JW_MOST_JOINTS], resting[JW_MOST_JOINTS], at_rest[JW_MOST_JOINTS]; /* s near a position; at rest */
    jw_real travel[JW_MOST_JOINTS];          /* rad since the joint left its rest or turned round */
    jw_real direction[JW_MOST_JOINTS];       /* rad/s, last speed above the least one */
    jw_real grip[JW_MOST_JOINTS], slow_grip[JW_MOST_JOINTS]; /* part of the torque held at rest that is left; smoothed */
    jw_real loose_fast[JW_MOST_JOINTS], loose_slow[JW_MOST_JOINTS]; /* bounds of unknown dry friction, smoothed, Nm */
    jw_real mean_fast[JW_MOST_JOINTS], mean_slow[JW_MOST_JOINTS]; /* spreads, smoothed like the residuals, Nm */
    jw_real base_torque[JW_MOST_JOINTS], jump[JW_MOST_JOINTS]; /* motor torque smoothed; its last step, fading, Nm */
    jw_real scale[JW_MOST_JOINTS];           /* usual size of the slow residual in motion, relative to its spread */
    jw_real followed[JW_MOST_JOINTS], usual[JW_MOST_JOINTS]; /* slow residual, followed, Nm; mean square of its changes */
    jw_real settled[JW_MOST_JOINTS];         /* s since a rest began or ended */
    jw_real moved, rising, highest_rise;     /* s since a start, a stop or a shock; s above the limit of changes; largest */
    jw_real calm, still, age;                /* s since a load changed, a joint moved, the signals began */
    jw_real calm_load[JW_MOST_JOINTS];       /* load when that was, Nm */
    jw_real slow_load[JW_MOST_JOINTS], followed_load[JW_MOST_JOINTS]; /* load, smoothed and followed like the residual, Nm */
    jw_real x[JW_UNKNOWNS], P[JW_UNKNOWNS * JW_UNKNOWNS];
    jw_real over[JW_MOST_JOINTS];            /* samples in a row above the limit of the fast residual */
    jw_real above[JW_MOST_JOINTS];           /* s above the limit of the slow residual at rest */
    jw_real contact, lasted, quiet, peak, largest; /* whether; s; s since it fell; largest ratio; joint of it */
    jw_real before[2][JW_MOST_JOINTS];       /* last two values of the momentum observer */
    jw_real rested[JW_MOST_JOINTS], steady[JW_MOST_JOINTS]; /* whether at rest before; samples since that changed */
    jw_real changes[JW_CHANGES];             /* squared errors of their prediction, newest first ... */
    jw_real level[JW_MOST_JOINTS];           /* ... relative to the usual ones of the joint */
    jw_real since;                           /* samples since the last update of x */
    jw_real adopted;                         /* contacts that lasted and were taken as the new state */
    jw_real same_q[JW_MOST_JOINTS], same_output[JW_MOST_JOINTS]; /* s without any change while the joint moves */
    jw_real same_qd[JW_MOST_JOINTS], apart[JW_MOST_JOINTS]; /* s without any change of the speed; path that it lacks, rad */
    jw_real highest[JW_MOST_JOINTS];         /* largest |output| so far */
    jw_real count[JW_VERDICTS];              /* samples by what they were */
    jw_watch_report last;
} jw_watch_state;

void jw_watch_init(const jw_monitor *monitor, jw_watch_state *state);

/* A sample with its stamp (s); `sample` has q, qd or NULL, and temperature or NULL; `output` as measured. The report is
 * that of the last time on the uniform clock of the model's period. */
void jw_watch(const jw_monitor *monitor, jw_watch_state *state, jw_real t, const jw_sample *sample,
              const jw_real *output, jw_watch_report *report);

#ifdef __cplusplus
}
#endif

#endif
