/* Friction with memory along a path: Maxwell-slip elements, their rate-dependent form, and the bristle of LuGre.
 * NumPy twins: joint/hysteresis/recursion.py.
 */
#include "arguments.h"
#include "compiler.h"
#include <math.h>

/* s = delta + dx; delta = sgn(s) min(|s|, b D); out = delta / (b D). */
WIDE static void run_maxwell(const double *x, const double *scale, Py_ssize_t samples, const double *limits,
                             Py_ssize_t elements, double *delta, double *last, double *out)
{
    double before = *last;
    for (Py_ssize_t k = 0; k < samples; k++, out += elements) {
        double dx = x[k] - before, b = scale ? scale[k] : 1.0, inverse = 1.0 / b;
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            double limit = b * limits[i], s = delta[i] + dx;
            s = s > limit ? limit : s;
            s = s < -limit ? -limit : s;
            delta[i] = s;
            out[i] = s * inverse;
        }
    }
    *last = before;
}

/* The same with the slope of out along log D: d(delta)/dD is the sign of the last slip times b, kept while sticking. */
WIDE static void run_maxwell_slopes(const double *x, const double *scale, Py_ssize_t samples, const double *limits,
                                    Py_ssize_t elements, double *delta, double *last, double *out, double *slopes)
{
    double before = *last, *side = delta + elements;
    for (Py_ssize_t k = 0; k < samples; k++, out += elements, slopes += elements) {
        double dx = x[k] - before, b = scale ? scale[k] : 1.0, inverse = 1.0 / b;
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            double limit = b * limits[i], s = delta[i] + dx, way = side[i];
            way = s > limit ? b : way;
            s = s > limit ? limit : s;
            way = s < -limit ? -b : way;
            s = s < -limit ? -limit : s;
            delta[i] = s;
            side[i] = way;
            out[i] = s * inverse;
            slopes[i] = way * inverse * limits[i] - s * inverse;
        }
    }
    *last = before;
}

static void divide(double *values, const double *limits, Py_ssize_t samples, Py_ssize_t elements)
{
    for (Py_ssize_t k = 0; k < samples; k++, values += elements)
        for (Py_ssize_t i = 0; i < elements; i++)
            values[i] *= limits[i];
}

/* maxwell(x (samples,), scale (samples,) | None, limits (elements,), state (2 elements + 1,), out (samples, elements),
 * slopes (samples, elements) | None): the state is deformations, their derivatives by D and the last position. */
static PyObject *maxwell(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4], &objects[5]))
        return NULL;
    Py_ssize_t n = PyObject_Length(objects[0]), m = PyObject_Length(objects[2]);
    if (n < 0 || m < 0)
        return NULL;
    if (m < 1 || m > 4096) {
        PyErr_SetString(PyExc_ValueError, "limits must be 1 to 4096 numbers");
        return NULL;
    }
    lent held;
    held.count = 0;
    const double *x, *scale, *limits;
    double *state, *out, *slopes, inverse[4096];
    if (numbers(objects[0], "x", n, 0, &held, &x) && numbers(objects[1], "scale", n, 1, &held, &scale) &&
        numbers(objects[2], "limits", m, 0, &held, &limits) &&
        outputs(objects[3], "state", plus(times(2, m), 1), 0, &held, &state) &&
        outputs(objects[4], "out", times(n, m), 0, &held, &out) &&
        outputs(objects[5], "slopes", times(n, m), 1, &held, &slopes)) {
        for (Py_ssize_t i = 0; i < m; i++)
            inverse[i] = 1.0 / limits[i];
        Py_BEGIN_ALLOW_THREADS
        if (slopes) {
            run_maxwell_slopes(x, scale, n, limits, m, state, state + 2 * m, out, slopes);
            divide(slopes, inverse, n, m);
        } else {
            run_maxwell(x, scale, n, limits, m, state, state + 2 * m, out);
        }
        divide(out, inverse, n, m);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

#define ROWS 64    /* samples whose columns are kept while their products are summed: they stay in the first cache */
#define LANES 8    /* partial sums: enough for the compiler to use any vector width */
#define MOST_COLUMNS 64

typedef struct {
    const double *x, *scale, *level, *limits, *forces, *shared, *others;
    Py_ssize_t samples, elements, shares, rest;
    int slopes;
    double *state, *gram;
} maxwell_sums;

/* gram += upper triangle of C^T C of columns C (columns, ROWS); rows that are not used are zero. */
WIDE static void add_products(double (*columns)[ROWS], Py_ssize_t width, double *gram)
{
    for (Py_ssize_t i = 0; i < width; i++)
        for (Py_ssize_t j = i; j < width; j++) {
            double s[LANES] = {0};
            for (int k = 0; k < ROWS; k += LANES)
                for (int l = 0; l < LANES; l++)
                    s[l] += columns[i][k + l] * columns[j][k + l];
            gram[i * width + j] += ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
        }
}

/* Elements along `count` samples into columns: level g_i, and level dg_i/dlnD_i with slopes. */
static void fill_elements(const maxwell_sums *in, Py_ssize_t first, Py_ssize_t count, double (*columns)[ROWS])
{
    Py_ssize_t m = in->elements;
    double before = in->state[2 * m], *delta = in->state, *side = in->state + m;
    for (Py_ssize_t i = 0; i < m; i++) {
        double limit0 = in->limits[i], d = delta[i], way = side[i], last = before;
        for (Py_ssize_t k = 0; k < count; k++) {
            double x = in->x[first + k], b = in->scale ? in->scale[first + k] : 1.0, limit = b * limit0;
            double s = d + (x - last);
            last = x;
            way = s > limit ? b : (s < -limit ? -b : way);
            s = s > limit ? limit : s;
            d = s < -limit ? -limit : s;
            columns[i][k] = d / limit;
            if (in->slopes)
                columns[m + i][k] = way / b - columns[i][k];
        }
        delta[i] = d;
        side[i] = way;
    }
    in->state[2 * m] = in->x[first + count - 1];
}

static void fill_rest(const maxwell_sums *in, Py_ssize_t first, Py_ssize_t count, double (*columns)[ROWS])
{
    Py_ssize_t m = in->elements, leveled = in->slopes ? 2 * m : m;
    for (Py_ssize_t k = 0; k < count && in->shares > 0; k++) {
        double sum = 0.0;
        for (Py_ssize_t i = 0; i < m; i++)
            sum += in->forces[i] * columns[i][k];
        for (Py_ssize_t j = 0; j < in->shares; j++)
            columns[leveled + j][k] = in->shared[(first + k) * in->shares + j] * sum;
    }
    if (in->level)
        for (Py_ssize_t i = 0; i < leveled; i++)
            for (Py_ssize_t k = 0; k < count; k++)
                columns[i][k] *= in->level[first + k];
    for (Py_ssize_t j = 0; j < in->rest; j++)
        for (Py_ssize_t k = 0; k < count; k++)
            columns[leveled + in->shares + j][k] = in->others[(first + k) * in->rest + j];
}

static void run_maxwell_sums(const maxwell_sums *in)
{
    double columns[MOST_COLUMNS][ROWS];
    Py_ssize_t width = (in->slopes ? 2 : 1) * in->elements + in->shares + in->rest;
    for (Py_ssize_t first = 0; first < in->samples; first += ROWS) {
        Py_ssize_t count = in->samples - first < ROWS ? in->samples - first : ROWS;
        if (count < ROWS)
            memset(columns, 0, (size_t)width * sizeof(columns[0]));
        fill_elements(in, first, count, columns);
        fill_rest(in, first, count, columns);
        add_products(columns, width, in->gram);
    }
}

/* maxwell_gram(x (n,), scale (n,) | None, level (n,) | None, limits (m,), forces (m,), shared (n, s) | None,
 * others (n, z), slopes, s, state (2 m + 1,), gram (p, p)): adds the upper triangle of C^T C of the columns
 * [level g_i, level dg_i/dlnD_i (with slopes), shared_j sum_i forces_i g_i, others]. */
static PyObject *maxwell_gram(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[9], *result = NULL;
    int slopes;
    Py_ssize_t shares;
    if (!PyArg_ParseTuple(args, "OOOOOOOpnOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &slopes, &shares, &o[7],
                          &o[8]))
        return NULL;
    maxwell_sums in = {.samples = PyObject_Length(o[0]), .elements = PyObject_Length(o[3]), .shares = shares,
                       .slopes = slopes};
    Py_ssize_t n = in.samples, m = in.elements, size, most = MOST_COLUMNS;
    if (n < 0 || m < 0)
        return NULL;
    if (m < 1 || n < 1 || shares < 0 || m > most || shares > most || (shares > 0 && o[5] == Py_None)) {
        PyErr_SetString(PyExc_ValueError, "maxwell_gram needs samples, elements and not too many columns");
        return NULL;
    }
    lent held;
    held.count = 0;
    if (numbers(o[0], "x", n, 0, &held, &in.x) && numbers(o[1], "scale", n, 1, &held, &in.scale) &&
        numbers(o[2], "level", n, 1, &held, &in.level) && numbers(o[3], "limits", m, 0, &held, &in.limits) &&
        numbers(o[4], "forces", m, 0, &held, &in.forces) &&
        numbers(o[5], "shared", times(n, shares), 1, &held, &in.shared) &&
        any_numbers(o[6], "others", 0, &held, &in.others, &size) &&
        outputs(o[7], "state", plus(times(2, m), 1), 0, &held, &in.state)) {
        in.rest = size / n;
        Py_ssize_t width = plus((slopes ? 2 : 1) * m + shares, in.rest);
        if (size != n * in.rest || width < 0 || width > most) {
            PyErr_SetString(PyExc_ValueError, "others must have a few columns a sample");
        } else if (outputs(o[8], "gram", width * width, 0, &held, &in.gram)) {
            Py_BEGIN_ALLOW_THREADS
            run_maxwell_sums(&in);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

/* Stick: u += dx / D until |u| reaches h(w). Slip: du/dt = c (sgn w - u / h), stepped exactly, until dx turns. */
static void run_rate_maxwell(const double *x, const double *h, Py_ssize_t samples, const double *limits,
                             Py_ssize_t elements, double rate, double *u, double *last, double *out)
{
    double before = *last, *slipping = u + elements;
    for (Py_ssize_t k = 0; k < samples; k++, out += elements) {
        double dx = x[k] - before, way = dx > 0.0 ? 1.0 : (dx < 0.0 ? -1.0 : 0.0);
        double aim = way * h[k], left = exp(-rate / h[k]);
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            if (slipping[i] != 0.0 && slipping[i] == way) {
                u[i] = aim + (u[i] - aim) * left;
            } else if (way != 0.0) {
                double s = u[i] + dx / limits[i];
                int reached = way * s >= h[k];
                slipping[i] = reached ? way : 0.0;
                u[i] = reached ? aim : s;
            }
            out[i] = u[i];
        }
    }
    *last = before;
}

/* rate_maxwell(x (samples,), h (samples,), limits (elements,), rate, state (2 elements + 1,), out (samples, elements)):
 * `rate` is c times the sampling period; the state is u, the direction of slip (0: sticking) and the last position. */
static PyObject *rate_maxwell(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[5], *result = NULL;
    double rate;
    if (!PyArg_ParseTuple(args, "OOOdOO", &objects[0], &objects[1], &objects[2], &rate, &objects[3], &objects[4]))
        return NULL;
    lent held;
    held.count = 0;
    const double *x, *h, *limits;
    double *state, *out;
    Py_ssize_t n, m;
    if (any_numbers(objects[0], "x", 0, &held, &x, &n) && numbers(objects[1], "h", n, 0, &held, &h) &&
        any_numbers(objects[2], "limits", 0, &held, &limits, &m) &&
        outputs(objects[3], "state", plus(times(2, m), 1), 0, &held, &state) &&
        outputs(objects[4], "out", times(n, m), 0, &held, &out)) {
        Py_BEGIN_ALLOW_THREADS
        run_rate_maxwell(x, h, n, limits, m, rate, state, state + 2 * m, out);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* u <- a + (u - a) exp(-|dx| / (D h)), a = h sgn dx: the bristle u = s0 z / F_C, exact for the way of a sample. */
static void run_bristle(const double *x, const double *h, Py_ssize_t samples, double length, double *state, double *out)
{
    double u = state[0], before = state[1];
    for (Py_ssize_t k = 0; k < samples; k++) {
        double dx = x[k] - before, aim = dx < 0.0 ? -h[k] : h[k];
        before = x[k];
        u = aim + (u - aim) * exp(-fabs(dx) / (length * h[k]));
        out[k] = u;
    }
    state[0] = u;
    state[1] = before;
}

/* bristle(x (samples,), h (samples,), length, state (2,), out (samples,)): the state is u and the last position. */
static PyObject *bristle(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *objects[4], *result = NULL;
    double length;
    if (!PyArg_ParseTuple(args, "OOdOO", &objects[0], &objects[1], &length, &objects[2], &objects[3]))
        return NULL;
    Py_ssize_t n;
    lent held;
    held.count = 0;
    const double *x, *h;
    double *state, *out;
    if (any_numbers(objects[0], "x", 0, &held, &x, &n) && numbers(objects[1], "h", n, 0, &held, &h) &&
        outputs(objects[2], "state", 2, 0, &held, &state) && outputs(objects[3], "out", n, 0, &held, &out)) {
        Py_BEGIN_ALLOW_THREADS
        run_bristle(x, h, n, length, state, out);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

PyMethodDef HYSTERESIS_METHODS[] = {
    {"maxwell", maxwell, METH_VARARGS, "(x, scale, limits, state, out, slopes): slip elements, the state is updated"},
    {"maxwell_gram", maxwell_gram, METH_VARARGS,
     "(x, scale, level, limits, forces, shared, others, slopes, shares, state, gram): adds their normal equations"},
    {"rate_maxwell", rate_maxwell, METH_VARARGS, "(x, h, limits, rate, state, out): rate-dependent slip elements"},
    {"bristle", bristle, METH_VARARGS, "(x, h, length, state, out): the bristle of LuGre"},
    {NULL, NULL, 0, NULL},
};
