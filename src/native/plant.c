/* The digital robot's native side: one call simulates many control periods. The equations are in plant.h; Python's side
 * is simulation/robot/.
 */
#include "arguments.h"
#include "compiler.h"
#include "control.h"
#include "friction.h"
#include "gear.h"
#include <math.h>
#include <stdlib.h>

/* One joint: only doubles, in the order of simulation/robot/packing.py. SI units at the joint side, temperatures in °C. */
typedef struct {
    double inertia;                        /* B, kg m² */
    double flexible;                       /* 0: rotor and link move as one */
    double spin;                           /* B / gear ratio in the complete model, else 0 */
    gear_law gear;
    friction_law friction;
    double gain, current_limit, lag;       /* motor: Nm/A, A, s */
    double resistance, inductance;         /* of the equivalent DC motor, Ohm and H */
    double capacity, conductance, ambient; /* J/K (0: constant temperature), W/K, °C */
} law;
#define LAW_FIELDS ((Py_ssize_t)(sizeof(law) / sizeof(double)))

/* Stages of a step: at its start (gears known), twice in its middle (the second at the same position), at its end. */
enum { START, MIDDLE, AGAIN, END };

/* The state, one array of Python's: seventeen rows of a number a joint, then the deformations, then the external work. */
typedef struct {
    double *q, *qd, *theta, *w; /* rad, rad/s */
    double *current, *temperature, *load, *friction, *integral;
    double *supplied, *worked, *damped; /* energy accounts, J */
    double *play;                       /* P, from -1 (one flank) to 1 */
    double *electrical, *copper;        /* energy accounts of the windings, J */
    double *q_before, *theta_before;    /* one control period ago */
    double *deformation;                /* (n, elements), rad */
    double *external;                   /* J */
    Py_ssize_t elements;
} state;
#define STATE_ROWS 17
#define RECORD_ROWS 17 /* numbers a joint that are recorded */

typedef struct {
    const chain *robot;
    const law *laws;
    const double *table, *tool, *push, *coupling;
    Py_ssize_t points, push_stride, periods, substeps;
    int locked;
    double period;
    state at;
    controller feedback;
    double *out, *scratch; /* scratch: (6, n) */
} task;

/* Beyond these a simulation has diverged: rad/s, rad, Nm. */
#define FASTEST 1e5
#define FARTHEST 1e5
#define STRONGEST 1e9

#if (defined(__GNUC__) || defined(__clang__)) && !defined(__x86_64__) && !defined(__i386__)
#define VECTORS_OF_FOUR 1
#else
#define VECTORS_OF_FOUR 0 /* until the processor is known to have them */
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
#include "integrator.h"
#include "plant.h"
#undef NAME

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define FUSED 1
BEGIN_AVX2
#undef VECTORS_OF_FOUR
#define VECTORS_OF_FOUR 1
#define NAME(x) x##_fused
#include "links.h"
#include "composite.h"
#include "integrator.h"
#include "plant.h"
#undef NAME
END_TARGET
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

static int parse_laws(PyObject *object, Py_ssize_t n, Py_ssize_t elements, lent *held, const law **laws)
{
    const double *rows;
    if (!numbers(object, "joints", times(n, LAW_FIELDS), 0, held, &rows))
        return 0;
    *laws = (const law *)rows;
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &(*laws)[j];
        if (!(joint->friction.elements >= 0.0 && joint->friction.elements <= (double)elements &&
              joint->friction.elements <= MOST_ELEMENTS && joint->gear.error.count >= 0.0 &&
              joint->gear.error.count <= MOST_HARMONICS && joint->inertia >= 0.0 && joint->gain != 0.0 &&
              joint->gear.lost >= 0.0 && joint->gear.per_reach > 0.0)) {
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
                                 &at->play, &at->electrical, &at->copper, &at->q_before, &at->theta_before};
    for (int k = 0; k < STATE_ROWS; k++)
        *rows[k] = numbers_of + k * n;
    at->deformation = numbers_of + STATE_ROWS * n;
    at->external = at->deformation + n * elements;
    at->elements = elements;
}

#define ALIGNMENT 64

/* Numbers of work space: links.h takes 138 doubles a joint and 12, twice, composite.h 93 a joint and a
 * matrix, for up to three joints more, plant.h 83 a joint and a matrix; rounded up. */
static Py_ssize_t workspace_size(Py_ssize_t n)
{
    return plus(512 + 2 * ALIGNMENT / (Py_ssize_t)sizeof(double), times(n, plus(560, times(3, n))));
}

static char *aligned(char *memory)
{
    return memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
}

/* simulate(chain, joints, backlash (n, points), tool (3,), state, elements, controller, wrench | None, period, periods,
 * substeps, locked, out | None, counts (2, n) | None, coupling (n, n) | None) -> index of the period that failed, or -1.
 * The state is updated. */
static PyObject *simulate(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *chain_object, *laws, *backlash, *tool, *at, *feedback, *push, *out, *counts, *coupling;
    Py_ssize_t elements, length;
    chain robot, model;
    task job = {0};
    lent held;
    held.count = 0;
    double *numbers_of;
    if (!PyArg_ParseTuple(args, "OOOOOnOOdnnpOOO", &chain_object, &laws, &backlash, &tool, &at, &elements, &feedback, &push,
                          &job.period, &job.periods, &job.substeps, &job.locked, &out, &counts, &coupling))
        return NULL;
    PyObject *result = NULL;
    if (elements < 0 || elements > MOST_ELEMENTS || job.periods < 0 || job.substeps < 1 || !(job.period > 0.0)) {
        PyErr_SetString(PyExc_ValueError, "periods, substeps or elements are out of range");
        return NULL;
    }
    if (!borrow_chain(chain_object, &robot, &held))
        goto done;
    Py_ssize_t n = robot.dof;
    job.robot = &robot;
    if (!parse_laws(laws, n, elements, &held, &job.laws) ||
        !any_numbers(backlash, "backlash", 0, &held, &job.table, &length) ||
        !numbers(tool, "tool", 3, 0, &held, &job.tool) ||
        !outputs(at, "state", plus(times(n, STATE_ROWS + elements), 1), 0, &held, &numbers_of) ||
        !parse_controller(feedback, job.periods, n, &held, &job.feedback, &model) ||
        !numbers(counts, "counts", times(2, n), 1, &held, &job.feedback.counts) ||
        !numbers(coupling, "coupling", times(n, n), 1, &held, &job.coupling) ||
        !outputs(out, "out", times(job.periods, plus(times(RECORD_ROWS, n), 1)), 1, &held, &job.out))
        goto done;
    job.points = length / n;
    if (job.points < 1 || job.points * n != length) {
        PyErr_SetString(PyExc_ValueError, "backlash must have as many points for every joint");
        goto done;
    }
    if (!any_numbers(push, "wrench", 1, &held, &job.push, &length))
        goto done;
    job.push_stride = job.push != NULL && length == 6 ? 0 : 6;
    if (job.push != NULL && length != 6 && length != times(6, job.periods)) {
        PyErr_SetString(PyExc_ValueError, "wrench must have 6 numbers, or 6 a period");
        goto done;
    }
    cut_state(numbers_of, n, elements, &job.at);
    char *memory = workspace_size(n) < 0 ? NULL : calloc((size_t)workspace_size(n), sizeof(double));
    job.scratch = calloc((size_t)n, 6 * sizeof(double));
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
    give_back(&held);
    return result;
}

/* hysteresis(joint (fields,), backlash (points,), theta (samples,), deformation (elements,), out (samples, 2)): the
 * deformations are updated. */
static PyObject *hysteresis(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *joint, *backlash, *theta, *deformation, *out, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &joint, &backlash, &theta, &deformation, &out))
        return NULL;
    lent held;
    held.count = 0;
    const law *laws;
    const double *map, *path;
    double *at, *rows;
    Py_ssize_t points, samples, elements;
    if (any_numbers(backlash, "backlash", 0, &held, &map, &points) &&
        any_numbers(theta, "theta", 0, &held, &path, &samples) &&
        any_outputs(deformation, "deformation", &held, &at, &elements) &&
        parse_laws(joint, 1, elements, &held, &laws) && outputs(out, "out", times(2, samples), 0, &held, &rows)) {
        if (points > 0) {
            CHOOSE(follow)(&laws->friction, (backlash_map){map, (int)points}, path, samples, at, rows);
            result = Py_NewRef(Py_None);
        } else {
            PyErr_SetString(PyExc_ValueError, "backlash must have a point");
        }
    }
    give_back(&held);
    return result;
}

/* steady_friction(joint (fields,), speed (samples,), load (samples,), temperature (samples,), out (samples, 2)): dry level
 * and viscous factor. */
static PyObject *steady_friction(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[5], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    lent held;
    held.count = 0;
    const law *laws;
    const double *speed, *load, *temperature;
    double *out;
    Py_ssize_t n;
    if (parse_laws(o[0], 1, MOST_ELEMENTS, &held, &laws) && any_numbers(o[1], "speed", 0, &held, &speed, &n) &&
        numbers(o[2], "load", n, 0, &held, &load) && numbers(o[3], "temperature", n, 0, &held, &temperature) &&
        outputs(o[4], "out", times(2, n), 0, &held, &out)) {
        const friction_law *f = &laws->friction;
        for (Py_ssize_t k = 0; k < n; k++) {
            out[2 * k] = dry_level(f, speed[k], load[k], thermal_factor(f, temperature[k]));
            out[2 * k + 1] = viscous_factor(f, speed[k]);
        }
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

PyMethodDef PLANT_METHODS[] = {
    {"steady_friction", steady_friction, METH_VARARGS, "(joint, speed, load, temperature, out): level and viscous factor"},
    {"hysteresis", hysteresis, METH_VARARGS, "(joint, backlash, theta, deformation, out): H and its means along a path"},
    {"simulate", simulate, METH_VARARGS,
     "(chain, joints, backlash, tool, state, elements, controller, wrench, period, periods, substeps, locked, out, counts, coupling) "
     "-> index of the period that failed, or -1"},
    {NULL, NULL, 0, NULL},
};
