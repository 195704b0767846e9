/* Arguments from Python: every array is checked here, so that a wrong call raises and never crashes.
 *
 * An array is of float64 (native byte order), aligned, writable where it is written to, and has exactly the expected
 * size. Sizes are multiplied and added by `times` and `plus`, which do not wrap.
 */
#ifndef JOINTWISE_ARGUMENTS_H
#define JOINTWISE_ARGUMENTS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* -- sizes -- */

/* More numbers than memory can hold. What is made of it by `times` and `plus` is it again; no array has this size. */
#define TOO_MANY ((Py_ssize_t)-1)
#define MOST_NUMBERS (PY_SSIZE_T_MAX / (Py_ssize_t)sizeof(double))

static inline Py_ssize_t times(Py_ssize_t a, Py_ssize_t b)
{
    return a < 0 || b < 0 || (b > 0 && a > MOST_NUMBERS / b) ? TOO_MANY : a * b;
}

static inline Py_ssize_t plus(Py_ssize_t a, Py_ssize_t b)
{
    return a < 0 || b < 0 || b > MOST_NUMBERS || a > MOST_NUMBERS - b ? TOO_MANY : a + b;
}

/* -- arrays -- */

#define MOST_BUFFERS 32 /* of one call */

/* Arrays borrowed from Python; none at first (count = 0), given back together. */
typedef struct {
    Py_buffer views[MOST_BUFFERS];
    int count;
} lent;

static inline void give_back(lent *held)
{
    while (held->count > 0)
        PyBuffer_Release(&held->views[--held->count]);
}

/* Borrows an aligned float64 array in the layout of `flags`, or sets an error and returns NULL. */
static inline const Py_buffer *borrow(PyObject *object, const char *name, int flags, lent *held)
{
    if (held->count == MOST_BUFFERS) {
        PyErr_SetString(PyExc_SystemError, "a call has too many arrays");
        return NULL;
    }
    Py_buffer *view = &held->views[held->count];
    if (PyObject_GetBuffer(object, view, flags | PyBUF_FORMAT) != 0)
        return NULL;
    held->count++;
    if (view->itemsize == (Py_ssize_t)sizeof(double) && view->format != NULL && strcmp(view->format, "d") == 0 &&
        (uintptr_t)view->buf % sizeof(double) == 0)
        return view;
    PyErr_Format(PyExc_ValueError, "%s must be an aligned float64 array", name);
    return NULL;
}

static inline const Py_buffer *borrow_flat(PyObject *object, const char *name, Py_ssize_t size, int flags, lent *held)
{
    const Py_buffer *view = borrow(object, name, PyBUF_C_CONTIGUOUS | flags, held);
    if (view == NULL || (size >= 0 && size <= MOST_NUMBERS && view->len == size * (Py_ssize_t)sizeof(double)))
        return view;
    if (size < 0)
        PyErr_Format(PyExc_ValueError, "%s needs more numbers than memory can hold", name);
    else
        PyErr_Format(PyExc_ValueError, "%s must be %zd numbers. Got %zd instead", name, size,
                     view->len / (Py_ssize_t)sizeof(double));
    return NULL;
}

/* A contiguous array of `size` numbers to read; None gives NULL where it `may_miss`. */
static inline int numbers(PyObject *object, const char *name, Py_ssize_t size, int may_miss, lent *held,
                          const double **out)
{
    *out = NULL;
    if (may_miss && object == Py_None)
        return 1;
    const Py_buffer *view = borrow_flat(object, name, size, 0, held);
    if (view != NULL)
        *out = view->buf;
    return view != NULL;
}

/* The same to write. */
static inline int outputs(PyObject *object, const char *name, Py_ssize_t size, int may_miss, lent *held, double **out)
{
    *out = NULL;
    if (may_miss && object == Py_None)
        return 1;
    const Py_buffer *view = borrow_flat(object, name, size, PyBUF_WRITABLE, held);
    if (view != NULL)
        *out = view->buf;
    return view != NULL;
}

/* A contiguous array of any number of numbers to read, which is returned; None gives NULL where it `may_miss`. */
static inline int any_numbers(PyObject *object, const char *name, int may_miss, lent *held, const double **out,
                              Py_ssize_t *size)
{
    *out = NULL, *size = 0;
    if (may_miss && object == Py_None)
        return 1;
    const Py_buffer *view = borrow(object, name, PyBUF_C_CONTIGUOUS, held);
    if (view != NULL)
        *out = view->buf, *size = view->len / (Py_ssize_t)sizeof(double);
    return view != NULL;
}

/* The same to write. */
static inline int any_outputs(PyObject *object, const char *name, lent *held, double **out, Py_ssize_t *size)
{
    *out = NULL, *size = 0;
    const Py_buffer *view = borrow(object, name, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, held);
    if (view != NULL)
        *out = view->buf, *size = view->len / (Py_ssize_t)sizeof(double);
    return view != NULL;
}

/* The arrays of a tuple, `size` numbers each. */
static inline int take_arrays(PyObject *tuple, const char *name, int count, Py_ssize_t size, lent *held,
                              const double **out)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of %d", name, count);
        return 0;
    }
    for (int k = 0; k < count; k++)
        if (!numbers(PyTuple_GetItem(tuple, k), name, size, 0, held, &out[k]))
            return 0;
    return 1;
}

/* Element (sample, joint) of a user's array, or a constant zero where data is NULL. Strides count doubles. */
typedef struct {
    double *data;
    Py_ssize_t sample_stride, joint_stride;
} series;

/* An array (samples, columns) of any strides. */
static inline int table(PyObject *object, const char *name, Py_ssize_t samples, Py_ssize_t columns, int writable,
                        lent *held, series *out)
{
    const Py_ssize_t size = sizeof(double);
    const Py_buffer *view = borrow(object, name, PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0), held);
    if (view == NULL)
        return 0;
    if (times(samples, columns) < 0 || view->ndim != 2 || view->shape[0] != samples || view->shape[1] != columns ||
        view->strides[0] % size != 0 || view->strides[1] % size != 0) {
        PyErr_Format(PyExc_ValueError, "%s must be of shape (%zd, %zd)", name, samples, columns);
        return 0;
    }
    *out = (series){view->buf, view->strides[0] / size, view->strides[1] / size};
    return 1;
}

/* -- the robot -- */

typedef struct {
    Py_ssize_t dof;
    const double *rotations, *translations, *inertials, *rotors, *gravity;
    const unsigned char *revolute;
} chain;

/* The robot as (revolute bytes, rotations (n,3,3), translations (n,3), inertials (n,10), rotors (n,), gravity (3,)),
 * all C-contiguous. */
static inline int borrow_chain(PyObject *tuple, chain *robot, lent *held)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 6) {
        PyErr_SetString(PyExc_TypeError, "chain must be a tuple of six");
        return 0;
    }
    char *revolute;
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, 0), &revolute, &robot->dof) != 0)
        return 0;
    Py_ssize_t n = robot->dof;
    if (n < 1) {
        PyErr_SetString(PyExc_ValueError, "a chain needs a joint");
        return 0;
    }
    robot->revolute = (const unsigned char *)revolute;
    static const char *const names[5] = {"rotations", "translations", "inertials", "rotors", "gravity"};
    const Py_ssize_t sizes[5] = {times(9, n), times(3, n), times(10, n), n, 3};
    const double **targets[5] = {&robot->rotations, &robot->translations, &robot->inertials, &robot->rotors,
                                 &robot->gravity};
    for (int k = 0; k < 5; k++)
        if (!numbers(PyTuple_GetItem(tuple, k + 1), names[k], sizes[k], 0, held, targets[k]))
            return 0;
    return 1;
}

#endif
