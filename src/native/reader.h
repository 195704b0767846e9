/* Numbers of a flat array in turn: how Python hands over models and settings. */
#ifndef JOINTWISE_READER_H
#define JOINTWISE_READER_H

#include "arguments.h"

/* Reads numbers one by one; `left` becomes -1 if there are too few. */
typedef struct {
    const double *at;
    Py_ssize_t left;
} reader;

static inline double read_number(reader *in)
{
    if (in->left <= 0) {
        in->left = -1;
        return 0.0;
    }
    in->left--;
    return *in->at++;
}

static inline int read_count(reader *in, int most)
{
    double value = read_number(in);
    if (!(value >= 0.0 && value <= (double)most))
        in->left = -1;
    return in->left < 0 ? 0 : (int)value;
}

static inline void read_numbers(reader *in, double *out, int count)
{
    for (int k = 0; k < count; k++)
        out[k] = read_number(in);
}

/* The next numbers where they are. */
static inline const double *read_span(reader *in, Py_ssize_t count)
{
    const double *start = in->at;
    if (in->left < count) {
        in->left = -1;
        return NULL;
    }
    in->at += count;
    in->left -= count;
    return start;
}

#endif
