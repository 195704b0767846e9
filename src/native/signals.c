/* Loops over samples that NumPy cannot batch: slip elements (a recursion) and filtering with decimation.
 * NumPy twins: model/terms/slip.py and data/filters.py.
 */
#include "arguments.h"
#include "compiler.h"

/* delta <- clip(decay * delta + dx, -D, D); out = delta / D, element by element side by side. */
WIDE static void run_slip(const double *x, Py_ssize_t samples, const double *limits, Py_ssize_t elements, double decay,
                          double *delta, double *last, double *out)
{
    double before = *last;
    for (Py_ssize_t k = 0; k < samples; k++) {
        double dx = x[k] - before;
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            double s = decay * delta[i] + dx;
            s = s > limits[i] ? limits[i] : s;
            s = s < -limits[i] ? -limits[i] : s;
            delta[i] = s;
            out[k * elements + i] = s / limits[i];
        }
    }
    *last = before;
}

/* slip(x (samples,), limits (elements,), decay, state (elements + 1,), out (samples, elements)); the state is the
 * deformations and the last position, updated. */
static PyObject *slip(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[4];
    double decay;
    if (!PyArg_ParseTuple(args, "OOdOO", &objects[0], &objects[1], &decay, &objects[2], &objects[3]))
        return NULL;
    lent held;
    held.count = 0;
    const double *x, *limits;
    double *state, *out;
    Py_ssize_t samples, elements;
    PyObject *result = NULL;
    if (any_numbers(objects[0], "x", 0, &held, &x, &samples) &&
        any_numbers(objects[1], "limits", 0, &held, &limits, &elements) &&
        outputs(objects[2], "state", plus(elements, 1), 0, &held, &state) &&
        outputs(objects[3], "out", times(samples, elements), 0, &held, &out)) {
        Py_BEGIN_ALLOW_THREADS
        run_slip(x, samples, limits, elements, decay, state, state + elements, out);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

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
    {"slip", slip, METH_VARARGS, "(x, limits, decay, state, out): slip elements, the state is updated"},
    {"decimate", decimate, METH_VARARGS, "(x, taps, step, out): filter and keep every step-th sample"},
    {"leaky_sum", leaky_sum, METH_VARARGS, "(x, decay): x[k] += decay x[k-1], in place"},
    {NULL, NULL, 0, NULL},
};
