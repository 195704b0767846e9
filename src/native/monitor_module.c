/* Monitoring for Python: a monitor as a capsule, samples of a stream, and what the monitor knows. */
#include "arguments.h"
#include "monitor.h"

#define CAPSULE "jointwise.monitor"
#define STATE_SIZE ((Py_ssize_t)(sizeof(jw_watch_state) / sizeof(double)))
#define JOINT_NUMBERS (2 * JW_FEATURES + 10)
#define HEAD_NUMBERS (JW_MOMENTS * 10 + 7)
#define ROWS 12 /* arrays of a report with one number a joint */

const jw_model *model_of(PyObject *capsule); /* runtime_module.c */

typedef struct {
    jw_monitor monitor;
    PyObject *model; /* keeps the numbers of the model alive */
} held_monitor;

static void drop_capsule(PyObject *capsule)
{
    held_monitor *held = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_XDECREF(held->model);
    PyMem_Free(held);
}

/* The numbers in the order of `CoreMonitor.packed` (jointwise/monitoring/core.py). */
static void read_monitor(const double *in, jw_monitor *out)
{
    for (int k = 0; k < JW_MOMENTS; k++, in += 10)
        memcpy(out->body[k], in, 10 * sizeof(double));
    out->mass = *in++;
    out->moment = *in++;
    out->limit_fast = *in++;
    out->limit_slow = *in++;
    out->limit_change = *in++;
    out->lag = *in++;
    out->derived = *in++ != 0.0;
    for (int j = 0; j < out->model->joints; j++) {
        jw_watched *w = &out->joint[j];
        memcpy(w->fast, in, sizeof(w->fast));
        memcpy(w->slow, in + JW_FEATURES, sizeof(w->slow));
        in += 2 * JW_FEATURES;
        w->rest_fast = *in++;
        w->rest_slow = *in++;
        w->held = *in++;
        w->viscous = *in++;
        w->gain = *in++;
        w->measured = *in++ != 0.0;
        w->predictor[0] = *in++;
        w->predictor[1] = *in++;
        w->change = *in++;
        w->fastest = *in++;
    }
}

/* monitor_open(model, numbers) -> capsule */
static PyObject *monitor_open(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *model_object, *numbers_object, *capsule = NULL;
    if (!PyArg_ParseTuple(args, "OO", &model_object, &numbers_object))
        return NULL;
    const jw_model *model = model_of(model_object);
    if (model == NULL)
        return NULL;
    lent borrowed = {.count = 0};
    const double *source;
    if (numbers(numbers_object, "numbers", HEAD_NUMBERS + JOINT_NUMBERS * model->joints, 0, &borrowed, &source)) {
        held_monitor *held = PyMem_Calloc(1, sizeof(held_monitor));
        if (held == NULL) {
            give_back(&borrowed);
            return PyErr_NoMemory();
        }
        held->monitor.model = model;
        held->model = Py_NewRef(model_object);
        read_monitor(source, &held->monitor);
        capsule = PyCapsule_New(held, CAPSULE, drop_capsule);
        if (capsule == NULL) {
            Py_DECREF(held->model);
            PyMem_Free(held);
        }
    }
    give_back(&borrowed);
    return capsule;
}

static const jw_monitor *monitor_of(PyObject *capsule)
{
    held_monitor *held = PyCapsule_GetPointer(capsule, CAPSULE);
    return held == NULL ? NULL : &held->monitor;
}

/* monitor_init(monitor, state) */
static PyObject *monitor_init(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[2], *result = NULL;
    if (!PyArg_ParseTuple(args, "OO", &o[0], &o[1]))
        return NULL;
    const jw_monitor *monitor = monitor_of(o[0]);
    if (monitor == NULL)
        return NULL;
    lent held = {.count = 0};
    double *state;
    if (outputs(o[1], "state", STATE_SIZE, 0, &held, &state)) {
        jw_watch_init(monitor, (jw_watch_state *)state);
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

static void write_report(const jw_watch_report *report, Py_ssize_t n, double *out)
{
    const double *const arrays[ROWS] = {report->external, report->residual, report->deviation, report->ratio,
                                        report->frozen,   report->speed,    report->inertia,   report->shock,
                                        report->rest,     report->bound_fast, report->bound_slow, report->dry};
    for (int k = 0; k < ROWS; k++, out += n)
        memcpy(out, arrays[k], (size_t)n * sizeof(double));
    out[0] = report->contact;
    out[1] = report->joint;
    out[2] = report->verdict;
    out[3] = report->change;
}

/* monitor_steps(monitor, state, samples, t, q, qd | None, output, temperature | None, reports): arrays of
 * (samples, joints) numbers, reports of (samples, 12 joints + 4); the state is updated. */
static PyObject *monitor_steps(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[4] = {"q", "qd", "output", "temperature"};
    PyObject *o[8], *result = NULL;
    Py_ssize_t samples;
    if (!PyArg_ParseTuple(args, "OOnOOOOOO", &o[0], &o[1], &samples, &o[2], &o[3], &o[4], &o[5], &o[6], &o[7]))
        return NULL;
    const jw_monitor *monitor = monitor_of(o[0]);
    if (monitor == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *t, *in[4];
    double *state, *out;
    Py_ssize_t n = monitor->model->joints, size = times(samples, n), width = ROWS * n + 4;
    int ready = outputs(o[1], "state", STATE_SIZE, 0, &held, &state) && numbers(o[2], "t", samples, 0, &held, &t) &&
                outputs(o[7], "reports", times(samples, width), 0, &held, &out);
    for (int k = 0; k < 4 && ready; k++)
        ready = numbers(o[3 + k], names[k], size, k % 2, &held, &in[k]);
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < samples; k++) {
            Py_ssize_t at = k * n;
            jw_sample sample = {.q = in[0] + at, .qd = in[1] ? in[1] + at : NULL,
                                .temperature = in[3] ? in[3] + at : NULL};
            jw_watch_report report;
            jw_watch(monitor, (jw_watch_state *)state, t[k], &sample, in[2] + at, &report);
            write_report(&report, n, out + k * width);
        }
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* monitor_known(monitor, state, x, P, rest, counts): the unknowns (4 + 3 joints), their covariance, which joints are at
 * rest, and the samples by what they were with the number of adopted contacts after them. */
static PyObject *monitor_known(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    const jw_monitor *monitor = monitor_of(o[0]);
    if (monitor == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *numbers_of_state;
    double *x, *P, *rest, *counts;
    Py_ssize_t n = monitor->model->joints, count = JW_MOMENTS + JW_SHARES * n;
    if (numbers(o[1], "state", STATE_SIZE, 0, &held, &numbers_of_state) && outputs(o[2], "x", count, 0, &held, &x) &&
        outputs(o[3], "P", count * count, 0, &held, &P) && outputs(o[4], "rest", n, 0, &held, &rest) &&
        outputs(o[5], "counts", JW_VERDICTS + 1, 0, &held, &counts)) {
        const jw_watch_state *state = (const jw_watch_state *)numbers_of_state;
        memcpy(x, state->x, (size_t)count * sizeof(double));
        for (Py_ssize_t i = 0; i < count; i++)
            memcpy(P + i * count, state->P + i * JW_UNKNOWNS, (size_t)count * sizeof(double));
        memcpy(rest, state->at_rest, (size_t)n * sizeof(double));
        memcpy(counts, state->count, JW_VERDICTS * sizeof(double));
        counts[JW_VERDICTS] = state->adopted;
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

static PyObject *monitor_state_size(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return PyLong_FromSsize_t(STATE_SIZE);
}

PyMethodDef MONITOR_METHODS[] = {
    {"monitor_open", monitor_open, METH_VARARGS, "(model, numbers) -> monitor"},
    {"monitor_init", monitor_init, METH_VARARGS, "(monitor, state)"},
    {"monitor_steps", monitor_steps, METH_VARARGS, "(monitor, state, samples, t, q, qd, output, temperature, reports)"},
    {"monitor_known", monitor_known, METH_VARARGS, "(monitor, state, x, P, rest, counts)"},
    {"monitor_state_size", monitor_state_size, METH_NOARGS, "numbers of a state"},
    {NULL, NULL, 0, NULL},
};
