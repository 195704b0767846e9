/* jointwise._native: the hot loops, batched over samples. Python sees strided float64 arrays only.
 *
 * The algorithms (lanes.h, rigid.h) are compiled once per instruction set and chosen at run time, so that a wheel runs
 * on an older processor than the one that built it. Arguments are checked here: a wrong call raises, it never crashes.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Element (sample, joint) of a user's array, or a constant zero where data is NULL. Strides count doubles. */
typedef struct {
    double *data;
    Py_ssize_t sample_stride, joint_stride;
} series;

typedef struct {
    Py_ssize_t dof;
    const double *rotations, *translations, *inertials, *rotors, *gravity;
    const unsigned char *revolute;
} chain;

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

#if defined(__GNUC__) || defined(__clang__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define ALWAYS_INLINE static __forceinline
#else
#define ALWAYS_INLINE static inline
#endif

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

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define LANES 4
#define NAME(x) x##_avx2
static void flush_avx2(FLUSH_ARGUMENTS)
{
    if (!can_stream(out, length, start)) {
        FLUSH_PLAIN
        return;
    }
    for (Py_ssize_t s = 0; s < count_series; s++)
        for (Py_ssize_t k = 0; k < TILE; k += 4)
            _mm256_stream_pd(out->data + s * out->joint_stride + start + k, _mm256_load_pd(tile + s * TILE + k));
}
#include "lanes.h"
#include "rigid.h"
#undef LANES
#undef NAME
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,fma")
#endif
#define LANES 8
#define NAME(x) x##_avx512
static void flush_avx512(FLUSH_ARGUMENTS)
{
    if (!can_stream(out, length, start)) {
        FLUSH_PLAIN
        return;
    }
    for (Py_ssize_t s = 0; s < count_series; s++)
        for (Py_ssize_t k = 0; k < TILE; k += 8)
            _mm512_stream_pd(out->data + s * out->joint_stride + start + k, _mm512_load_pd(tile + s * TILE + k));
}
#include "lanes.h"
#include "rigid.h"
#undef LANES
#undef NAME
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
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

typedef struct {
    Py_buffer view;
    int held;
} borrowed;

static void give_back(borrowed *arrays, int count)
{
    for (int k = 0; k < count; k++)
        if (arrays[k].held)
            PyBuffer_Release(&arrays[k].view);
}

/* Borrows a float64 array of the given shape, any strides. Returns 0 and sets an error if it is something else. */
static int borrow(PyObject *object, const char *name, int dimensions, const Py_ssize_t *shape, int writable,
                  borrowed *array, series *out)
{
    if (PyObject_GetBuffer(object, &array->view, PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) != 0)
        return 0;
    array->held = 1;
    const Py_buffer *view = &array->view;
    int right = view->itemsize == sizeof(double) && view->format != NULL && strcmp(view->format, "d") == 0 &&
                view->ndim == dimensions;
    for (int k = 0; right && k < dimensions; k++)
        right = view->shape[k] == shape[k] && view->strides[k] % (Py_ssize_t)sizeof(double) == 0;
    if (!right) {
        PyErr_Format(PyExc_ValueError, "%s has the wrong type or shape", name);
        return 0;
    }
    if ((uintptr_t)view->buf % sizeof(double) != 0) {
        PyErr_Format(PyExc_ValueError, "%s is not aligned", name);
        return 0;
    }
    out->data = view->buf;
    out->sample_stride = dimensions > 0 ? view->strides[0] / (Py_ssize_t)sizeof(double) : 0;
    out->joint_stride = dimensions > 1 ? view->strides[1] / (Py_ssize_t)sizeof(double) : 0;
    return 1;
}

/* The robot as (revolute bytes, rotations (n,3,3), translations (n,3), inertials (n,10), rotors (n,), gravity (3,)),
 * all C-contiguous. */
static int borrow_chain(PyObject *tuple, chain *robot, borrowed *arrays)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 6) {
        PyErr_SetString(PyExc_TypeError, "chain must be a tuple of six");
        return 0;
    }
    char *revolute;
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, 0), &revolute, &robot->dof) != 0)
        return 0;
    if (robot->dof < 1) {
        PyErr_SetString(PyExc_ValueError, "a chain needs a joint");
        return 0;
    }
    robot->revolute = (const unsigned char *)revolute;
    Py_ssize_t n = robot->dof;
    const Py_ssize_t sizes[5] = {9 * n, 3 * n, 10 * n, n, 3};
    const double **targets[5] = {&robot->rotations, &robot->translations, &robot->inertials, &robot->rotors,
                                 &robot->gravity};
    for (int k = 0; k < 5; k++) {
        Py_buffer *view = &arrays[k].view;
        if (PyObject_GetBuffer(PyTuple_GetItem(tuple, k + 1), view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
            return 0;
        arrays[k].held = 1;
        if (view->itemsize != sizeof(double) || view->format == NULL || strcmp(view->format, "d") != 0 ||
            view->len != sizes[k] * (Py_ssize_t)sizeof(double)) {
            PyErr_Format(PyExc_ValueError, "chain item %d has the wrong type or size", k + 1);
            return 0;
        }
        *targets[k] = view->buf;
    }
    return 1;
}

static int borrow_states(const chain *robot, PyObject *q, PyObject *qd, PyObject *qdd, states *in, borrowed *arrays)
{
    PyObject *objects[3] = {q, qd, qdd};
    series *targets[3] = {&in->q, &in->qd, &in->qdd};
    const char *names[3] = {"q", "qd", "qdd"};
    Py_ssize_t shape[2] = {PyObject_Length(q), robot->dof};
    if (shape[0] < 0)
        return 0;
    in->samples = shape[0];
    for (int k = 0; k < 3; k++) {
        memset(targets[k], 0, sizeof(series));
        if (objects[k] != Py_None && !borrow(objects[k], names[k], 2, shape, 0, &arrays[k], targets[k]))
            return 0;
    }
    return 1;
}

#define CHAIN_ARRAYS 5
#define STATE_ARRAYS 3

/* Work space for the widest lane, however large the chain. */
static void *workspace(Py_ssize_t dof, Py_ssize_t count_series)
{
    size_t bytes = ((size_t)dof * 100 * WIDEST_LANE + (size_t)count_series * TILE) * sizeof(double);
    bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
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

typedef int (*one_output)(const chain *, const states *, const series *, void *);

/* f(chain, q, qd|None, qdd|None, out (samples, columns)) for the algorithms with one output. */
static PyObject *run_one_output(PyObject *args, one_output algorithm, Py_ssize_t per_joint, int squared)
{
    PyObject *chain_object, *q, *qd, *qdd, *out_object, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &chain_object, &q, &qd, &qdd, &out_object))
        return NULL;
    borrowed arrays[CHAIN_ARRAYS + STATE_ARRAYS + 1] = {{.held = 0}};
    chain robot;
    states in;
    series out;
    if (borrow_chain(chain_object, &robot, arrays) &&
        borrow_states(&robot, q, qd, qdd, &in, arrays + CHAIN_ARRAYS)) {
        Py_ssize_t shape[2] = {in.samples, squared ? robot.dof * robot.dof : per_joint * robot.dof};
        void *memory = NULL;
        if (borrow(out_object, "out", 2, shape, 1, &arrays[CHAIN_ARRAYS + STATE_ARRAYS], &out) &&
            (memory = workspace(robot.dof, 0)) != NULL) {
            int finite;
            Py_BEGIN_ALLOW_THREADS
            finite = algorithm(&robot, &in, &out, memory);
            Py_END_ALLOW_THREADS
            discard(memory);
            result = PyBool_FromLong(finite);
        }
    }
    give_back(arrays, CHAIN_ARRAYS + STATE_ARRAYS + 1);
    return result;
}

static PyObject *inverse_dynamics(PyObject *self, PyObject *args)
{
    (void)self;
    return run_one_output(args, active->inverse_dynamics, 1, 0);
}

static PyObject *kinematics(PyObject *self, PyObject *args)
{
    (void)self;
    return run_one_output(args, active->kinematics, 12, 0);
}

static PyObject *mass_matrix(PyObject *self, PyObject *args)
{
    (void)self;
    return run_one_output(args, active->mass_matrix, 0, 1);
}

typedef int (*two_arrays)(const chain *, const states *, const series *, const series *, void *);

/* f(chain, q, qd|None, first (samples, columns), second (samples, columns)); the first is read or written. */
static PyObject *run_two_arrays(PyObject *args, two_arrays algorithm, Py_ssize_t per_joint, int write_first)
{
    PyObject *chain_object, *q, *qd, *first_object, *second_object, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &chain_object, &q, &qd, &first_object, &second_object))
        return NULL;
    borrowed arrays[CHAIN_ARRAYS + STATE_ARRAYS + 2] = {{.held = 0}};
    chain robot;
    states in;
    series first, second;
    if (borrow_chain(chain_object, &robot, arrays) &&
        borrow_states(&robot, q, qd, Py_None, &in, arrays + CHAIN_ARRAYS)) {
        Py_ssize_t shape[2] = {in.samples, per_joint * robot.dof};
        borrowed *own = arrays + CHAIN_ARRAYS + STATE_ARRAYS;
        void *memory = NULL;
        if (borrow(first_object, "first", 2, shape, write_first, &own[0], &first) &&
            borrow(second_object, "second", 2, shape, 1, &own[1], &second) &&
            (memory = workspace(robot.dof, 0)) != NULL) {
            int finite;
            Py_BEGIN_ALLOW_THREADS
            finite = algorithm(&robot, &in, &first, &second, memory);
            Py_END_ALLOW_THREADS
            discard(memory);
            result = PyBool_FromLong(finite);
        }
    }
    give_back(arrays, CHAIN_ARRAYS + STATE_ARRAYS + 2);
    return result;
}

static PyObject *forward_dynamics(PyObject *self, PyObject *args)
{
    (void)self;
    return run_two_arrays(args, active->forward_dynamics, 1, 0);
}

static PyObject *energy_regressors(PyObject *self, PyObject *args)
{
    (void)self;
    return run_two_arrays(args, active->energy_regressors, 10, 1);
}

/* regressor(chain, q, qd|None, qdd|None, places (bytes of int32, n n 10), out (samples, series)) */
static PyObject *regressor(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *chain_object, *q, *qd, *qdd, *out_object, *result = NULL;
    const char *place_bytes;
    Py_ssize_t place_length;
    if (!PyArg_ParseTuple(args, "OOOOy#O", &chain_object, &q, &qd, &qdd, &place_bytes, &place_length, &out_object))
        return NULL;
    borrowed arrays[CHAIN_ARRAYS + STATE_ARRAYS + 1] = {{.held = 0}};
    chain robot;
    states in;
    series out;
    if (borrow_chain(chain_object, &robot, arrays) &&
        borrow_states(&robot, q, qd, qdd, &in, arrays + CHAIN_ARRAYS)) {
        Py_ssize_t count_places = robot.dof * robot.dof * 10, count_series = 0;
        const int32_t *places = (const int32_t *)place_bytes;
        void *memory = NULL;
        if (place_length != count_places * (Py_ssize_t)sizeof(int32_t)) {
            PyErr_SetString(PyExc_ValueError, "places has the wrong size");
        } else {
            for (Py_ssize_t k = 0; k < count_places; k++)
                if (places[k] >= count_series)
                    count_series = (Py_ssize_t)places[k] + 1;
            Py_ssize_t shape[2] = {in.samples, count_series};
            if (borrow(out_object, "out", 2, shape, 1, &arrays[CHAIN_ARRAYS + STATE_ARRAYS], &out) &&
                (memory = workspace(robot.dof, count_series)) != NULL) {
                int finite;
                Py_BEGIN_ALLOW_THREADS
                finite = active->regressor(&robot, &in, places, count_series, &out, memory);
                Py_END_ALLOW_THREADS
                discard(memory);
                result = PyBool_FromLong(finite);
            }
        }
    }
    give_back(arrays, CHAIN_ARRAYS + STATE_ARRAYS + 1);
    return result;
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
extern PyMethodDef PLANT_METHODS[];  /* plant.c */
extern PyMethodDef HYSTERESIS_METHODS[]; /* hysteresis.c */

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_native", "Native kernels of Jointwise.", -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    for (int k = KERNEL_COUNT - 1; k >= 0; k--)
        if (supported(k)) {
            active = &KERNELS[k];
            break;
        }
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && PyModule_AddFunctions(module, SIGNAL_METHODS) != 0)
        Py_CLEAR(module);
    if (module != NULL && PyModule_AddFunctions(module, PLANT_METHODS) != 0)
        Py_CLEAR(module);
    if (module != NULL && PyModule_AddFunctions(module, HYSTERESIS_METHODS) != 0)
        Py_CLEAR(module);
    return module;
}
