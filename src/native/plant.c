/* The digital robot's native side: one call simulates many control periods. The equations are in plant.h; Python's side
 * is simulation/robot/.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The robot as in module.c. */
typedef struct {
    Py_ssize_t dof;
    const double *rotations, *translations, *inertials, *rotors, *gravity;
    const unsigned char *revolute;
} chain;

#define MOST_ELEMENTS 16
#define MOST_HARMONICS 8

/* One joint: only doubles, in the order of simulation/robot/packing.py. SI units at the joint side, temperatures in °C. */
typedef struct {
    double inertia;                                                /* B, kg m² */
    double flexible;                                               /* 0: rotor and link move as one */
    double K1, K2, K3, phi1, phi2, cubic;                          /* spring, Nm/rad, rad, Nm/rad³ */
    double damping;                                                /* Nm s/rad */
    double coulomb, load, stiction, stribeck_speed, stribeck_shape; /* F_C0, F_C1, F_S - F_C0, V_S, μ */
    double viscous, square, cube;                                  /* F_V1, F_V2, F_V3 */
    double FT1, FT2, T0, T_least, T_most;
    double asymmetry;
    double gain, current_limit, lag;                               /* Nm/A, A, s */
    double capacity, conductance, ambient;                         /* J/K (0: constant temperature), W/K, °C */
    double spin;                                                   /* B / gear ratio in the complete model, else 0 */
    double lost, per_reach;                                        /* d / B(θ) of the lost motion; 1 / L, 1/rad */
    double elements, harmonics;
    double limits[MOST_ELEMENTS], per_limit[MOST_ELEMENTS], shares[MOST_ELEMENTS]; /* D_i, 1 / D_i, W_i */
    double amplitude[MOST_HARMONICS], order[MOST_HARMONICS], phase[MOST_HARMONICS];
} law;
#define LAW_FIELDS ((Py_ssize_t)(sizeof(law) / sizeof(double)))

/* Stages of a step: where it starts (gears known), twice in its middle (the second at the same position), at its end. */
enum { START, MIDDLE, AGAIN, END };

/* A gear at the start of a step: rotor angle, play, sines and cosines of the harmonics. */
typedef struct {
    double theta, play, s[MOST_HARMONICS], c[MOST_HARMONICS];
} ripple;

/* The state, one array of Python's: thirteen rows of a number a joint, then the deformations, then the external work. */
typedef struct {
    double *q, *qd, *theta, *w; /* rad, rad/s */
    double *current, *temperature, *load, *friction, *integral;
    double *supplied, *worked, *damped; /* energy accounts, J */
    double *play;                       /* P, from -1 (one flank) to 1 */
    double *deformation;                /* (n, elements), rad */
    double *external;                   /* J */
    Py_ssize_t elements;
} state;
#define STATE_ROWS 13
#define RECORD_ROWS 15 /* numbers a joint that are recorded */

typedef struct {
    const double *data;
    Py_ssize_t stride; /* 0: constant */
    int full;          /* n x n instead of n */
} gain;

typedef struct {
    const chain *model;           /* whose gravity is added, or NULL */
    const double *feed_forward;   /* (periods, n) or NULL */
    const double *reference[4];   /* q, qd, theta, w: (periods, n) or NULL */
    gain gains[5];                /* for these and the integral of q */
} controller;

typedef struct {
    const chain *robot;
    const law *laws;
    const double *table, *tool, *push;
    Py_ssize_t points, push_stride, periods, substeps;
    int locked;
    double period;
    state at;
    controller law_of;
    double *out, *scratch;
} task;

/* Sines of larger angles are libm's, rad. */
#define LARGE_ANGLE 1e5

/* Ways below this, relative to the backlash, are none. */
#define SHORTEST 1e-200

/* Beyond these a simulation has exploded: rad/s, rad, Nm. */
#define FASTEST 1e5
#define FARTHEST 1e5
#define STRONGEST 1e9

#if (defined(__GNUC__) || defined(__clang__)) && !defined(__x86_64__) && !defined(__i386__)
#define VECTORS_OF_FOUR 1
#else
#define VECTORS_OF_FOUR 0 /* until the processor is known to have them */
#endif
/* Of functions whose loops are to be of known length. */
#if defined(__GNUC__) || defined(__clang__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(enable)")
#elif defined(__GNUC__)
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif

#define NAME(x) x##_one
#include "links.h"
#include "composite.h"
#include "plant.h"
#undef NAME

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FUSED 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#undef VECTORS_OF_FOUR
#define VECTORS_OF_FOUR 1
#define NAME(x) x##_fused
#include "links.h"
#include "composite.h"
#include "plant.h"
#undef NAME
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
#define FUSED 0
#endif

#if FUSED
static int fused(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define CHOOSE(f) (fused() ? f##_fused : f##_one)
#else
#define CHOOSE(f) f##_one
#endif

/* -- arguments -- */

#define MOST_BUFFERS 32

typedef struct {
    Py_buffer views[MOST_BUFFERS];
    int count;
} lent;

/* Borrows a contiguous float64 array of `size` numbers (any number if size < 0); None gives NULL if it may. */
static int numbers(PyObject *object, const char *name, Py_ssize_t size, int writable, int may_miss, lent *held,
                   const double **out, Py_ssize_t *length)
{
    *out = NULL;
    if (may_miss && object == Py_None)
        return 1;
    Py_buffer *view = &held->views[held->count];
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) != 0)
        return 0;
    held->count++;
    if (view->itemsize != sizeof(double) || view->format == NULL || strcmp(view->format, "d") != 0 ||
        (uintptr_t)view->buf % sizeof(double) != 0 ||
        (size >= 0 && view->len != size * (Py_ssize_t)sizeof(double))) {
        PyErr_Format(PyExc_ValueError, "%s has the wrong type or size", name);
        return 0;
    }
    *out = view->buf;
    if (length != NULL)
        *length = view->len / (Py_ssize_t)sizeof(double);
    return 1;
}

static int same_dof(const chain *robot, Py_ssize_t dof)
{
    if (robot->dof == dof)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the controller's robot has another number of joints");
    return 0;
}

/* The robot as module.c takes it. */
static int parse_chain(PyObject *tuple, chain *robot, lent *held)
{
    char *revolute;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 6) {
        PyErr_SetString(PyExc_TypeError, "chain must be a tuple of six");
        return 0;
    }
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, 0), &revolute, &robot->dof) != 0)
        return 0;
    Py_ssize_t n = robot->dof;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "a chain needs a joint");
        return 0;
    }
    robot->revolute = (const unsigned char *)revolute;
    const Py_ssize_t sizes[5] = {9 * n, 3 * n, 10 * n, n, 3};
    const double **targets[5] = {&robot->rotations, &robot->translations, &robot->inertials, &robot->rotors,
                                 &robot->gravity};
    for (int k = 0; k < 5; k++)
        if (!numbers(PyTuple_GetItem(tuple, k + 1), "chain", sizes[k], 0, 0, held, targets[k], NULL))
            return 0;
    return 1;
}

static int parse_laws(PyObject *object, Py_ssize_t n, Py_ssize_t elements, lent *held, const law **laws)
{
    const double *rows;
    if (!numbers(object, "joints", n * LAW_FIELDS, 0, 0, held, &rows, NULL))
        return 0;
    *laws = (const law *)rows;
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &(*laws)[j];
        if (!(joint->elements >= 0.0 && joint->elements <= (double)elements && joint->elements <= MOST_ELEMENTS &&
              joint->harmonics >= 0.0 && joint->harmonics <= MOST_HARMONICS && joint->inertia >= 0.0 &&
              joint->gain != 0.0 && joint->lost >= 0.0 && joint->per_reach > 0.0)) {
            PyErr_Format(PyExc_ValueError, "joint %zd is not well formed", j + 1);
            return 0;
        }
    }
    return 1;
}

static void cut_state(double *numbers_of, Py_ssize_t n, Py_ssize_t elements, state *at)
{
    double **rows[STATE_ROWS] = {&at->q,    &at->qd,       &at->theta,    &at->w,        &at->current, &at->temperature,
                                 &at->load, &at->friction, &at->integral, &at->supplied, &at->worked,  &at->damped,
                                 &at->play};
    for (int k = 0; k < STATE_ROWS; k++)
        *rows[k] = numbers_of + k * n;
    at->deformation = numbers_of + STATE_ROWS * n;
    at->external = at->deformation + n * elements;
    at->elements = elements;
}

/* (feed_forward, q, qd, theta, w, Kp, Kd, Ktheta, Kw, Ki, chain), each may be None; gains are n, n² or periods n²
 * numbers. */
static int parse_controller(PyObject *tuple, Py_ssize_t periods, Py_ssize_t n, lent *held, controller *law_of,
                            chain *model)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 11) {
        PyErr_SetString(PyExc_TypeError, "controller must be a tuple of eleven");
        return 0;
    }
    const double **rows[5] = {&law_of->feed_forward, &law_of->reference[0], &law_of->reference[1],
                              &law_of->reference[2], &law_of->reference[3]};
    for (int k = 0; k < 5; k++)
        if (!numbers(PyTuple_GetItem(tuple, k), "reference", periods * n, 0, 1, held, rows[k], NULL))
            return 0;
    for (int k = 0; k < 5; k++) {
        gain *K = &law_of->gains[k];
        Py_ssize_t length = 0;
        if (!numbers(PyTuple_GetItem(tuple, 5 + k), "gains", -1, 0, 1, held, &K->data, &length))
            return 0;
        if (K->data == NULL)
            continue;
        K->full = length != n;
        K->stride = length == n || length == n * n ? 0 : n * n;
        if (length != n && length != n * n && length != periods * n * n) {
            PyErr_SetString(PyExc_ValueError, "gains have the wrong size");
            return 0;
        }
    }
    PyObject *chain_object = PyTuple_GetItem(tuple, 10);
    if (chain_object == Py_None)
        return 1;
    law_of->model = model;
    return parse_chain(chain_object, model, held) && same_dof(model, n);
}

#define ALIGNMENT 64

/* Bytes of work space: links.h takes 138 doubles a joint and 12, twice, composite.h 93 a joint and a
 * matrix, for up to three joints more, plant.h 80 a joint and a matrix; with room to spare. */
static size_t room(Py_ssize_t n)
{
    return sizeof(double) * (size_t)(512 + n * (560 + 3 * n)) + 2 * ALIGNMENT;
}

static char *aligned(char *memory)
{
    return memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
}

/* simulate(chain, joints, backlash (n, points), tool (3,), state, elements, controller, wrench | None, period, periods,
 * substeps, locked, out | None) -> index of the period that failed, or -1. The state is updated. */
static PyObject *simulate(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *chain_object, *laws, *table, *tool, *at, *law_of, *push, *out;
    Py_ssize_t elements, length = 0;
    chain robot, model;
    task job = {0};
    lent held = {.count = 0};
    const double *numbers_of, *rows;
    if (!PyArg_ParseTuple(args, "OOOOOnOOdnnpO", &chain_object, &laws, &table, &tool, &at, &elements, &law_of, &push,
                          &job.period, &job.periods, &job.substeps, &job.locked, &out))
        return NULL;
    PyObject *result = NULL;
    if (elements < 0 || elements > MOST_ELEMENTS || job.periods < 0 || job.substeps < 1 || !(job.period > 0.0)) {
        PyErr_SetString(PyExc_ValueError, "periods, substeps or elements are out of range");
        return NULL;
    }
    if (!parse_chain(chain_object, &robot, &held))
        goto done;
    Py_ssize_t n = robot.dof;
    job.robot = &robot;
    if (!parse_laws(laws, n, elements, &held, &job.laws) ||
        !numbers(table, "backlash", -1, 0, 0, &held, &job.table, &length) ||
        !numbers(tool, "tool", 3, 0, 0, &held, &job.tool, NULL) ||
        !numbers(at, "state", STATE_ROWS * n + n * elements + 1, 1, 0, &held, &numbers_of, NULL) ||
        !parse_controller(law_of, job.periods, n, &held, &job.law_of, &model) ||
        !numbers(out, "out", job.periods * (RECORD_ROWS * n + 1), 1, 1, &held, &rows, NULL))
        goto done;
    job.points = length / n;
    job.out = (double *)rows;
    if (job.points < 1 || job.points * n != length) {
        PyErr_SetString(PyExc_ValueError, "backlash must have as many points for every joint");
        goto done;
    }
    if (!numbers(push, "wrench", -1, 0, 1, &held, &job.push, &length))
        goto done;
    job.push_stride = job.push != NULL && length == 6 ? 0 : 6;
    if (job.push != NULL && length != 6 && length != 6 * job.periods) {
        PyErr_SetString(PyExc_ValueError, "wrench must have 6 numbers, or 6 a period");
        goto done;
    }
    cut_state((double *)numbers_of, n, elements, &job.at);
    char *memory = calloc(1, room(n));
    job.scratch = calloc((size_t)n, 2 * sizeof(double));
    if (memory == NULL || job.scratch == NULL) {
        PyErr_NoMemory();
    } else {
        Py_ssize_t failed;
        Py_BEGIN_ALLOW_THREADS
        failed = CHOOSE(run)(&job, aligned(memory));
        Py_END_ALLOW_THREADS
        result = PyLong_FromSsize_t(failed);
    }
    free(memory);
    free(job.scratch);
done:
    while (held.count > 0)
        PyBuffer_Release(&held.views[--held.count]);
    return result;
}

/* hysteresis(joint (fields,), backlash (points,), theta (samples,), deformation (elements,), out (samples, 2)): the
 * deformations are updated. */
static PyObject *hysteresis(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *joint, *table, *theta, *deformation, *out, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &joint, &table, &theta, &deformation, &out))
        return NULL;
    lent held = {.count = 0};
    const law *laws;
    const double *map, *path, *at, *rows;
    Py_ssize_t points, samples, elements;
    if (numbers(table, "backlash", -1, 0, 0, &held, &map, &points) &&
        numbers(theta, "theta", -1, 0, 0, &held, &path, &samples) &&
        numbers(deformation, "deformation", -1, 1, 0, &held, &at, &elements) &&
        parse_laws(joint, 1, elements, &held, &laws) &&
        numbers(out, "out", 2 * samples, 1, 0, &held, &rows, NULL)) {
        if (points > 0) {
            CHOOSE(follow)(laws, map, points, path, samples, (double *)at, (double *)rows);
            result = Py_NewRef(Py_None);
        } else {
            PyErr_SetString(PyExc_ValueError, "backlash must have a point");
        }
    }
    while (held.count > 0)
        PyBuffer_Release(&held.views[--held.count]);
    return result;
}

PyMethodDef PLANT_METHODS[] = {
    {"hysteresis", hysteresis, METH_VARARGS, "(joint, backlash, theta, deformation, out): H and its means along a path"},
    {"simulate", simulate, METH_VARARGS,
     "(chain, joints, backlash, tool, state, elements, controller, wrench, period, periods, substeps, locked, out) -> "
     "index of the period that failed, or -1"},
    {NULL, NULL, 0, NULL},
};
