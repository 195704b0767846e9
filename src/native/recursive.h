/* Recursive least squares: one sample. NumPy reference: estimation/recursive.py, where the laws are written down.
 *
 * The state is a (n), P (n n), sum of squares, degrees of freedom, samples used, samples rejected, samples since the last
 * reset.
 */
#ifndef JOINTWISE_RECURSIVE_H
#define JOINTWISE_RECURSIVE_H

#include <math.h>
#include <string.h>

#define RLS_MOST 32 /* parameters */
#define RLS_EXTRA 5 /* numbers of the state besides a and P */

enum { RLS_PLAIN, RLS_EXPONENTIAL, RLS_RESET, RLS_ON_OFF, RLS_DIRECTIONAL };

typedef struct {
    int n, kind;
    double memory, threshold, period;
    const double *prior, *floor; /* diagonals of P(0) and of the increment of P, (n) each */
} rls_options;

static inline double rls_forgetting(const rls_options *o, const double *row)
{
    if (o->kind == RLS_EXPONENTIAL)
        return o->memory;
    if (o->kind != RLS_ON_OFF)
        return 1.0;
    double excitation = 0.0;
    for (int i = 0; i < o->n; i++)
        excitation += o->prior[i] * row[i] * row[i];
    return excitation >= o->threshold ? o->memory : 1.0;
}

/* Weight of g g^T in the update of P, which is divided by `keep` afterwards. */
static inline double rls_shrinkage(const rls_options *o, double keep, double r)
{
    if (o->kind != RLS_DIRECTIONAL)
        return 1.0 / (keep + r);
    return r > 0.0 ? (o->memory - (1.0 - o->memory) / r) / (o->memory * (1.0 + r)) : 1.0;
}

/* P at most P(0) on the diagonal: rows and columns beyond it are scaled, so that P stays positive definite. */
static inline void rls_cap(const rls_options *o, double *P)
{
    for (int i = 0; i < o->n; i++)
        if (P[i * o->n + i] > o->prior[i]) {
            double scale = sqrt(o->prior[i] / P[i * o->n + i]);
            for (int j = 0; j < o->n; j++) {
                P[i * o->n + j] *= scale;
                P[j * o->n + i] *= scale;
            }
        }
}

static inline void rls_restart(const rls_options *o, double *P)
{
    for (int i = 0; i < o->n; i++)
        for (int j = 0; j < o->n; j++)
            P[i * o->n + j] = i == j ? o->prior[i] : 0.0;
}

/* g = P row; returns row^T P row. */
static inline double rls_product(int n, const double *P, const double *row, double *g)
{
    double r = 0.0;
    for (int i = 0; i < n; i++) {
        g[i] = 0.0;
        for (int j = 0; j < n; j++)
            g[i] += P[i * n + j] * row[j];
        r += row[i] * g[i];
    }
    return r;
}

/* One sample of a row (n), a measurement y and its weight; returns the error before the update (not whitened). A sample
 * that is not finite, or would make the state so, is counted and leaves the rest of the state as it is; a weight of 0
 * leaves it all. A P that rounding made indefinite restarts from P(0). */
static inline double rls_step(const rls_options *o, double *state, const double *row, double y, double weight)
{
    const int n = o->n;
    double *extra = state + n + n * n, a[RLS_MOST], P[RLS_MOST * RLS_MOST], g[RLS_MOST], error = y, r = 0.0, sum = 0.0;
    if (weight == 0.0) {
        for (int i = 0; i < n; i++)
            error -= row[i] * state[i];
        return error;
    }
    const int due = o->kind == RLS_RESET && extra[4] >= o->period;
    memcpy(a, state, (size_t)n * sizeof(double));
    memcpy(P, state + n, (size_t)(n * n) * sizeof(double));
    if (due || (r = rls_product(n, P, row, g)) < 0.0) {
        rls_restart(o, P);
        r = rls_product(n, P, row, g);
    }
    for (int i = 0; i < n; i++)
        error -= row[i] * a[i];
    const double keep = rls_forgetting(o, row), scaled = weight * r, shrink = weight * rls_shrinkage(o, keep, scaled);
    for (int i = 0; i < n; i++) {
        a[i] += weight * g[i] / (keep + scaled) * error;
        for (int j = 0; j < n; j++)
            P[i * n + j] = (P[i * n + j] - shrink * g[i] * g[j]) / keep;
        P[i * n + i] += o->floor[i];
    }
    rls_cap(o, P);
    for (int i = 0; i < n + n * n; i++)
        sum += i < n ? a[i] : P[i - n];
    if (!isfinite(sum) || !isfinite(weight * error * error) || !(weight > 0.0)) {
        extra[3] += 1.0;
        return error;
    }
    const double memory = o->kind == RLS_DIRECTIONAL ? o->memory : keep;
    extra[4] = due ? 1.0 : extra[4] + 1.0;
    memcpy(state, a, (size_t)n * sizeof(double));
    memcpy(state + n, P, (size_t)(n * n) * sizeof(double));
    extra[0] = memory * extra[0] + weight * error * error / (1.0 + scaled);
    extra[1] = memory * extra[1] + (extra[2] >= n ? 1.0 : 0.0); /* the first n samples determine the values */
    extra[2] += 1.0;
    return error;
}

#endif
