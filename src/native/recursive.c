/* Recursive least squares over samples: recursive.h in a loop. */
#include "arguments.h"
#include "recursive.h"

typedef struct {
    const double *rows, *y, *weights;
    double *state, *errors, *values;
    Py_ssize_t samples;
} rls_run;

static void run_recursive(const rls_options *o, const rls_run *in)
{
    for (Py_ssize_t k = 0; k < in->samples; k++) {
        in->errors[k] = rls_step(o, in->state, in->rows + k * o->n, in->y[k], in->weights ? in->weights[k] : 1.0);
        if (in->values)
            memcpy(in->values + k * o->n, in->state, (size_t)o->n * sizeof(double));
    }
}

/* recursive(kind, memory, threshold, period, prior (n,), floor (n,), rows (samples, n), y (samples,),
 * weights (samples,) | None, state (n + n n + 5,), errors (samples,), values (samples, n) | None): updates the state. */
static PyObject *recursive(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[8], *result = NULL;
    rls_options options;
    rls_run in;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "idddOOOOOOOO", &options.kind, &options.memory, &options.threshold, &options.period,
                          &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7]))
        return NULL;
    lent held;
    held.count = 0;
    if (any_numbers(o[0], "prior", 0, &held, &options.prior, &n) &&
        any_numbers(o[3], "y", 0, &held, &in.y, &in.samples)) {
        if (n < 1 || n > RLS_MOST) {
            PyErr_Format(PyExc_ValueError, "prior must be 1 to %d numbers. Got %zd instead", RLS_MOST, n);
        } else if (numbers(o[1], "floor", n, 0, &held, &options.floor) &&
                   numbers(o[2], "rows", times(in.samples, n), 0, &held, &in.rows) &&
                   numbers(o[4], "weights", in.samples, 1, &held, &in.weights) &&
                   outputs(o[5], "state", n + n * n + RLS_EXTRA, 0, &held, &in.state) &&
                   outputs(o[6], "errors", in.samples, 0, &held, &in.errors) &&
                   outputs(o[7], "values", times(in.samples, n), 1, &held, &in.values)) {
            options.n = (int)n;
            Py_BEGIN_ALLOW_THREADS
            run_recursive(&options, &in);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

PyMethodDef RECURSIVE_METHODS[] = {
    {"recursive", recursive, METH_VARARGS,
     "(kind, memory, threshold, period, prior, floor, rows, y, weights, state, errors, values): recursive least squares"},
    {NULL, NULL, 0, NULL},
};
