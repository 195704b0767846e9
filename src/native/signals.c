/* Loops over samples that NumPy cannot batch: filtering with decimation and a recursive sum.
 * NumPy reference: data/filters.py.
 */
#include "arguments.h"
#include "compiler.h"

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

PyMethodDef SIGNAL_METHODS[] = {
    {"decimate", decimate, METH_VARARGS, "(x, taps, step, out): filter and keep every step-th sample"},
    {"leaky_sum", leaky_sum, METH_VARARGS, "(x, decay): x[k] += decay x[k-1], in place"},
    {NULL, NULL, 0, NULL},
};
