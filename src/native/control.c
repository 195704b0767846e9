/* Controllers that are stepped one period at a time. NumPy references: control/. */
#include "arguments.h" /* Python.h first */

#include "control.h"

/* affine_step(law, period, periods, rate, sample (q, qd, theta, speed), integral, torque): the law without its gravity is
 * added to the torque, the integral is updated. */
static PyObject *affine_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *result = NULL;
    Py_ssize_t period, periods, n;
    double rate, *integral, *torque;
    if (!PyArg_ParseTuple(args, "OnndOOO", &o[0], &period, &periods, &rate, &o[1], &o[2], &o[3]))
        return NULL;
    lent held = {.count = 0};
    controller law = {0};
    chain unused;
    const double *sample[4];
    if (period < 0 || period >= periods) {
        PyErr_SetString(PyExc_ValueError, "period is not one of the reference");
    } else if (any_outputs(o[2], "integral", &held, &integral, &n) && outputs(o[3], "torque", n, 0, &held, &torque) &&
               parse_controller(o[0], periods, n, &held, &law, &unused) &&
               take_arrays(o[1], "sample", 4, n, &held, sample)) {
        double *error = PyMem_Malloc((size_t)n * sizeof(double));
        if (error == NULL) {
            PyErr_NoMemory();
        } else {
            add_law(&law, period, n, 1.0 / rate, sample, integral, error, torque);
            result = Py_NewRef(Py_None);
        }
        PyMem_Free(error);
    }
    give_back(&held);
    return result;
}

PyMethodDef CONTROL_METHODS[] = {
    {"affine_step", affine_step, METH_VARARGS, "(law, period, periods, rate, sample, integral, torque)"},
    {NULL, NULL, 0, NULL},
};
