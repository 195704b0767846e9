/* Normal equations of small dense problems with non-negative unknowns. Reference: `pivoted` of
 * `estimation/bounded.py`.
 */
#include "arguments.h"
#include "compiler.h"
#include <math.h>
#include <stdlib.h>

#define WIDTH 4        /* partial sums of a scalar product: enough for the compiler to use vectors */
#define FULL_EXCHANGES 3 /* exchanges of all infeasible unknowns without progress before single ones (Kim and Park) */
#define TINY 1e-13     /* unknowns and gradients above minus this part of the largest right side count as feasible */

INLINED double scalar_product(const double *a, const double *b, Py_ssize_t n)
{
    double sums[WIDTH] = {0};
    Py_ssize_t k = 0;
    for (; k + WIDTH <= n; k += WIDTH)
        for (int i = 0; i < WIDTH; i++)
            sums[i] += a[k + i] * b[k + i];
    double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

typedef struct {
    Py_ssize_t n;
    const double *H, *f;
    double *x;
    char *passive;      /* which unknowns may differ from zero */
    Py_ssize_t *chosen; /* their indices */
    double *L, *u;      /* Cholesky factor of their block, and the solution */
} nnls_work;

/* Solves the block of the passive unknowns by Cholesky; returns 0 if it is not positive definite. */
WIDE static int solve_passive(const nnls_work *w, Py_ssize_t count)
{
    const Py_ssize_t n = w->n;
    for (Py_ssize_t i = 0; i < count; i++) {
        const double *row = w->H + w->chosen[i] * n;
        double *Li = w->L + i * n;
        for (Py_ssize_t j = 0; j < i; j++)
            Li[j] = (row[w->chosen[j]] - scalar_product(Li, w->L + j * n, j)) / w->L[j * n + j];
        const double pivot = row[w->chosen[i]] - scalar_product(Li, Li, i);
        if (!(pivot > 0.0))
            return 0;
        Li[i] = sqrt(pivot);
        w->u[i] = (w->f[w->chosen[i]] - scalar_product(Li, w->u, i)) / Li[i];
    }
    for (Py_ssize_t i = count - 1; i >= 0; i--) {
        w->u[i] /= w->L[i * n + i];
        for (Py_ssize_t j = 0; j < i; j++)
            w->u[j] -= w->L[i * n + j] * w->u[i];
    }
    return 1;
}

/* Solves for the passive unknowns, marks all infeasible ones (negative x, negative gradient) and returns their number,
 * -1 if the matrix is not positive definite. */
WIDE static Py_ssize_t find_infeasible(const nnls_work *w, double limit, char *infeasible)
{
    const Py_ssize_t n = w->n;
    Py_ssize_t count = 0, found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (w->passive[i])
            w->chosen[count++] = i;
    if (!solve_passive(w, count))
        return -1;
    memset(w->x, 0, (size_t)n * sizeof(double));
    for (Py_ssize_t i = 0; i < count; i++)
        w->x[w->chosen[i]] = w->u[i];
    for (Py_ssize_t i = 0; i < n; i++) {
        const double size = w->passive[i] ? w->x[i] : scalar_product(w->H + i * n, w->x, n) - w->f[i];
        infeasible[i] = size < -limit;
        found += infeasible[i];
    }
    return found;
}

/* Block principal pivoting; returns the number of exchanges, -1 if it does not end. */
static Py_ssize_t run_nnls(const nnls_work *w, char *infeasible)
{
    const Py_ssize_t n = w->n, most = 20 + 5 * n;
    double limit = 0.0;
    for (Py_ssize_t i = 0; i < n; i++)
        limit = fmax(limit, TINY * fabs(w->f[i]));
    Py_ssize_t least = n + 1, left = FULL_EXCHANGES;
    for (Py_ssize_t pass = 0; pass < most; pass++) {
        const Py_ssize_t found = find_infeasible(w, limit, infeasible);
        if (found <= 0)
            return found < 0 ? -1 : pass;
        int all = 1;
        if (found < least)
            least = found, left = FULL_EXCHANGES;
        else if (left > 0)
            left--;
        else
            all = 0;
        for (Py_ssize_t i = n - 1; i >= 0; i--)
            if (infeasible[i]) {
                w->passive[i] = !w->passive[i];
                if (!all)
                    break;
            }
    }
    return -1;
}

/* nnls(H (n, n), f (n,), x (n,)) -> exchanges: x >= 0 that minimises x' H x / 2 - f' x, from the unknowns above zero in
 * x as a first guess; -1 if it fails. */
static PyObject *nnls(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[3], *result = NULL;
    nnls_work w;
    if (!PyArg_ParseTuple(args, "OOO", &o[0], &o[1], &o[2]))
        return NULL;
    lent held;
    held.count = 0;
    if (any_numbers(o[1], "f", 0, &held, &w.f, &w.n) && numbers(o[0], "H", times(w.n, w.n), 0, &held, &w.H) &&
        outputs(o[2], "x", w.n, 0, &held, &w.x)) {
        const size_t n = (size_t)w.n;
        double *memory = malloc((n * n + n + 1) * sizeof(double));
        Py_ssize_t *indices = malloc((n + 1) * sizeof(Py_ssize_t));
        char *flags = calloc(2 * n + 1, 1);
        if (memory == NULL || indices == NULL || flags == NULL) {
            PyErr_NoMemory();
        } else {
            w.L = memory, w.u = memory + n * n, w.chosen = indices, w.passive = flags;
            for (size_t i = 0; i < n; i++)
                w.passive[i] = w.x[i] > 0.0;
            Py_ssize_t exchanges;
            Py_BEGIN_ALLOW_THREADS
            exchanges = run_nnls(&w, flags + n);
            Py_END_ALLOW_THREADS
            result = PyLong_FromSsize_t(exchanges);
        }
        free(memory), free(indices), free(flags);
    }
    give_back(&held);
    return result;
}

PyMethodDef LINEAR_METHODS[] = {
    {"nnls", nnls, METH_VARARGS, "(H, f, x): x >= 0 that minimises x' H x / 2 - f' x; returns the exchanges"},
    {NULL, NULL, 0, NULL},
};
