/* Online friction: signals and their derivatives with one common delay, and the adaptation of two friction parameters.
 *
 * NumPy references: runtime/phase.py and runtime/friction_adaptation.py. C99, no allocation.
 */
#ifndef JOINTWISE_ADAPTATION_H
#define JOINTWISE_ADAPTATION_H

#include "number.h"

/* -- signals with one common delay -- */

#define JW_PHASE_HEAD 3 /* numbers before the buffers: next row, samples so far, values that were not finite */
#define JW_PHASE_SMOOTH 3 /* smoothed samples for the central differences */

/* One sample of `channels` signals into the ring buffer of `length` rows. The FIR filter `taps` (oldest first) smooths,
 * central differences follow: `out` is the value, its first and its second derivative, channel by channel, all delayed by
 * (length - 1) / 2 + 1 samples. A value that is not finite is replaced by the one before it and counted. */
JW_INLINE void jw_phase_step(const jw_real *taps, int length, int channels, jw_real rate, jw_real *state,
                             const jw_real *values, jw_real *out)
{
    jw_real *raw = state + JW_PHASE_HEAD, *smooth = raw + (long)length * channels;
    int row = (int)state[0], before = row > 0 ? row - 1 : length - 1;
    for (int c = 0; c < channels; c++) {
        int fine = values[c] - values[c] == JW(0.0);
        raw[(long)row * channels + c] = fine ? values[c] : raw[(long)before * channels + c];
        state[2] += fine ? JW(0.0) : JW(1.0);
        smooth[c] = smooth[channels + c];
        smooth[channels + c] = smooth[2 * channels + c];
        smooth[2 * channels + c] = JW(0.0);
    }
    row = row + 1 < length ? row + 1 : 0;
    for (int l = 0; l < length; l++) {
        int at = row + l < length ? row + l : row + l - length;
        for (int c = 0; c < channels; c++)
            smooth[2 * channels + c] += taps[l] * raw[(long)at * channels + c];
    }
    for (int c = 0; c < channels; c++) {
        jw_real old = smooth[c], middle = smooth[channels + c], young = smooth[2 * channels + c];
        out[c] = middle;
        out[channels + c] = (young - old) * (JW(0.5) * rate);
        out[2 * channels + c] = ((young - middle) - (middle - old)) * (rate * rate);
    }
    state[0] = (jw_real)row;
    state[1] += JW(1.0);
}

/* -- adaptation of a joint's friction, f = a1 Y1 + a2 w -- */

enum { JW_GRADIENT, JW_NORMALISED, JW_RECURSIVE };

/* Only numbers, as Python packs them. */
typedef struct {
    jw_real method;            /* JW_GRADIENT, JW_NORMALISED or JW_RECURSIVE */
    jw_real gain[2];           /* T gamma of the gradient; variances of the parameters at the start of least squares */
    jw_real lower[2], upper[2]; /* projection */
    jw_real nominal[2], leakage[2]; /* a - nominal decays by this share a sample */
    jw_real slowest, hold;     /* dead zone: rad/s, samples */
    jw_real forgetting;        /* of recursive least squares */
    jw_real recent;            /* weight of a sample in the share of time at a bound */
} jw_adaptation;

/* State of a joint: parameters, covariance of recursive least squares, samples since the joint moved, samples dropped, share
 * of the recent time of motion in which a1 was at a bound. */
typedef struct {
    jw_real a[2], P[3], still, dropped, bound;
} jw_adapted;

/* Gain vector of recursive least squares with exponential forgetting; the variances never exceed those at the start. */
JW_INLINE void jw_recursive_gain(const jw_adaptation *law, jw_adapted *at, const jw_real *Y, jw_real *L)
{
    jw_real *P = at->P, u0 = P[0] * Y[0] + P[1] * Y[1], u1 = P[1] * Y[0] + P[2] * Y[1];
    jw_real s = law->forgetting + Y[0] * u0 + Y[1] * u1, per = JW(1.0) / law->forgetting;
    L[0] = u0 / s, L[1] = u1 / s;
    jw_real p0 = (P[0] - L[0] * u0) * per, p1 = (P[1] - L[0] * u1) * per, p2 = (P[2] - L[1] * u1) * per;
    if (p0 <= law->gain[0] && p2 <= law->gain[1])
        P[0] = p0, P[1] = p1, P[2] = p2;
}

JW_INLINE jw_real jw_within(jw_real a, jw_real lower, jw_real upper)
{
    return a < lower ? lower : (a > upper ? upper : a);
}

/* Projects the parameters onto their bounds, nearest in the metric of the covariance: the one that is further outside
 * moves to its bound and takes the other along as far as they are correlated. */
JW_INLINE void jw_project(const jw_adaptation *law, jw_adapted *at)
{
    jw_real *a = at->a, out[2], *P = at->P, variance[2] = {P[0], P[2]};
    for (int i = 0; i < 2; i++)
        out[i] = jw_within(a[i], law->lower[i], law->upper[i]) - a[i];
    int i = out[0] * out[0] * variance[1] >= out[1] * out[1] * variance[0] ? 0 : 1;
    a[1 - i] += out[i] * P[1] / variance[i];
    for (int k = 0; k < 2; k++)
        a[k] = jw_within(a[k], law->lower[k], law->upper[k]);
}

/* One sample: virtual friction f (Nm), Y = (dry friction at a1 = 1, speed w). Returns the prediction error f - Y a before
 * the update; a sample that is not finite is counted and changes nothing. */
JW_INLINE jw_real jw_adapt(const jw_adaptation *law, jw_adapted *at, jw_real f, jw_real dry, jw_real speed, int enabled)
{
    jw_real Y[2] = {dry, speed}, L[2], error = f - (at->a[0] * dry + at->a[1] * speed);
    if (!(error - error == JW(0.0))) {
        at->dropped += JW(1.0);
        return JW(0.0);
    }
    at->still = jw_fabs(speed) >= law->slowest ? JW(0.0) : at->still + JW(1.0);
    if (!enabled || at->still >= law->hold)
        return error;
    if (law->method == (jw_real)JW_RECURSIVE) {
        jw_recursive_gain(law, at, Y, L);
    } else {
        jw_real scale = JW(1.0);
        if (law->method == (jw_real)JW_NORMALISED)
            scale = JW(1.0) / (JW(1.0) + law->gain[0] * dry * dry + law->gain[1] * speed * speed);
        L[0] = scale * law->gain[0] * dry, L[1] = scale * law->gain[1] * speed;
    }
    for (int i = 0; i < 2; i++)
        at->a[i] += L[i] * error - law->leakage[i] * (at->a[i] - law->nominal[i]);
    jw_project(law, at);
    jw_real reached = at->a[0] <= law->lower[0] || at->a[0] >= law->upper[0] ? JW(1.0) : JW(0.0);
    at->bound += law->recent * (reached - at->bound);
    return error;
}

#endif
