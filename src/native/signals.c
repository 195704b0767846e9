/* Loops over samples that NumPy cannot batch: slip elements (a recursion) and filtering with decimation.
 * NumPy twins: model/terms/slip.py and data/filters.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define WIDE
#endif

static int vector(PyObject *object, const char *name, int writable, Py_buffer *view)
{
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) != 0)
        return 0;
    if (view->itemsize == sizeof(double) && view->format != NULL && strcmp(view->format, "d") == 0)
        return 1;
    PyBuffer_Release(view);
    PyErr_Format(PyExc_ValueError, "%s must be a contiguous float64 array", name);
    return 0;
}

/* delta <- clip(decay * delta + dx, -D, D); out = delta / D, element by element side by side. */
WIDE static void run_slip(const double *x, Py_ssize_t samples, const double *limits, Py_ssize_t elements, double decay,
                          double *delta, double *last, double *out)
{
    double before = *last;
    for (Py_ssize_t k = 0; k < samples; k++) {
        double dx = x[k] - before;
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            double s = decay * delta[i] + dx;
            s = s > limits[i] ? limits[i] : s;
            s = s < -limits[i] ? -limits[i] : s;
            delta[i] = s;
            out[k * elements + i] = s / limits[i];
        }
    }
    *last = before;
}

/* slip(x (samples,), limits (elements,), decay, state (elements + 1,), out (samples, elements)); the state is the
 * deformations and the last position, updated. */
static PyObject *slip(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[4];
    double decay;
    if (!PyArg_ParseTuple(args, "OOdOO", &objects[0], &objects[1], &decay, &objects[2], &objects[3]))
        return NULL;
    static const char *const names[4] = {"x", "limits", "state", "out"};
    Py_buffer views[4];
    int held = 0;
    while (held < 4 && vector(objects[held], names[held], held >= 2, &views[held]))
        held++;
    PyObject *result = NULL;
    if (held == 4) {
        const Py_ssize_t size = sizeof(double);
        Py_ssize_t samples = views[0].len / size, elements = views[1].len / size;
        if (views[2].len / size != elements + 1 || views[3].len / size != samples * elements) {
            PyErr_SetString(PyExc_ValueError, "state must have elements + 1 entries and out (samples, elements)");
        } else {
            double *state = views[2].buf;
            Py_BEGIN_ALLOW_THREADS
            run_slip(views[0].buf, samples, views[1].buf, elements, decay, state, state + elements, views[3].buf);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    while (held > 0)
        PyBuffer_Release(&views[--held]);
    return result;
}

#define WIDTH 8 /* partial sums: enough for the compiler to use any vector width */

WIDE static void run_decimate(const double *x, const double *taps, Py_ssize_t length, Py_ssize_t step, double *out,
                              Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++, x += step) {
        double sums[WIDTH] = {0};
        Py_ssize_t l = 0;
        for (; l + WIDTH <= length; l += WIDTH)
            for (int i = 0; i < WIDTH; i++)
                sums[i] += taps[l + i] * x[l + i];
        double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        for (; l < length; l++)
            sum += taps[l] * x[l];
        out[k] = sum;
    }
}

/* decimate(x (samples,), taps (length,), step, out (count,)): out[k] = sum_l taps[l] x[k step + l] */
static PyObject *decimate(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[3];
    Py_ssize_t step;
    if (!PyArg_ParseTuple(args, "OOnO", &objects[0], &objects[1], &step, &objects[2]))
        return NULL;
    static const char *const names[3] = {"x", "taps", "out"};
    Py_buffer views[3];
    int held = 0;
    while (held < 3 && vector(objects[held], names[held], held == 2, &views[held]))
        held++;
    PyObject *result = NULL;
    if (held == 3) {
        const Py_ssize_t size = sizeof(double);
        Py_ssize_t samples = views[0].len / size, length = views[1].len / size, count = views[2].len / size;
        if (step < 1 || length < 1 || (count > 0 && (count - 1) > (samples - length) / step) || samples < length) {
            PyErr_SetString(PyExc_ValueError, "x is too short for that many outputs");
        } else {
            Py_BEGIN_ALLOW_THREADS
            run_decimate(views[0].buf, views[1].buf, length, step, views[2].buf, count);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    while (held > 0)
        PyBuffer_Release(&views[--held]);
    return result;
}

/* leaky_sum(x (samples,), decay): x[k] += decay * x[k - 1], in place */
static PyObject *leaky_sum(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object;
    double decay;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "Od", &object, &decay) || !vector(object, "x", 1, &view))
        return NULL;
    double *x = view.buf;
    Py_ssize_t samples = view.len / (Py_ssize_t)sizeof(double);
    for (Py_ssize_t k = 1; k < samples; k++)
        x[k] += decay * x[k - 1];
    PyBuffer_Release(&view);
    return Py_NewRef(Py_None);
}

PyMethodDef SIGNAL_METHODS[] = {
    {"slip", slip, METH_VARARGS, "(x, limits, decay, state, out): slip elements, the state is updated"},
    {"decimate", decimate, METH_VARARGS, "(x, taps, step, out): filter and keep every step-th sample"},
    {"leaky_sum", leaky_sum, METH_VARARGS, "(x, decay): x[k] += decay x[k-1], in place"},
    {NULL, NULL, 0, NULL},
};
