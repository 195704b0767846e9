/* Loops over samples that NumPy cannot batch: filtering with decimation, a recursive sum and a cubic spline.
 * NumPy reference: data/filters.py.
 */
#include "arguments.h"
#include "compiler.h"
#include <stdlib.h>

#define WIDTH 8 /* partial sums: enough for the compiler to use any vector width */

WIDE static void run_decimate(const double *x, const double *taps, Py_ssize_t length, Py_ssize_t step, double *out,
                              Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++) {
        const double *from = x + k * step;
        double sums[WIDTH] = {0};
        Py_ssize_t l = 0;
        for (; l + WIDTH <= length; l += WIDTH)
            for (int i = 0; i < WIDTH; i++)
                sums[i] += taps[l + i] * from[l + i];
        double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        for (; l < length; l++)
            sum += taps[l] * from[l];
        out[k] = sum;
    }
}

/* decimate(x (samples,), taps (length,), step, out (count,)): out[k] = sum_l taps[l] x[k step + l] */
static PyObject *decimate(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[3];
    Py_ssize_t step;
    if (!PyArg_ParseTuple(args, "OOnO", &objects[0], &objects[1], &step, &objects[2]))
        return NULL;
    lent held;
    held.count = 0;
    const double *x, *taps;
    double *out;
    Py_ssize_t samples, length, count;
    PyObject *result = NULL;
    if (any_numbers(objects[0], "x", 0, &held, &x, &samples) &&
        any_numbers(objects[1], "taps", 0, &held, &taps, &length) &&
        any_outputs(objects[2], "out", &held, &out, &count)) {
        if (step < 1 || length < 1 || samples < length || (count > 0 && count - 1 > (samples - length) / step)) {
            PyErr_SetString(PyExc_ValueError, "x is too short for that many outputs");
        } else {
            Py_BEGIN_ALLOW_THREADS
            run_decimate(x, taps, length, step, out, count);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

/* leaky_sum(x (samples,), decay): x[k] += decay * x[k - 1], in place */
static PyObject *leaky_sum(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    double decay, *x;
    Py_ssize_t samples;
    if (!PyArg_ParseTuple(args, "Od", &object, &decay))
        return NULL;
    lent held;
    held.count = 0;
    int right = any_outputs(object, "x", &held, &x, &samples);
    for (Py_ssize_t k = 1; right && k < samples; k++)
        x[k] += decay * x[k - 1];
    give_back(&held);
    return right ? Py_NewRef(Py_None) : NULL;
}

/* Slopes (n, columns) of the cubic spline through (t, x) with continuous third derivatives at the second and the last but
 * one stamp ("not a knot"); n >= 4, t increases. Thomas algorithm, `above` (n,) is scratch. */
WIDE static void spline_slopes(const double *t, const double *x, Py_ssize_t n, Py_ssize_t columns, double *above,
                               double *slopes)
{
    const double first = t[1] - t[0], second = t[2] - t[1], both = t[2] - t[0];
    above[0] = both / second;
    for (Py_ssize_t c = 0; c < columns; c++) {
        const double m0 = (x[columns + c] - x[c]) / first, m1 = (x[2 * columns + c] - x[columns + c]) / second;
        slopes[c] = ((first + 2.0 * both) * second * m0 + first * first * m1) / both / second;
    }
    for (Py_ssize_t i = 1; i < n; i++) {
        double *s = slopes + i * columns;
        const double *at = x + i * columns;
        if (i < n - 1) {
            const double before = t[i] - t[i - 1], after = t[i + 1] - t[i];
            const double pivot = 1.0 / (2.0 * (before + after) - after * above[i - 1]);
            const double left = 3.0 * after / before, right = 3.0 * before / after;
            above[i] = before * pivot;
            for (Py_ssize_t c = 0; c < columns; c++)
                s[c] = (left * (at[c] - at[c - columns]) + right * (at[columns + c] - at[c]) - after * s[c - columns]) *
                       pivot;
        } else {
            const double last = t[i] - t[i - 1], before = t[i - 1] - t[i - 2], both = t[i] - t[i - 2];
            const double pivot = 1.0 / (before - both * above[i - 1]);
            for (Py_ssize_t c = 0; c < columns; c++) {
                const double m0 = (at[c - columns] - at[c - 2 * columns]) / before, m1 = (at[c] - at[c - columns]) / last;
                const double y = (last * last * m0 + (2.0 * both + last) * before * m1) / both;
                s[c] = (y - both * s[c - columns]) * pivot;
            }
        }
    }
    for (Py_ssize_t k = (n - 1) * columns - 1; k >= 0; k--)
        slopes[k] -= above[k / columns] * slopes[k + columns];
}

WIDE static void spline_values(const double *t, const double *x, const double *slopes, Py_ssize_t n, Py_ssize_t columns,
                               const double *times, Py_ssize_t count, double *out)
{
    Py_ssize_t i = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        while (i < n - 2 && times[k] >= t[i + 1])
            i++;
        while (i > 0 && times[k] < t[i])
            i--;
        const double h = t[i + 1] - t[i], u = (times[k] - t[i]) / h, v = 1.0 - u;
        const double a = v * v * (1.0 + 2.0 * u), b = u * u * (1.0 + 2.0 * v), c = h * u * v * v, d = -h * u * u * v;
        const double *at = x + i * columns, *slope = slopes + i * columns;
        for (Py_ssize_t j = 0; j < columns; j++)
            out[k * columns + j] = a * at[j] + b * at[columns + j] + c * slope[j] + d * slope[columns + j];
    }
}

/* cubic_spline(t (n,), x (n, columns), times (count,), out (count, columns)): "not a knot", n >= 4 */
static PyObject *cubic_spline(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *result = NULL;
    const double *t, *x, *times_;
    double *out;
    Py_ssize_t n, size, count;
    if (!PyArg_ParseTuple(args, "OOOO", &o[0], &o[1], &o[2], &o[3]))
        return NULL;
    lent held;
    held.count = 0;
    if (any_numbers(o[0], "t", 0, &held, &t, &n) && any_numbers(o[1], "x", 0, &held, &x, &size) &&
        any_numbers(o[2], "times", 0, &held, &times_, &count)) {
        if (n < 4 || size % n != 0) {
            PyErr_SetString(PyExc_ValueError, "a spline needs four stamps and as many rows");
        } else if (outputs(o[3], "out", times(count, size / n), 0, &held, &out)) {
            double *memory = malloc(((size_t)size + (size_t)n) * sizeof(double));
            if (memory == NULL) {
                PyErr_NoMemory();
            } else {
                Py_BEGIN_ALLOW_THREADS
                spline_slopes(t, x, n, size / n, memory + size, memory);
                spline_values(t, x, memory, n, size / n, times_, count, out);
                Py_END_ALLOW_THREADS
                result = Py_NewRef(Py_None);
            }
            free(memory);
        }
    }
    give_back(&held);
    return result;
}

PyMethodDef SIGNAL_METHODS[] = {
    {"decimate", decimate, METH_VARARGS, "(x, taps, step, out): filter and keep every step-th sample"},
    {"cubic_spline", cubic_spline, METH_VARARGS, "(t, x, times, out): cubic spline, not a knot"},
    {"leaky_sum", leaky_sum, METH_VARARGS, "(x, decay): x[k] += decay x[k-1], in place"},
    {NULL, NULL, 0, NULL},
};
