/* Online friction for Python: signals with one common delay, friction of slip elements along a motion, and the adaptation
 * of friction parameters; the laws are in adaptation.h and friction.h. */
#include "arguments.h" /* Python.h first */

#include "adaptation.h"
#include "compiler.h"
#include "friction.h"

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

/* -- friction of slip elements along a motion -- */

#define FRICTION_NUMBERS ((Py_ssize_t)(sizeof(friction_law) / sizeof(double)))

/* Borrows the laws of all joints and returns how many there are; sets an error and returns 0 for anything else. */
static Py_ssize_t borrow_laws(PyObject *object, lent *held, const friction_law **laws)
{
    const double *rows;
    Py_ssize_t count;
    if (!any_numbers(object, "laws", 0, held, &rows, &count))
        return 0;
    *laws = (const friction_law *)rows;
    Py_ssize_t n = count / FRICTION_NUMBERS;
    int fine = n > 0 && n * FRICTION_NUMBERS == count;
    for (Py_ssize_t j = 0; j < n && fine; j++)
        fine = (*laws)[j].elements >= 0.0 && (*laws)[j].elements <= MOST_ELEMENTS;
    if (!fine)
        PyErr_SetString(PyExc_ValueError, "laws must be those of the joints");
    return fine ? n : 0;
}

/* H at a position; the elements and the last position behind them are updated. */
static double follow_hysteresis(const friction_law *law, const double *table, int points, double *memory,
                                Py_ssize_t elements, double theta)
{
    double H = 0.0, backlash = jw_periodic(table, points, theta);
    deform(law, backlash, theta - memory[elements], memory);
    memory[elements] = theta;
    for (int i = 0; i < (int)law->elements; i++) {
        double x = memory[i] * law->per_limit[i] / backlash;
        H += law->shares[i] * x * (1.0 + (x < 0.0 ? -law->asymmetry : law->asymmetry));
    }
    return H;
}

/* slip_hysteresis(laws (joints, numbers), backlash (joints, points), memory (joints, elements + 1), theta (samples, joints),
 * H (samples, joints)): the memory, deformations and last position, is updated. */
static PyObject *slip_hysteresis(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[5], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    lent held = {.count = 0};
    const friction_law *laws;
    const double *table, *theta;
    double *memory, *H;
    Py_ssize_t n, points, width, size;
    if ((n = borrow_laws(o[0], &held, &laws)) > 0 && any_numbers(o[1], "backlash", 0, &held, &table, &points) &&
        any_outputs(o[2], "memory", &held, &memory, &width) && any_numbers(o[3], "theta", 0, &held, &theta, &size) &&
        outputs(o[4], "H", size, 0, &held, &H)) {
        int fine = points >= n && points % n == 0 && width % n == 0 && size % n == 0;
        for (Py_ssize_t j = 0; j < n && fine; j++)
            fine = (Py_ssize_t)laws[j].elements < width / n;
        points /= n, width /= n;
        for (Py_ssize_t k = 0; k < size && fine; k++) {
            Py_ssize_t j = k % n;
            H[k] = follow_hysteresis(laws + j, table + j * points, (int)points, memory + j * width, width - 1, theta[k]);
        }
        if (fine)
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(PyExc_ValueError, "backlash, memory and theta must be those of the joints");
    }
    give_back(&held);
    return result;
}

/* slip_torque(laws (joints, numbers), H, speed, load, temperature, friction, dry (samples, joints) each): friction, and
 * its dry part without the thermal one. */
static PyObject *slip_torque(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[6] = {"H", "speed", "load", "temperature", "friction", "dry"};
    PyObject *o[7], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    lent held = {.count = 0};
    const friction_law *laws;
    const double *in[4];
    double *out[2];
    Py_ssize_t n = borrow_laws(o[0], &held, &laws), size = 0;
    int ready = n > 0 && any_numbers(o[1], names[0], 0, &held, &in[0], &size);
    for (int k = 1; k < 4 && ready; k++)
        ready = numbers(o[1 + k], names[k], size, 0, &held, &in[k]);
    for (int k = 0; k < 2 && ready; k++)
        ready = outputs(o[5 + k], names[4 + k], size, 0, &held, &out[k]);
    if (ready && size % n) {
        PyErr_SetString(PyExc_ValueError, "H must be that of the joints");
        ready = 0;
    }
    if (ready) {
        for (Py_ssize_t k = 0; k < size; k++) {
            const friction_law *law = laws + k % n;
            double H = in[0][k], w = in[1][k], load = in[2][k], thermal = thermal_factor(law, in[3][k]);
            out[0][k] = dry_level(law, w, load, thermal) * H + viscous_factor(law, w) * w;
            out[1][k] = dry_level(law, w, load, 0.0) * H;
        }
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

PyMethodDef ADAPTATION_METHODS[] = {
    {"slip_hysteresis", slip_hysteresis, METH_VARARGS, "(laws, backlash, memory, theta, H)"},
    {"slip_torque", slip_torque, METH_VARARGS, "(laws, H, speed, load, temperature, friction, dry)"},
    {"phase_steps", phase_steps, METH_VARARGS, "(taps, channels, rate, state, values, out)"},
    {"adapt_steps", adapt_steps, METH_VARARGS, "(laws, state, friction, dry, speed, enabled, parameters, error)"},
    {NULL, NULL, 0, NULL},
};
