/* jointwise._native: the hot loops, batched over samples. Python sees strided float64 arrays only.
 *
 * The algorithms (lanes.h, rigid.h) are compiled once per instruction set and chosen at run time, so that a wheel runs
 * on an older processor than the one that built it.
 */
#include "arguments.h"
#include "compiler.h"
#include "sincos.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    Py_ssize_t samples;
    series q, qd, qdd;
} states;

/* Samples a regressor tile holds: the tile of a six-axis arm stays in the second-level cache, and a series is written in
 * runs of whole cache lines. */
#define TILE 32
#define WIDEST_LANE 8
#define ALIGNMENT 64

#if defined(__GNUC__) || defined(__clang__)
#define BASE_LANES 2
#else
#define BASE_LANES 1
#endif

#if (defined(__x86_64__) || defined(_M_X64)) && (defined(__GNUC__) || defined(__clang__))
#define DISPATCH_X86 1
#include <immintrin.h>
#else
#define DISPATCH_X86 0
#endif

#if defined(__clang__)
#define SHUFFLE(bits, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(bits, a, b, ...) __builtin_shuffle(a, b, (bits){__VA_ARGS__})
#endif

/* How z of a frame lies in the frame before: Q of R = Q Rot_z(angle) is one of six quarter turns, or R is any rotation.
 * WITH_TURN compiles its statements once for each, TURN being a constant there: a known Q is a free permutation. */
enum { Z_UP, X_QUARTER, Z_DOWN, X_QUARTER_BACK, Y_QUARTER, Y_QUARTER_BACK, ANY_TURN };
#define WITH_TURN(turn, ...)                                                                                           \
    switch (turn) {                                                                                                    \
    case Z_UP: { enum { TURN = Z_UP }; __VA_ARGS__; break; }                                                           \
    case X_QUARTER: { enum { TURN = X_QUARTER }; __VA_ARGS__; break; }                                                 \
    case Z_DOWN: { enum { TURN = Z_DOWN }; __VA_ARGS__; break; }                                                       \
    case X_QUARTER_BACK: { enum { TURN = X_QUARTER_BACK }; __VA_ARGS__; break; }                                       \
    case Y_QUARTER: { enum { TURN = Y_QUARTER }; __VA_ARGS__; break; }                                                 \
    case Y_QUARTER_BACK: { enum { TURN = Y_QUARTER_BACK }; __VA_ARGS__; break; }                                       \
    default: { enum { TURN = ANY_TURN }; __VA_ARGS__; }                                                                \
    }

/* Moves a tile out. Streaming stores leave the cache to the computation: a regressor is far larger than it. */
#define FLUSH_PLAIN                                                                                                    \
    for (Py_ssize_t s = 0; s < count_series; s++) {                                                                   \
        series one = {out->data + s * out->joint_stride, out->sample_stride, 0};                                      \
        double *to = one.data + start * one.sample_stride;                                                            \
        const double *from = tile + s * TILE;                                                                         \
        if (one.sample_stride == 1)                                                                                   \
            memcpy(to, from, (size_t)length * sizeof(double));                                                        \
        else                                                                                                          \
            for (Py_ssize_t k = 0; k < length; k++)                                                                   \
                to[k * one.sample_stride] = from[k];                                                                  \
    }
#define FLUSH_ARGUMENTS const double *tile, Py_ssize_t count_series, Py_ssize_t length, const series *out, Py_ssize_t start

/* -- the baseline every processor of the architecture has -- */
#define LANES BASE_LANES
#define NAME(x) x##_base
static void flush_base(FLUSH_ARGUMENTS) { FLUSH_PLAIN }
#include "lanes.h"
#include "rigid.h"
#undef LANES
#undef NAME

#if DISPATCH_X86
static int can_stream(const series *out, Py_ssize_t length, Py_ssize_t start)
{
    return out->sample_stride == 1 && length == TILE && (uintptr_t)(out->data + start) % ALIGNMENT == 0 &&
           out->joint_stride % (Py_ssize_t)(ALIGNMENT / sizeof(double)) == 0;
}

/* Copies a tile with streaming stores of `width` numbers where the output allows it. */
#define FLUSH_STREAMED(width, stream, load)                                                                            \
    if (!can_stream(out, length, start)) {                                                                             \
        FLUSH_PLAIN                                                                                                    \
        return;                                                                                                        \
    }                                                                                                                  \
    for (Py_ssize_t s = 0; s < count_series; s++)                                                                      \
        for (Py_ssize_t k = 0; k < TILE; k += width)                                                                   \
            stream(out->data + s * out->joint_stride + start + k, load(tile + s * TILE + k));

BEGIN_AVX2
#define LANES 4
#define NAME(x) x##_avx2
static void flush_avx2(FLUSH_ARGUMENTS) { FLUSH_STREAMED(4, _mm256_stream_pd, _mm256_load_pd) }
#include "lanes.h"
#include "rigid.h"
#undef LANES
#undef NAME
END_TARGET

BEGIN_AVX512
#define LANES 8
#define NAME(x) x##_avx512
static void flush_avx512(FLUSH_ARGUMENTS) { FLUSH_STREAMED(8, _mm512_stream_pd, _mm512_load_pd) }
#include "lanes.h"
#include "rigid.h"
#undef LANES
#undef NAME
END_TARGET
#endif /* DISPATCH_X86 */

typedef struct {
    const char *name;
    int (*inverse_dynamics)(const chain *, const states *, const series *, void *);
    int (*regressor)(const chain *, const states *, const int32_t *, Py_ssize_t, const series *, void *);
    int (*kinematics)(const chain *, const states *, const series *, void *);
    int (*mass_matrix)(const chain *, const states *, const series *, void *);
    int (*forward_dynamics)(const chain *, const states *, const series *, const series *, void *);
    int (*energy_regressors)(const chain *, const states *, const series *, const series *, void *);
} kernel;

#define KERNEL(s)                                                                                                      \
    {#s, inverse_dynamics_##s, regressor_##s, kinematics_##s, mass_matrix_##s, forward_dynamics_##s,                  \
     energy_regressors_##s}

static const kernel KERNELS[] = {
    KERNEL(base),
#if DISPATCH_X86
    KERNEL(avx2),
    KERNEL(avx512),
#endif
};
static const int KERNEL_COUNT = (int)(sizeof(KERNELS) / sizeof(KERNELS[0]));
static const kernel *active = &KERNELS[0];

static int supported(int index)
{
#if DISPATCH_X86
    if (index == 1)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (index == 2)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
#endif
    return index == 0;
}

/* -- arguments -- */

static int borrow_states(const chain *robot, PyObject *q, PyObject *qd, PyObject *qdd, states *in, lent *held)
{
    PyObject *objects[3] = {q, qd, qdd};
    series *targets[3] = {&in->q, &in->qd, &in->qdd};
    const char *names[3] = {"q", "qd", "qdd"};
    in->samples = PyObject_Length(q);
    if (in->samples < 0)
        return 0;
    for (int k = 0; k < 3; k++) {
        memset(targets[k], 0, sizeof(series));
        if (objects[k] != Py_None && !table(objects[k], names[k], in->samples, robot->dof, 0, held, targets[k]))
            return 0;
    }
    return 1;
}

/* Work space for the widest lane, however large the chain. */
static void *workspace(Py_ssize_t dof, Py_ssize_t count_series)
{
    Py_ssize_t size = plus(times(dof, 100 * WIDEST_LANE), times(count_series, TILE));
    if (size < 0)
        return PyErr_NoMemory();
    size_t bytes = ((size_t)size * sizeof(double) / ALIGNMENT + 1) * ALIGNMENT;
#if defined(_WIN32)
    void *memory = _aligned_malloc(bytes, ALIGNMENT);
#else
    void *memory = aligned_alloc(ALIGNMENT, bytes);
#endif
    if (memory == NULL)
        PyErr_NoMemory();
    return memory;
}

static void discard(void *memory)
{
#if defined(_WIN32)
    _aligned_free(memory);
#else
    free(memory);
#endif
}

/* -- calls -- */

/* The arguments of one call: the robot, its motion, and one or two more arrays. */
typedef struct {
    lent held;
    chain robot;
    states in;
    series arrays[2];
    const int32_t *places; /* of the regressor's series */
    Py_ssize_t count_series;
} call;

typedef int (*algorithm)(const call *, void *);

static int begin(call *c, PyObject *chain_object, PyObject *q, PyObject *qd, PyObject *qdd)
{
    memset(c, 0, sizeof(*c));
    return borrow_chain(chain_object, &c->robot, &c->held) && borrow_states(&c->robot, q, qd, qdd, &c->in, &c->held);
}

/* Runs an algorithm if the arguments are `ready`, gives the arrays back and returns whether all results are finite. */
static PyObject *finish(call *c, int ready, algorithm run)
{
    PyObject *result = NULL;
    void *memory = ready ? workspace(c->robot.dof, c->count_series) : NULL;
    if (memory != NULL) {
        int finite;
        Py_BEGIN_ALLOW_THREADS
        finite = run(c, memory);
        Py_END_ALLOW_THREADS
        discard(memory);
        result = PyBool_FromLong(finite);
    }
    give_back(&c->held);
    return result;
}

/* f(chain, q, qd|None, qdd|None, out (samples, columns)) */
static PyObject *run_one_output(PyObject *args, algorithm run, Py_ssize_t per_joint, int squared)
{
    PyObject *o[5];
    call c;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    int ready = begin(&c, o[0], o[1], o[2], o[3]);
    ready = ready && table(o[4], "out", c.in.samples, times(squared ? c.robot.dof : per_joint, c.robot.dof), 1, &c.held,
                           &c.arrays[0]);
    return finish(&c, ready, run);
}

/* f(chain, q, qd|None, first (samples, columns), second (samples, columns)); the first is read or written. */
static PyObject *run_two_arrays(PyObject *args, algorithm run, Py_ssize_t per_joint, int write_first)
{
    PyObject *o[5];
    call c;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    int ready = begin(&c, o[0], o[1], o[2], Py_None);
    Py_ssize_t width = ready ? times(per_joint, c.robot.dof) : 0;
    ready = ready && table(o[3], "first", c.in.samples, width, write_first, &c.held, &c.arrays[0]) &&
            table(o[4], "second", c.in.samples, width, 1, &c.held, &c.arrays[1]);
    return finish(&c, ready, run);
}

/* A Python function for each algorithm. */
#define ONE_OUTPUT(name, per_joint, squared)                                                                           \
    static int run_##name(const call *c, void *memory)                                                                 \
    {                                                                                                                  \
        return active->name(&c->robot, &c->in, &c->arrays[0], memory);                                                 \
    }                                                                                                                  \
    static PyObject *name(PyObject *self, PyObject *args)                                                              \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        return run_one_output(args, run_##name, per_joint, squared);                                                   \
    }
#define TWO_ARRAYS(name, per_joint, write_first)                                                                       \
    static int run_##name(const call *c, void *memory)                                                                 \
    {                                                                                                                  \
        return active->name(&c->robot, &c->in, &c->arrays[0], &c->arrays[1], memory);                                  \
    }                                                                                                                  \
    static PyObject *name(PyObject *self, PyObject *args)                                                              \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        return run_two_arrays(args, run_##name, per_joint, write_first);                                               \
    }

ONE_OUTPUT(inverse_dynamics, 1, 0)
ONE_OUTPUT(kinematics, 12, 0)
ONE_OUTPUT(mass_matrix, 0, 1)
TWO_ARRAYS(forward_dynamics, 1, 0)
TWO_ARRAYS(energy_regressors, 10, 1)

/* Series that places (n n 10 of int32, below zero for none) name: one more than the largest; -1 if it is something else. */
static Py_ssize_t count_places(PyObject *object, Py_ssize_t dof, const int32_t **places)
{
    char *bytes;
    Py_ssize_t length, count = times(times(dof, dof), 10), series_named = 0;
    if (PyBytes_AsStringAndSize(object, &bytes, &length) != 0)
        return -1;
    if (count < 0 || length != count * (Py_ssize_t)sizeof(int32_t)) {
        PyErr_SetString(PyExc_ValueError, "places has the wrong size");
        return -1;
    }
    *places = (const int32_t *)bytes;
    for (Py_ssize_t k = 0; k < count; k++)
        if ((*places)[k] >= series_named)
            series_named = (Py_ssize_t)(*places)[k] + 1;
    return series_named;
}

static int run_regressor(const call *c, void *memory)
{
    return active->regressor(&c->robot, &c->in, c->places, c->count_series, &c->arrays[0], memory);
}

/* regressor(chain, q, qd|None, qdd|None, places (bytes of int32, n n 10), out (samples, series)) */
static PyObject *regressor(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6];
    call c;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    int ready = begin(&c, o[0], o[1], o[2], o[3]) && (c.count_series = count_places(o[4], c.robot.dof, &c.places)) >= 0;
    ready = ready && table(o[5], "out", c.in.samples, c.count_series, 1, &c.held, &c.arrays[0]);
    return finish(&c, ready, run_regressor);
}

static PyObject *instruction_sets(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    PyObject *names = PyList_New(0);
    for (int k = 0; names != NULL && k < KERNEL_COUNT; k++) {
        if (!supported(k))
            continue;
        PyObject *name = PyUnicode_FromString(KERNELS[k].name);
        if (name == NULL || PyList_Append(names, name) != 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *use_instruction_set(PyObject *self, PyObject *args)
{
    (void)self;
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    for (int k = 0; k < KERNEL_COUNT; k++)
        if (strcmp(KERNELS[k].name, name) == 0 && supported(k)) {
            active = &KERNELS[k];
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "this processor has no instruction set '%s'", name);
}

static PyMethodDef METHODS[] = {
    {"inverse_dynamics", inverse_dynamics, METH_VARARGS, "(chain, q, qd, qdd, torque) -> finite"},
    {"regressor", regressor, METH_VARARGS, "(chain, q, qd, qdd, places, series) -> finite"},
    {"kinematics", kinematics, METH_VARARGS, "(chain, q, None, None, frames) -> finite"},
    {"mass_matrix", mass_matrix, METH_VARARGS, "(chain, q, None, None, matrix) -> finite"},
    {"forward_dynamics", forward_dynamics, METH_VARARGS, "(chain, q, qd, torque, acceleration) -> finite"},
    {"energy_regressors", energy_regressors, METH_VARARGS, "(chain, q, qd, kinetic, potential) -> finite"},
    {"instruction_sets", instruction_sets, METH_NOARGS, "names of the instruction sets this processor can use"},
    {"use_instruction_set", use_instruction_set, METH_VARARGS, "(name): use one of instruction_sets()"},
    {NULL, NULL, 0, NULL},
};

extern PyMethodDef SIGNAL_METHODS[]; /* signals.c */
extern PyMethodDef LINEAR_METHODS[]; /* linear.c */
extern PyMethodDef PLANT_METHODS[];  /* plant.c */
extern PyMethodDef HYSTERESIS_METHODS[]; /* hysteresis.c */
extern PyMethodDef RUNTIME_METHODS[]; /* runtime_module.c */
extern PyMethodDef RECURSIVE_METHODS[]; /* recursive.c */
extern PyMethodDef ADAPTATION_METHODS[]; /* adaptation.c */
extern PyMethodDef MONITOR_METHODS[]; /* monitor_module.c */
extern PyMethodDef STIFFNESS_METHODS[]; /* stiffness.c */
extern PyMethodDef CONTROL_METHODS[]; /* control.c */

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_native", "Native kernels of Jointwise.", -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    for (int k = KERNEL_COUNT - 1; k >= 0; k--)
        if (supported(k)) {
            active = &KERNELS[k];
            break;
        }
    PyMethodDef *const parts[] = {SIGNAL_METHODS,    LINEAR_METHODS,     PLANT_METHODS,   HYSTERESIS_METHODS, RUNTIME_METHODS,
                                  RECURSIVE_METHODS, ADAPTATION_METHODS, MONITOR_METHODS, STIFFNESS_METHODS,
                                  CONTROL_METHODS};
    PyObject *module = PyModule_Create(&MODULE);
    for (size_t k = 0; module != NULL && k < sizeof parts / sizeof parts[0]; k++)
        if (PyModule_AddFunctions(module, parts[k]) != 0)
            Py_CLEAR(module);
    return module;
}
