/* The affine control law, u = u_ff - Kp (q - q_d) - Kd (qd - qd_d) - Kθ (θ - θ_d) - Kω (w - w_d) - Ki ∫ + g(q): for the digital
 * robot and for controllers that are stepped one period at a time. NumPy reference: control/controller.py.
 */
#ifndef JOINTWISE_CONTROL_H
#define JOINTWISE_CONTROL_H

#include "arguments.h"
#include "compiler.h"

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
    const double *shares;         /* C^-T, (n, n): of its gravity in the torques of coupled motors; NULL without coupling */
    const double *counts;         /* (2, n) rad of a count of the encoders of links and rotors, or NULL: the states */
} controller;

INLINED void feed_back(const gain *K, Py_ssize_t k, Py_ssize_t n, const double *error, double *u)
{
    if (K->data == NULL)
        return;
    const double *at = K->data + k * K->stride;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!K->full) {
            u[i] -= at[i] * error[i];
            continue;
        }
        for (Py_ssize_t j = 0; j < n; j++)
            u[i] -= at[i * n + j] * error[j];
    }
}

/* Adds the law of period k without gravity to u: actual q, qd, theta and w, (n) each; the integral moves on by a period;
 * `error` is scratch, (n). What is measured and not finite is not fed back. */
INLINED void add_law(const controller *law, Py_ssize_t k, Py_ssize_t n, double period, const double *const *actual,
                     double *integral, double *error, double *u)
{
    for (Py_ssize_t j = 0; law->feed_forward != NULL && j < n; j++)
        u[j] += law->feed_forward[k * n + j];
    for (int c = 0; c < 4; c++) {
        if (law->reference[c] == NULL)
            continue;
        for (Py_ssize_t j = 0; j < n; j++) {
            double e = actual[c][j] - law->reference[c][k * n + j];
            error[j] = e - e == 0.0 ? e : 0.0;
        }
        feed_back(&law->gains[c], k, n, error, u);
        if (c == 0 && law->gains[4].data != NULL) {
            feed_back(&law->gains[4], k, n, integral, u);
            for (Py_ssize_t j = 0; j < n; j++)
                integral[j] += period * error[j];
        }
    }
}

static inline int same_dof(const chain *robot, Py_ssize_t dof)
{
    if (robot->dof == dof)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the controller's robot has another number of joints");
    return 0;
}

/* (feed_forward, q, qd, theta, w, Kp, Kd, Ktheta, Kw, Ki, chain, shares of its gravity), each may be None; gains are n, n²
 * or periods n² numbers, shares n². */
static inline int parse_controller(PyObject *tuple, Py_ssize_t periods, Py_ssize_t n, lent *held, controller *feedback,
                                   chain *model)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 12) {
        PyErr_SetString(PyExc_TypeError, "controller must be a tuple of twelve");
        return 0;
    }
    const double **rows[5] = {&feedback->feed_forward, &feedback->reference[0], &feedback->reference[1],
                              &feedback->reference[2], &feedback->reference[3]};
    for (int k = 0; k < 5; k++)
        if (!numbers(PyTuple_GetItem(tuple, k), "reference", times(periods, n), 1, held, rows[k]))
            return 0;
    for (int k = 0; k < 5; k++) {
        gain *K = &feedback->gains[k];
        Py_ssize_t length, square = times(n, n);
        if (!any_numbers(PyTuple_GetItem(tuple, 5 + k), "gains", 1, held, &K->data, &length))
            return 0;
        if (K->data == NULL)
            continue;
        K->full = length != n;
        K->stride = length == n || length == square ? 0 : square;
        if (length != n && length != square && length != times(periods, square)) {
            PyErr_SetString(PyExc_ValueError, "gains have the wrong size");
            return 0;
        }
    }
    PyObject *chain_object = PyTuple_GetItem(tuple, 10);
    if (!numbers(PyTuple_GetItem(tuple, 11), "shares", times(n, n), 1, held, &feedback->shares))
        return 0;
    if (chain_object == Py_None)
        return 1;
    feedback->model = model;
    return borrow_chain(chain_object, model, held) && same_dof(model, n);
}

#endif
