/* Friction with memory along a path: Maxwell-slip elements, their rate-dependent form, and the bristles of LuGre. The laws
 * are in terms.h; NumPy references: model/terms/maxwell_slip.py, rate_slip.py and lugre.py.
 */
#include "arguments.h"
#include "compiler.h"
#include "terms.h"

/* Slip elements along a path: s = decay d + dx, d = jw_clamp(s, b D), out = d / (b D). With `slopes` also d(out)/d(ln D). */
INLINED void follow_slip(const double *x, const double *backlash, Py_ssize_t samples, const double *limits,
                         Py_ssize_t elements, double decay, double *deformation, double *slope, double *last, double *out,
                         double *slopes)
{
    double before = *last;
    for (Py_ssize_t k = 0; k < samples; k++, out += elements) {
        double move = x[k] - before, b = backlash ? backlash[k] : 1.0;
        before = x[k];
        for (Py_ssize_t i = 0; i < elements; i++) {
            double limit = b * limits[i], s = decay * deformation[i] + move;
            deformation[i] = jw_clamp(s, limit);
            out[i] = deformation[i] / limit;
            if (slopes) {
                slope[i] = jw_slip_slope(s, limit, b, slope[i]);
                slopes[k * elements + i] = slope[i] / b - out[i];
            }
        }
    }
    *last = before;
}

WIDE static void run_slip(const double *x, const double *backlash, Py_ssize_t samples, const double *limits,
                          Py_ssize_t elements, double decay, double *state, double *out)
{
    follow_slip(x, backlash, samples, limits, elements, decay, state, NULL, state + elements, out, NULL);
}

WIDE static void run_slip_slopes(const double *x, const double *backlash, Py_ssize_t samples, const double *limits,
                                 Py_ssize_t elements, double decay, double *state, double *out, double *slopes)
{
    follow_slip(x, backlash, samples, limits, elements, decay, state, state + elements, state + 2 * elements, out, slopes);
}

/* slip(x (samples,), backlash (samples,) | None, limits (elements,), decay, state, out (samples, elements),
 * slopes (samples, elements) | None): the state is the deformations, with slopes also their derivatives with respect to D,
 * and the last position; it is updated. */
static PyObject *slip(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    double decay;
    if (!PyArg_ParseTuple(args, "OOOdOOO", &o[0], &o[1], &o[2], &decay, &o[3], &o[4], &o[5]))
        return NULL;
    Py_ssize_t n = PyObject_Length(o[0]), m = PyObject_Length(o[2]);
    if (n < 0 || m < 0)
        return NULL;
    if (m < 1) {
        PyErr_SetString(PyExc_ValueError, "limits must be at least one number. Got 0 instead");
        return NULL;
    }
    lent held;
    held.count = 0;
    const double *x, *backlash, *limits;
    double *state, *out, *slopes;
    if (numbers(o[0], "x", n, 0, &held, &x) && numbers(o[1], "backlash", n, 1, &held, &backlash) &&
        numbers(o[2], "limits", m, 0, &held, &limits) && outputs(o[4], "out", times(n, m), 0, &held, &out) &&
        outputs(o[5], "slopes", times(n, m), 1, &held, &slopes) &&
        outputs(o[3], "state", plus(times(slopes ? 2 : 1, m), 1), 0, &held, &state)) {
        Py_BEGIN_ALLOW_THREADS
        if (slopes)
            run_slip_slopes(x, backlash, n, limits, m, decay, state, out, slopes);
        else
            run_slip(x, backlash, n, limits, m, decay, state, out);
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

/* Elements along `count` samples into columns: level u_i, and level du_i/dlnD_i with slopes. */
static void fill_elements(const maxwell_sums *in, Py_ssize_t first, Py_ssize_t count, double (*columns)[ROWS])
{
    Py_ssize_t m = in->elements;
    double before = in->state[2 * m], *deformation = in->state, *slope = in->state + m;
    for (Py_ssize_t i = 0; i < m; i++) {
        double d = deformation[i], side = slope[i], last = before;
        for (Py_ssize_t k = 0; k < count; k++) {
            double x = in->x[first + k], b = in->scale ? in->scale[first + k] : 1.0, limit = b * in->limits[i];
            double s = d + (x - last);
            last = x;
            d = jw_clamp(s, limit);
            side = jw_slip_slope(s, limit, b, side);
            columns[i][k] = d / limit;
            if (in->slopes)
                columns[m + i][k] = side / b - columns[i][k];
        }
        deformation[i] = d;
        slope[i] = side;
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

static void run_rate_slip(const double *x, const double *h, const double *backlash, Py_ssize_t samples,
                          const double *limits, Py_ssize_t elements, double rate, double *state, double *out)
{
    double *u = state, *slipping = state + elements, *last_b = state + 2 * elements, *last = last_b + 1;
    for (Py_ssize_t k = 0; k < samples; k++, out += elements) {
        double move = x[k] - *last, b = backlash ? backlash[k] : 1.0, remains = exp(-rate / h[k]);
        for (Py_ssize_t i = 0; i < elements; i++)
            out[i] = u[i] = jw_rate_slip_step(u[i], move, *last_b * limits[i], b * limits[i], h[k], remains, &slipping[i]);
        *last_b = b;
        *last = x[k];
    }
}

/* rate_slip(x (samples,), h (samples,), backlash (samples,) | None, limits (elements,), rate, state (2 elements + 2,),
 * out (samples, elements)): `rate` is c times the sampling period; the state is u, the direction of slip (0: sticking), the
 * last relative backlash and the last position; it is updated. */
static PyObject *rate_slip(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    double rate;
    if (!PyArg_ParseTuple(args, "OOOOdOO", &o[0], &o[1], &o[2], &o[3], &rate, &o[4], &o[5]))
        return NULL;
    lent held;
    held.count = 0;
    const double *x, *h, *backlash, *limits;
    double *state, *out;
    Py_ssize_t n, m;
    if (any_numbers(o[0], "x", 0, &held, &x, &n) && numbers(o[1], "h", n, 0, &held, &h) &&
        numbers(o[2], "backlash", n, 1, &held, &backlash) && any_numbers(o[3], "limits", 0, &held, &limits, &m) &&
        outputs(o[4], "state", plus(times(2, m), 2), 0, &held, &state) &&
        outputs(o[5], "out", times(n, m), 0, &held, &out)) {
        Py_BEGIN_ALLOW_THREADS
        run_rate_slip(x, h, backlash, n, limits, m, rate, state, out);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

static void run_lugre(const double *x, const double *h, const double *lengths, Py_ssize_t samples, double *state,
                      double *out)
{
    double u = state[0], last = state[1];
    for (Py_ssize_t k = 0; k < samples; k++) {
        out[k] = u = jw_lugre_step(u, x[k] - last, h[k], lengths[k]);
        last = x[k];
    }
    state[0] = u;
    state[1] = last;
}

/* lugre(x (samples,), h (samples,), lengths (samples,), state (2,), out (samples,)): `lengths` is b D h, rad; the state is
 * the relative deflection and the last position; it is updated. */
static PyObject *lugre(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[5], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    Py_ssize_t n;
    lent held;
    held.count = 0;
    const double *x, *h, *lengths;
    double *state, *out;
    if (any_numbers(o[0], "x", 0, &held, &x, &n) && numbers(o[1], "h", n, 0, &held, &h) &&
        numbers(o[2], "lengths", n, 0, &held, &lengths) && outputs(o[3], "state", 2, 0, &held, &state) &&
        outputs(o[4], "out", n, 0, &held, &out)) {
        Py_BEGIN_ALLOW_THREADS
        run_lugre(x, h, lengths, n, state, out);
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

PyMethodDef HYSTERESIS_METHODS[] = {
    {"slip", slip, METH_VARARGS, "(x, backlash, limits, decay, state, out, slopes): slip elements; updates the state"},
    {"maxwell_gram", maxwell_gram, METH_VARARGS,
     "(x, scale, level, limits, forces, shared, others, slopes, shares, state, gram): adds their normal equations"},
    {"rate_slip", rate_slip, METH_VARARGS, "(x, h, backlash, limits, rate, state, out): rate-dependent slip elements"},
    {"lugre", lugre, METH_VARARGS, "(x, h, lengths, state, out): the bristles of LuGre"},
    {NULL, NULL, 0, NULL},
};
