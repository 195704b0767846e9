/* The digital robot's native side: one call simulates many control periods. The equations are in plant.h; Python's side
 * is simulation/robot/.
 */
#include "arguments.h"
#include "compiler.h"
#include "control.h"
#include "gear.h"
#include "joint_terms.h"
#include <math.h>
#include <stdlib.h>

/* One joint: only doubles, in the order of simulation/robot/packing.py. SI units at the joint side, temperatures in °C. */
typedef struct {
    double inertia;                        /* B, kg m² */
    double flexible;                       /* 0: rotor and link move as one */
    double spin;                           /* B / gear ratio in the complete model, else 0 */
    gear_law gear;
    double gain, current_limit, lag;       /* motor: Nm/A, A, s */
    double resistance, inductance;         /* of the equivalent DC motor, Ohm and H */
    double capacity, conductance, ambient; /* J/K (0: constant temperature), W/K, °C */
} law;
#define LAW_FIELDS ((Py_ssize_t)(sizeof(law) / sizeof(double)))

/* Stages of a step: at its start (gears known), twice in its middle (the second at the same position), at its end. */
enum { START, MIDDLE, AGAIN, END };

/* The state, one array of Python's: seventeen rows of a number a joint, then the memory of friction, then the external work. */
typedef struct {
    double *q, *qd, *theta, *w; /* rad, rad/s */
    double *current, *temperature, *load, *friction, *integral;
    double *supplied, *worked, *damped; /* energy accounts, J */
    double *play;                       /* P, from -1 (one flank) to 1 */
    double *electrical, *copper;        /* energy accounts of the windings, J */
    double *q_before, *theta_before;    /* one control period ago */
    double *memory;                     /* of the slip terms, (n, elements) */
    double *external;                   /* J */
    Py_ssize_t elements;
} state;
#define STATE_ROWS 17
#define RECORD_ROWS 17 /* numbers a joint that are recorded */

typedef struct {
    const chain *robot;
    const law *laws;
    const joint_terms *terms;
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

static int parse_laws(PyObject *object, Py_ssize_t n, lent *held, const law **laws)
{
    const double *rows;
    if (!numbers(object, "joints", times(n, LAW_FIELDS), 0, held, &rows))
        return 0;
    *laws = (const law *)rows;
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &(*laws)[j];
        if (!(joint->gear.error.count >= 0.0 &&
              joint->gear.error.count <= MOST_HARMONICS && joint->inertia >= 0.0 && joint->gain != 0.0 &&
              joint->gear.lost >= 0.0 && joint->gear.per_reach > 0.0)) {
            PyErr_Format(PyExc_ValueError, "joint %zd is not well formed", j + 1);
            return 0;
        }
    }
    return 1;
}

/* Terms of n joints, in one allocation that the caller frees; NULL with an error set if they are not well formed, or if one
 * remembers more than `elements` numbers. */
static joint_terms *parse_terms(PyObject *object, Py_ssize_t n, Py_ssize_t elements, lent *held)
{
    reader in;
    if (!any_numbers(object, "terms", 0, held, &in.at, &in.left))
        return NULL;
    joint_terms *laws = PyMem_Malloc((size_t)n * (sizeof(joint_terms) + MOST_TERMS * sizeof(jw_term)));
    if (laws == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    jw_term *terms = (jw_term *)(laws + n);
    for (Py_ssize_t j = 0; j < n; j++)
        if (!read_joint_terms(&in, terms + j * MOST_TERMS, &laws[j]) || laws[j].memory > elements) {
            PyErr_Format(PyExc_ValueError, "the terms of joint %zd are not well formed", j + 1);
            PyMem_Free(laws);
            return NULL;
        }
    if (in.left == 0)
        return laws;
    PyErr_SetString(PyExc_ValueError, "terms must be those of as many joints");
    PyMem_Free(laws);
    return NULL;
}

static void cut_state(double *numbers_of, Py_ssize_t n, Py_ssize_t elements, state *at)
{
    double **rows[STATE_ROWS] = {&at->q,    &at->qd,       &at->theta,    &at->w,        &at->current, &at->temperature,
                                 &at->load, &at->friction, &at->integral, &at->supplied, &at->worked,  &at->damped,
                                 &at->play, &at->electrical, &at->copper, &at->q_before, &at->theta_before};
    for (int k = 0; k < STATE_ROWS; k++)
        *rows[k] = numbers_of + k * n;
    at->memory = numbers_of + STATE_ROWS * n;
    at->external = at->memory + n * elements;
    at->elements = elements;
}

#define ALIGNMENT 64

/* Numbers of work space: links.h takes 138 doubles a joint and 12, twice, composite.h 93 a joint and a
 * matrix, for up to three joints more, plant.h 120 a joint and a matrix; rounded up. */
static Py_ssize_t workspace_size(Py_ssize_t n)
{
    return plus(512 + 2 * ALIGNMENT / (Py_ssize_t)sizeof(double), times(n, plus(600, times(3, n))));
}

static char *aligned(char *memory)
{
    return memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
}

/* simulate(chain, joints, terms, backlash (n, points), tool (3,), state, elements, controller, wrench | None, period, periods,
 * substeps, locked, out | None, counts (2, n) | None, coupling (n, n) | None) -> index of the period that failed, or -1.
 * The state is updated. */
static PyObject *simulate(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *chain_object, *laws, *terms, *backlash, *tool, *at, *feedback, *push, *out, *counts, *coupling;
    Py_ssize_t elements, length;
    chain robot, model;
    task job = {0};
    lent held;
    held.count = 0;
    double *numbers_of;
    if (!PyArg_ParseTuple(args, "OOOOOOnOOdnnpOOO", &chain_object, &laws, &terms, &backlash, &tool, &at, &elements, &feedback, &push,
                          &job.period, &job.periods, &job.substeps, &job.locked, &out, &counts, &coupling))
        return NULL;
    PyObject *result = NULL;
    joint_terms *friction = NULL;
    if (elements < 0 || elements > MOST_MEMORY || job.periods < 0 || job.substeps < 1 || !(job.period > 0.0)) {
        PyErr_SetString(PyExc_ValueError, "periods, substeps or elements are out of range");
        return NULL;
    }
    if (!borrow_chain(chain_object, &robot, &held))
        goto done;
    Py_ssize_t n = robot.dof;
    job.robot = &robot;
    if (!parse_laws(laws, n, &held, &job.laws) || (friction = parse_terms(terms, n, elements, &held)) == NULL ||
        !any_numbers(backlash, "backlash", 0, &held, &job.table, &length) ||
        !numbers(tool, "tool", 3, 0, &held, &job.tool) ||
        !outputs(at, "state", plus(times(n, STATE_ROWS + elements), 1), 0, &held, &numbers_of) ||
        !parse_controller(feedback, job.periods, n, &held, &job.feedback, &model) ||
        !numbers(counts, "counts", times(2, n), 1, &held, &job.feedback.counts) ||
        !numbers(coupling, "coupling", times(n, n), 1, &held, &job.coupling) ||
        !outputs(out, "out", times(job.periods, plus(times(RECORD_ROWS, n), 1)), 1, &held, &job.out))
        goto done;
    job.terms = friction;
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
    PyMem_Free(friction);
    give_back(&held);
    return result;
}

/* joint_memory(terms, joints) -> the most numbers that the friction of one of the joints remembers */
static PyObject *joint_memory(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *terms;
    Py_ssize_t n, most = 0;
    if (!PyArg_ParseTuple(args, "On", &terms, &n))
        return NULL;
    lent held;
    held.count = 0;
    joint_terms *laws = n > 0 ? parse_terms(terms, n, MOST_MEMORY, &held) : NULL;
    for (Py_ssize_t j = 0; laws != NULL && j < n; j++)
        most = laws[j].memory > most ? laws[j].memory : most;
    PyMem_Free(laws);
    give_back(&held);
    return laws == NULL && n > 0 ? NULL : PyLong_FromSsize_t(most);
}

/* joint_friction(terms, memory (joints, numbers), speed, load, temperature, theta, out (joints,)): friction at an instant. */
static PyObject *joint_friction(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    lent held;
    held.count = 0;
    const double *speed, *load, *temperature, *theta, *memory;
    double *out;
    Py_ssize_t n, count;
    joint_terms *laws = NULL;
    if (any_numbers(o[2], "speed", 0, &held, &speed, &n) && any_numbers(o[1], "memory", 0, &held, &memory, &count) &&
        numbers(o[3], "load", n, 0, &held, &load) && numbers(o[4], "temperature", n, 0, &held, &temperature) &&
        numbers(o[5], "theta", n, 0, &held, &theta) && outputs(o[6], "out", n, 0, &held, &out)) {
        if (n < 1 || count % n != 0) {
            PyErr_SetString(PyExc_ValueError, "memory must be of as many joints as speed");
        } else if ((laws = parse_terms(o[0], n, count / n, &held)) != NULL) {
            for (Py_ssize_t j = 0; j < n; j++) {
                step_friction f;
                jw_input in = {.speed = speed[j], .load = load[j], .temperature = temperature[j], .position = theta[j]};
                begin_friction(&laws[j], memory + j * (count / n), 1.0, &in, theta[j], 0, &f);
                out[j] = friction_now(&f, speed[j]);
            }
            result = Py_NewRef(Py_None);
        }
    }
    PyMem_Free(laws);
    give_back(&held);
    return result;
}

/* hysteresis(terms, theta (samples,), memory (numbers,), out (samples, 2)): the dry part of a joint at the level of its slip
 * terms, and its mean since the sample before; the memory is updated. */
static PyObject *hysteresis(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *terms, *theta, *memory, *out, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &terms, &theta, &memory, &out))
        return NULL;
    lent held;
    held.count = 0;
    const double *path;
    double *at, *rows;
    Py_ssize_t samples, elements;
    joint_terms *law = NULL;
    if (any_numbers(theta, "theta", 0, &held, &path, &samples) && any_outputs(memory, "memory", &held, &at, &elements) &&
        (law = parse_terms(terms, 1, elements, &held)) != NULL &&
        outputs(out, "out", times(2, samples), 0, &held, &rows)) {
        CHOOSE(follow)(law, path, samples, at, rows);
        result = Py_NewRef(Py_None);
    }
    PyMem_Free(law);
    give_back(&held);
    return result;
}

/* steady_friction(terms, speed (samples,), load (samples,), temperature (samples,), out (samples, 2)): the dry part in steady
 * forward sliding, and the viscous factor. */
static PyObject *steady_friction(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[5], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    lent held;
    held.count = 0;
    const double *speed, *load, *temperature;
    double *out, memory[MOST_MEMORY] = {0.0};
    Py_ssize_t n;
    joint_terms *law = NULL;
    if ((law = parse_terms(o[0], 1, MOST_MEMORY, &held)) != NULL && any_numbers(o[1], "speed", 0, &held, &speed, &n) &&
        numbers(o[2], "load", n, 0, &held, &load) && numbers(o[3], "temperature", n, 0, &held, &temperature) &&
        outputs(o[4], "out", times(2, n), 0, &held, &out)) {
        for (Py_ssize_t k = 0; k < n; k++) {
            step_friction f;
            jw_input in = {.speed = speed[k], .load = load[k], .temperature = temperature[k]};
            begin_friction(law, memory, 1.0, &in, 0.0, 0, &f);
            out[2 * k] = f.most;
            out[2 * k + 1] = f.factor;
        }
        result = Py_NewRef(Py_None);
    }
    PyMem_Free(law);
    give_back(&held);
    return result;
}

PyMethodDef PLANT_METHODS[] = {
    {"joint_memory", joint_memory, METH_VARARGS, "(terms, joints) -> numbers that friction remembers"},
    {"joint_friction", joint_friction, METH_VARARGS,
     "(terms, memory, speed, load, temperature, theta, out): friction of joints at an instant"},
    {"steady_friction", steady_friction, METH_VARARGS, "(terms, speed, load, temperature, out): dry level and viscous factor"},
    {"hysteresis", hysteresis, METH_VARARGS, "(terms, theta, memory, out): dry friction and its means along a path"},
    {"simulate", simulate, METH_VARARGS,
     "(chain, joints, terms, backlash, tool, state, elements, controller, wrench, period, periods, substeps, locked, out, counts, coupling) "
     "-> index of the period that failed, or -1"},
    {NULL, NULL, 0, NULL},
};
