/* Online friction for Python: signals with one common delay, and the adaptation of friction parameters; adaptation.h. */
#include "arguments.h" /* Python.h first */

#include "adaptation.h"
#include "compiler.h"

#define MOST_TAPS 100001
#define MOST_CHANNELS 100000

WIDE static void run_phase(const double *taps, int length, int channels, double rate, double *state, Py_ssize_t samples,
                           const double *values, double *out)
{
    for (Py_ssize_t k = 0; k < samples; k++)
        jw_phase_step(taps, length, channels, rate, state, values + k * channels, out + 3 * k * channels);
}

/* phase_steps(taps (length,), channels, rate, state, values (samples, channels), out (samples, 3, channels)): the state is
 * updated. */
static PyObject *phase_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *result = NULL;
    Py_ssize_t channels, length, size;
    double rate;
    if (!PyArg_ParseTuple(args, "OndOOO", &o[0], &channels, &rate, &o[1], &o[2], &o[3]))
        return NULL;
    if (channels < 1 || channels > MOST_CHANNELS) {
        PyErr_SetString(PyExc_ValueError, "channels are out of range");
        return NULL;
    }
    lent held = {.count = 0};
    const double *taps, *values;
    double *state, *out;
    if (any_numbers(o[0], "taps", 0, &held, &taps, &length) && any_numbers(o[2], "values", 0, &held, &values, &size) &&
        outputs(o[3], "out", times(3, size), 0, &held, &out) &&
        outputs(o[1], "state", plus(JW_PHASE_HEAD, times(plus(length, JW_PHASE_SMOOTH), channels)), 0, &held, &state)) {
        if (length < 1 || length > MOST_TAPS || size % channels || !(state[0] >= 0.0 && state[0] < (double)length)) {
            PyErr_SetString(PyExc_ValueError, "taps, values or state are not those of a filter");
        } else {
            Py_BEGIN_ALLOW_THREADS
            run_phase(taps, (int)length, (int)channels, rate, state, size / channels, values, out);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

#define LAW_NUMBERS ((Py_ssize_t)(sizeof(jw_adaptation) / sizeof(double)))
#define STATE_NUMBERS ((Py_ssize_t)(sizeof(jw_adapted) / sizeof(double)))

/* adapt_steps(laws (joints, numbers), state (joints, numbers), friction, dry, speed (samples, joints) each, enabled,
 * parameters (samples, 2, joints), error (samples, joints)): the state is updated. */
static PyObject *adapt_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    int enabled;
    if (!PyArg_ParseTuple(args, "OOOOOpOO", &o[0], &o[1], &o[2], &o[3], &o[4], &enabled, &o[5], &o[6]))
        return NULL;
    lent held = {.count = 0};
    const double *laws, *friction, *dry, *speed;
    double *state, *parameters, *error;
    Py_ssize_t numbers_of, size;
    if (any_numbers(o[0], "laws", 0, &held, &laws, &numbers_of) &&
        any_numbers(o[2], "friction", 0, &held, &friction, &size) && numbers(o[3], "dry", size, 0, &held, &dry) &&
        numbers(o[4], "speed", size, 0, &held, &speed) &&
        outputs(o[5], "parameters", times(2, size), 0, &held, &parameters) &&
        outputs(o[6], "error", size, 0, &held, &error)) {
        Py_ssize_t n = numbers_of / LAW_NUMBERS;
        if (n < 1 || n * LAW_NUMBERS != numbers_of || size % n) {
            PyErr_SetString(PyExc_ValueError, "laws must be those of the joints");
        } else if (outputs(o[1], "state", times(n, STATE_NUMBERS), 0, &held, &state)) {
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t k = 0; k < size; k++) {
                Py_ssize_t j = k % n, at = 2 * (k - j) + j;
                jw_adapted *joint = (jw_adapted *)state + j;
                error[k] = jw_adapt((const jw_adaptation *)laws + j, joint, friction[k], dry[k], speed[k], enabled);
                parameters[at] = joint->a[0], parameters[at + n] = joint->a[1];
            }
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

PyMethodDef ADAPTATION_METHODS[] = {
    {"phase_steps", phase_steps, METH_VARARGS, "(taps, channels, rate, state, values, out)"},
    {"adapt_steps", adapt_steps, METH_VARARGS, "(laws, state, friction, dry, speed, enabled, parameters, error)"},
    {NULL, NULL, 0, NULL},
};
