/* Variances of several estimates of one torque from their differences, one sample at a time (the three-cornered hat).
 * NumPy reference: runtime/observers/fusion.py, where the method is written down. Plain C without Python. */
#ifndef JOINTWISE_FUSION_H
#define JOINTWISE_FUSION_H

#include "compiler.h"
#include <math.h>

typedef struct {
    double memory, averaging;     /* shares of the sums of squares and of averaged differences that remain after a sample */
    double settling, least_share; /* samples before variances are used; smallest variance relative to the largest */
} fusion_options;

/* Sums of one pair: squared differences and their weights, averaged differences and theirs. */
INLINED void observe_difference(const fusion_options *o, double difference, int known, double *square, double *weight,
                                double *average, double *count)
{
    double there = known ? 1.0 : 0.0;
    *average = o->averaging * *average + (known ? difference : 0.0);
    *count = o->averaging * *count + there;
    double mean = *average / fmax(*count, 1e-300);
    *square = o->memory * *square + there * mean * mean;
    *weight = o->memory * *weight + there;
}

/* Variances (count) = solution^T (pairs, count) times the mean squared differences (pairs); ones before they have settled. */
INLINED void solve_variances(const fusion_options *o, int count, int pairs, const double *solution, const double *square,
                             const double *weight, double *v)
{
    double most = -INFINITY, least = INFINITY, lightest = INFINITY;
    for (int i = 0; i < count; i++) {
        v[i] = 0.0;
        for (int p = 0; p < pairs; p++)
            v[i] += solution[p * count + i] * square[p] / fmax(weight[p], 1.0);
        most = fmax(most, v[i]);
    }
    for (int p = 0; p < pairs; p++)
        lightest = fmin(lightest, weight[p]);
    for (int i = 0; i < count; i++) {
        v[i] = fmax(v[i], o->least_share * most);
        least = fmin(least, v[i]);
    }
    for (int i = 0; i < count && !(lightest >= o->settling && least > 0.0); i++)
        v[i] = 1.0;
}

/* Inverse-variance mean of the estimates that are finite, and its variance; NaN and infinite of none. */
INLINED double fuse_estimates(const double *estimate, const double *variance, int count, double *fused_variance)
{
    double sum = 0.0, total = 0.0;
    for (int i = 0; i < count; i++)
        if (estimate[i] - estimate[i] == 0.0) {
            sum += estimate[i] / variance[i];
            total += 1.0 / variance[i];
        }
    *fused_variance = total > 0.0 ? 1.0 / total : INFINITY;
    return total > 0.0 ? sum / total : NAN;
}

#endif
