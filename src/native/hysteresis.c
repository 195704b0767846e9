/* Friction with memory along a path: Maxwell-slip elements, their rate-dependent form, and the bristle of LuGre.
 * NumPy twins: joint/hysteresis/recursion.py.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define WIDE
#endif

#define MOST_ARRAYS 9

typedef struct {
    Py_buffer views[MOST_ARRAYS];
    int held[MOST_ARRAYS];
} arrays;

static void release(arrays *all)
{
    for (int k = 0; k < MOST_ARRAYS; k++)
        if (all->held[k])
            PyBuffer_Release(&all->views[k]);
}

/* Borrows contiguous float64 arrays of given sizes (-1: any, written back); None is allowed where `optional` has a one.
 * The last `writable` ones are written to. Returns 0 and sets an error if one is something else. */
static int borrow(PyObject *const *objects, const char *const *names, Py_ssize_t *sizes, int count, int writable,
                  unsigned optional, arrays *all)
{
    memset(all->held, 0, sizeof(all->held));
    for (int k = 0; k < count; k++) {
        if (objects[k] == Py_None && (optional >> k & 1u))
            continue;
        int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (k >= count - writable ? PyBUF_WRITABLE : 0);
        Py_buffer *view = &all->views[k];
        if (PyObject_GetBuffer(objects[k], view, flags) != 0)
            return 0;
        all->held[k] = 1;
        Py_ssize_t size = view->len / (Py_ssize_t)sizeof(double);
        if (view->itemsize != sizeof(double) || view->format == NULL || strcmp(view->format, "d") != 0 ||
            (sizes[k] >= 0 && size != sizes[k])) {
            PyErr_Format(PyExc_ValueError, "%s must be a contiguous float64 array of the right size", names[k]);
            return 0;
        }
        sizes[k] = size;
    }
    return 1;
}

#define DATA(all, k) ((all).held[k] ? (double *)(all).views[k].buf : NULL)

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
    static const char *const names[6] = {"x", "scale", "limits", "state", "out", "slopes"};
    Py_ssize_t n = PyObject_Length(objects[0]), m = PyObject_Length(objects[2]);
    if (n < 0 || m < 0)
        return NULL;
    if (m < 1 || m > 4096) {
        PyErr_SetString(PyExc_ValueError, "limits must be 1 to 4096 numbers");
        return NULL;
    }
    Py_ssize_t sizes[6] = {n, n, m, 2 * m + 1, n * m, n * m};
    arrays all;
    if (borrow(objects, names, sizes, 6, 3, 1u << 1 | 1u << 5, &all)) {
        const double *x = DATA(all, 0), *scale = DATA(all, 1), *limits = DATA(all, 2);
        double *state = DATA(all, 3), *out = DATA(all, 4), *slopes = DATA(all, 5), inverse[4096];
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
    release(&all);
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
    static const char *const names[9] = {"x",      "scale",  "level", "limits", "forces",
                                         "shared", "others", "state", "gram"};
    Py_ssize_t n = PyObject_Length(o[0]), m = PyObject_Length(o[3]);
    if (n < 0 || m < 0)
        return NULL;
    if (m < 1 || n < 1 || shares < 0 || m > MOST_COLUMNS || shares > MOST_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "maxwell_gram needs samples, elements and not too many columns");
        return NULL;
    }
    Py_ssize_t sizes[9] = {n, n, n, m, m, n * shares, -1, 2 * m + 1, -1};
    arrays all;
    if (borrow(o, names, sizes, 9, 2, 1u << 1 | 1u << 2 | 1u << 5, &all)) {
        Py_ssize_t rest = sizes[6] / n, width = (slopes ? 2 : 1) * m + shares + rest;
        if (sizes[6] != n * rest || width > MOST_COLUMNS || sizes[8] != width * width || (shares > 0 && !all.held[5])) {
            PyErr_SetString(PyExc_ValueError, "others or gram have the wrong size");
        } else {
            maxwell_sums in = {DATA(all, 0), DATA(all, 1), DATA(all, 2), DATA(all, 3), DATA(all, 4), DATA(all, 5),
                               DATA(all, 6), n, m, shares, rest, slopes, DATA(all, 7), DATA(all, 8)};
            Py_BEGIN_ALLOW_THREADS
            run_maxwell_sums(&in);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    release(&all);
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
    static const char *const names[5] = {"x", "h", "limits", "state", "out"};
    Py_ssize_t n = PyObject_Length(objects[0]), m = PyObject_Length(objects[2]);
    if (n < 0 || m < 0)
        return NULL;
    Py_ssize_t sizes[5] = {n, n, m, 2 * m + 1, n * m};
    arrays all;
    if (borrow(objects, names, sizes, 5, 2, 0, &all)) {
        double *state = DATA(all, 3);
        Py_BEGIN_ALLOW_THREADS
        run_rate_maxwell(DATA(all, 0), DATA(all, 1), n, DATA(all, 2), m, rate, state, state + 2 * m, DATA(all, 4));
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release(&all);
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
    static const char *const names[4] = {"x", "h", "state", "out"};
    Py_ssize_t n = PyObject_Length(objects[0]);
    if (n < 0)
        return NULL;
    Py_ssize_t sizes[4] = {n, n, 2, n};
    arrays all;
    if (borrow(objects, names, sizes, 4, 2, 0, &all)) {
        Py_BEGIN_ALLOW_THREADS
        run_bristle(DATA(all, 0), DATA(all, 1), n, length, DATA(all, 2), DATA(all, 3));
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    release(&all);
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
