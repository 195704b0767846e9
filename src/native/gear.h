/* A gear: spring and damper, kinematic error, backlash map and lost motion.
 *
 * Deformation phi = theta - e(theta) - d(theta) P - q: rotor angle theta (at the joint side), kinematic error e, lost motion
 * d P, link angle q; all in rad. NumPy references: model/spring.py, model/periodic_table.py, simulation/robot/gear.py.
 * Plain C without Python.
 */
#ifndef JOINTWISE_GEAR_H
#define JOINTWISE_GEAR_H

#include "compiler.h"
#include "terms.h"
#include "sincos.h"

#define MOST_HARMONICS 8

/* Three segments plus a cubic, odd in phi: Nm/rad, rad, Nm/rad^3. */
typedef struct {
    double K1, K2, K3, phi1, phi2, cubic;
} spring_law;

/* e(theta) = sum a sin(m theta + p); only doubles, as Python packs them. */
typedef struct {
    double count;
    double amplitude[MOST_HARMONICS], order[MOST_HARMONICS], phase[MOST_HARMONICS];
} error_law;

typedef struct {
    spring_law spring;
    double damping;          /* Nm s/rad */
    double lost, per_reach;  /* d / B(theta) of the lost motion; 1 / L, 1/rad */
    error_law error;
} gear_law;

/* Backlash B(theta), rad: `points` values, equally spaced over one turn from theta = 0. */
typedef struct {
    const double *table;
    int points;
} backlash_map;

/* A gear at the start of a step: rotor angle, play P, sines and cosines of the harmonics. */
typedef struct {
    double theta, play, s[MOST_HARMONICS], c[MOST_HARMONICS];
} gear_anchor;

/* Lost motion d P (rad), its derivative with respect to theta, and whether P moves. */
typedef struct {
    double lag, slope;
    int moves;
} lost_motion;

/* Deformation and its speed, dphi/dtheta, torque of the spring, and of spring and damper. */
typedef struct {
    double phi, speed, ratio, spring, torque;
    lost_motion lost;
} twist;

INLINED double spring_torque(const spring_law *spring, double phi)
{
    double size = fabs(phi), torque = spring->K1 * size;
    if (size > spring->phi1)
        torque += (spring->K2 - spring->K1) * (size - spring->phi1);
    if (size > spring->phi2)
        torque += (spring->K3 - spring->K2) * (size - spring->phi2);
    return copysign(torque, phi) + spring->cubic * phi * phi * phi;
}

/* dtau/dphi, Nm/rad; at a knee that of the softer segment. */
INLINED double spring_stiffness(const spring_law *spring, double phi)
{
    double size = fabs(phi);
    return (size > spring->phi2 ? spring->K3 : size > spring->phi1 ? spring->K2 : spring->K1) +
           3.0 * spring->cubic * phi * phi;
}

/* Nm/rad^2 */
INLINED double spring_curvature(const spring_law *spring, double phi) { return 6.0 * spring->cubic * phi; }

/* J */
INLINED double spring_energy(const spring_law *spring, double phi)
{
    double size = fabs(phi), square = phi * phi, energy = 0.5 * spring->K1 * square;
    if (size > spring->phi1)
        energy += 0.5 * (spring->K2 - spring->K1) * (size - spring->phi1) * (size - spring->phi1);
    if (size > spring->phi2)
        energy += 0.5 * (spring->K3 - spring->K2) * (size - spring->phi2) * (size - spring->phi2);
    return energy + 0.25 * spring->cubic * square * square;
}

/* Evaluates sines and cosines of the harmonics once per step; within the step they are rotated by small angles. */
INLINED void anchor_gear(const gear_law *gear, double theta, double play, gear_anchor *anchor)
{
    const error_law *e = &gear->error;
    anchor->theta = theta;
    anchor->play = play;
    for (int k = 0; k < (int)e->count; k++)
        sine_cosine(e->order[k] * theta + e->phase[k], &anchor->s[k], &anchor->c[k]);
}

/* e(theta) and its slope. Taylor polynomials of the angle d from the anchor, with errors below 1e-12 for |d| < 0.5. */
INLINED double kinematic_error(const error_law *e, const gear_anchor *anchor, double theta, double *slope)
{
    double error = 0.0, rate = 0.0;
    for (int k = 0; k < (int)e->count; k++) {
        double d = e->order[k] * (theta - anchor->theta), z = d * d, s, c;
        if (z < 0.25) {
            double sd = d * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * (1.0 / 5040.0 - z / 362880.0))));
            double cd = 1.0 - z * (0.5 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z * (1.0 / 40320.0 - z / 3628800.0))));
            s = anchor->s[k] * cd + anchor->c[k] * sd;
            c = anchor->c[k] * cd - anchor->s[k] * sd;
        } else {
            sine_cosine(e->order[k] * theta + e->phase[k], &s, &c);
        }
        error += e->amplitude[k] * s;
        rate += e->amplitude[k] * e->order[k] * c;
    }
    *slope = rate;
    return error;
}

/* B(theta), rad, and its slope: periodic, linear between the points. */
INLINED double backlash_slope(backlash_map map, double theta, double *slope)
{
    *slope = 0.0;
    if (map.points == 1)
        return map.table[0];
    return jw_periodic_slope(map.table, map.points, theta, slope);
}

INLINED double backlash_at(backlash_map map, double theta)
{
    double slope;
    return backlash_slope(map, theta, &slope);
}

/* d(theta) P with d = lost B(theta). P follows theta over 2 L from flank to flank, then stays: P = P0 + (theta - theta0) / L
 * within +-1; it depends on the path alone, not on the rate. */
INLINED lost_motion lost_motion_at(const gear_law *gear, const gear_anchor *from, backlash_map map, double theta, double w)
{
    if (gear->lost == 0.0)
        return (lost_motion){0.0, 0.0, 0};
    double free = from->play + (theta - from->theta) * gear->per_reach, P = jw_clamp(free, 1.0), rise;
    double d = gear->lost * backlash_slope(map, theta, &rise);
    int moves = fabs(free) < 1.0 || (free == P && P * w < 0.0); /* or leaves its flank at once */
    return (lost_motion){d * P, gear->lost * rise * P + (moves ? d * gear->per_reach : 0.0), moves};
}

/* The same deformation at other speeds. */
INLINED void set_twist_speed(const gear_law *gear, double qd, double w, twist *at)
{
    at->speed = at->ratio * w - qd;
    at->torque = at->spring + gear->damping * at->speed;
}

INLINED twist twist_at(const gear_law *gear, const gear_anchor *anchor, backlash_map map, double q, double qd,
                       double theta, double w)
{
    twist at;
    double error_slope;
    at.lost = lost_motion_at(gear, anchor, map, theta, w);
    at.phi = theta - kinematic_error(&gear->error, anchor, theta, &error_slope) - at.lost.lag - q;
    at.ratio = 1.0 - error_slope - at.lost.slope;
    at.spring = spring_torque(&gear->spring, at.phi);
    set_twist_speed(gear, qd, w, &at);
    return at;
}

#endif
