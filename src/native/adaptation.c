/* Online friction for Python: signals with one common delay, friction of slip elements along a motion, the adaptation of
 * friction parameters, all of these together, as an estimator and as a controller with adaptive feed-forward, and hand
 * guiding. The laws are in adaptation.h, friction.h and estimator.h. */
#include "arguments.h" /* Python.h first */

#include "control.h"
#include "estimator.h"

#define MOST_TAPS 100001
#define MOST_CHANNELS 100000
#define MOST_POINTS 100000

WIDE static void run_phase(const double *taps, int length, int channels, double rate, double *state, Py_ssize_t samples,
                           const double *values, double *out)
{
    for (Py_ssize_t k = 0; k < samples; k++)
        jw_phase_step(taps, length, channels, rate, state, values + k * channels, out + 3 * k * channels);
}

/* phase_steps(taps (length,), channels, rate, state, values (samples, channels), out (samples, 3, channels)): the state is
 * updated. */
static PyObject *phase_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *result = NULL;
    Py_ssize_t channels, length, size;
    double rate;
    if (!PyArg_ParseTuple(args, "OndOOO", &o[0], &channels, &rate, &o[1], &o[2], &o[3]))
        return NULL;
    if (channels < 1 || channels > MOST_CHANNELS) {
        PyErr_SetString(PyExc_ValueError, "channels are out of range");
        return NULL;
    }
    lent held = {.count = 0};
    const double *taps, *values;
    double *state, *out;
    if (any_numbers(o[0], "taps", 0, &held, &taps, &length) && any_numbers(o[2], "values", 0, &held, &values, &size) &&
        outputs(o[3], "out", times(3, size), 0, &held, &out) &&
        outputs(o[1], "state", plus(JW_PHASE_HEAD, times(plus(length, JW_PHASE_SMOOTH), channels)), 0, &held, &state)) {
        if (length < 1 || length > MOST_TAPS || size % channels || !(state[0] >= 0.0 && state[0] < (double)length)) {
            PyErr_SetString(PyExc_ValueError, "taps, values or state are not those of a filter");
        } else {
            Py_BEGIN_ALLOW_THREADS
            run_phase(taps, (int)length, (int)channels, rate, state, size / channels, values, out);
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

#define LAW_NUMBERS ((Py_ssize_t)(sizeof(jw_adaptation) / sizeof(double)))
#define STATE_NUMBERS ((Py_ssize_t)(sizeof(jw_adapted) / sizeof(double)))

/* adapt_steps(laws (joints, numbers), state (joints, numbers), friction, dry, speed (samples, joints) each, enabled,
 * parameters (samples, 2, joints), error (samples, joints)): the state is updated. */
static PyObject *adapt_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    int enabled;
    if (!PyArg_ParseTuple(args, "OOOOOpOO", &o[0], &o[1], &o[2], &o[3], &o[4], &enabled, &o[5], &o[6]))
        return NULL;
    lent held = {.count = 0};
    const double *laws, *friction, *dry, *speed;
    double *state, *parameters, *error;
    Py_ssize_t numbers_of, size;
    if (any_numbers(o[0], "laws", 0, &held, &laws, &numbers_of) &&
        any_numbers(o[2], "friction", 0, &held, &friction, &size) && numbers(o[3], "dry", size, 0, &held, &dry) &&
        numbers(o[4], "speed", size, 0, &held, &speed) &&
        outputs(o[5], "parameters", times(2, size), 0, &held, &parameters) &&
        outputs(o[6], "error", size, 0, &held, &error)) {
        Py_ssize_t n = numbers_of / LAW_NUMBERS;
        if (n < 1 || n * LAW_NUMBERS != numbers_of || size % n) {
            PyErr_SetString(PyExc_ValueError, "laws must be those of the joints");
        } else if (outputs(o[1], "state", times(n, STATE_NUMBERS), 0, &held, &state)) {
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t k = 0; k < size; k++) {
                Py_ssize_t j = k % n, at = 2 * (k - j) + j;
                jw_adapted *joint = (jw_adapted *)state + j;
                error[k] = jw_adapt((const jw_adaptation *)laws + j, joint, friction[k], dry[k], speed[k], enabled);
                parameters[at] = joint->a[0], parameters[at + n] = joint->a[1];
            }
            Py_END_ALLOW_THREADS
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

/* -- friction of slip elements along a motion -- */

#define FRICTION_NUMBERS ((Py_ssize_t)(sizeof(friction_law) / sizeof(double)))

/* Borrows the laws of all joints and returns how many there are; sets an error and returns 0 for anything else. */
static Py_ssize_t borrow_laws(PyObject *object, lent *held, const friction_law **laws)
{
    const double *rows;
    Py_ssize_t count;
    if (!any_numbers(object, "laws", 0, held, &rows, &count))
        return 0;
    *laws = (const friction_law *)rows;
    Py_ssize_t n = count / FRICTION_NUMBERS;
    int fine = n > 0 && n * FRICTION_NUMBERS == count;
    for (Py_ssize_t j = 0; j < n && fine; j++)
        fine = (*laws)[j].elements >= 0.0 && (*laws)[j].elements <= MOST_ELEMENTS;
    if (!fine)
        PyErr_SetString(PyExc_ValueError, "laws must be those of the joints");
    return fine ? n : 0;
}

/* slip_hysteresis(laws (joints, numbers), backlash (joints, points), memory (joints, elements + 1), theta (samples, joints),
 * H (samples, joints)): the memory, deformations and last position, is updated. */
static PyObject *slip_hysteresis(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[5], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    lent held = {.count = 0};
    const friction_law *laws;
    const double *table, *theta;
    double *memory, *H;
    Py_ssize_t n, points, width, size;
    if ((n = borrow_laws(o[0], &held, &laws)) > 0 && any_numbers(o[1], "backlash", 0, &held, &table, &points) &&
        any_outputs(o[2], "memory", &held, &memory, &width) && any_numbers(o[3], "theta", 0, &held, &theta, &size) &&
        outputs(o[4], "H", size, 0, &held, &H)) {
        int fine = points >= n && points % n == 0 && width % n == 0 && size % n == 0;
        for (Py_ssize_t j = 0; j < n && fine; j++)
            fine = (Py_ssize_t)laws[j].elements < width / n;
        points /= n, width /= n;
        for (Py_ssize_t k = 0; k < size && fine; k++) {
            Py_ssize_t j = k % n;
            H[k] = follow_hysteresis(laws + j, table + j * points, (int)points, memory + j * width, (int)width, theta[k]);
        }
        if (fine)
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(PyExc_ValueError, "backlash, memory and theta must be those of the joints");
    }
    give_back(&held);
    return result;
}

/* slip_torque(laws (joints, numbers), H, speed, load, temperature, friction, dry (samples, joints) each): friction, and
 * its dry part without the thermal one. */
static PyObject *slip_torque(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[6] = {"H", "speed", "load", "temperature", "friction", "dry"};
    PyObject *o[7], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    lent held = {.count = 0};
    const friction_law *laws;
    const double *in[4];
    double *out[2];
    Py_ssize_t n = borrow_laws(o[0], &held, &laws), size = 0;
    int ready = n > 0 && any_numbers(o[1], names[0], 0, &held, &in[0], &size);
    for (int k = 1; k < 4 && ready; k++)
        ready = numbers(o[1 + k], names[k], size, 0, &held, &in[k]);
    for (int k = 0; k < 2 && ready; k++)
        ready = outputs(o[5 + k], names[4 + k], size, 0, &held, &out[k]);
    if (ready && size % n) {
        PyErr_SetString(PyExc_ValueError, "H must be that of the joints");
        ready = 0;
    }
    if (ready) {
        for (Py_ssize_t k = 0; k < size; k++)
            out[0][k] = slip_friction(laws + k % n, in[0][k], in[1][k], in[2][k], in[3][k], &out[1][k]);
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* -- the torque of a robot in parts -- */

#define FRICTION "jointwise.friction"

const jw_model *model_of(PyObject *capsule); /* runtime_module.c */

#define ESTIMATOR "jointwise.estimator"

/* What a capsule holds: a friction model or an estimator whose numbers are those of Python's arrays, and the `source`
 * that it is made of. */
typedef struct {
    lent held;
    PyObject *source;
    union {
        friction_model friction;
        estimator estimator;
    } made;
} content;

static content *new_content(PyObject *source)
{
    content *new = PyMem_Calloc(1, sizeof(content));
    if (new == NULL)
        PyErr_NoMemory();
    else
        new->source = Py_NewRef(source);
    return new;
}

static void drop_content(content *all)
{
    give_back(&all->held);
    Py_XDECREF(all->source);
    PyMem_Free(all);
}

static void drop_capsule(PyObject *capsule)
{
    drop_content(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
}

static const friction_model *friction_of(PyObject *capsule)
{
    content *all = PyCapsule_GetPointer(capsule, FRICTION);
    return all == NULL ? NULL : &all->made.friction;
}

static const estimator *estimator_of(PyObject *capsule)
{
    content *all = PyCapsule_GetPointer(capsule, ESTIMATOR);
    return all == NULL ? NULL : &all->made.estimator;
}

static int take_cores(PyObject *cores, friction_model *model)
{
    Py_ssize_t count = PyTuple_Check(cores) ? PyTuple_Size(cores) : 0;
    if (count != 1 && count != CALIBRATED_CORES) {
        PyErr_SetString(PyExc_TypeError, "cores must be a tuple of one or three models");
        return 0;
    }
    for (Py_ssize_t c = 0; c < count; c++)
        if ((model->core[c] = model_of(PyTuple_GetItem(cores, c))) == NULL)
            return 0;
    model->joints = model->core[0]->joints;
    for (Py_ssize_t c = 0; c < count; c++)
        if (model->core[c]->joints != model->joints) {
            PyErr_SetString(PyExc_ValueError, "cores must be of as many joints");
            return 0;
        }
    return 1;
}

/* Laws, backlash and rotors of a described robot, which has one core. */
static int take_laws(PyObject *const *o, lent *held, friction_model *model)
{
    Py_ssize_t n = model->joints, points;
    if (model->core[1] != NULL)
        return 1;
    if (borrow_laws(o[0], held, &model->laws) != n) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "laws must be those of the joints");
        return 0;
    }
    if (!any_numbers(o[1], "backlash", 0, held, &model->backlash, &points) ||
        !numbers(o[2], "rotors", n, 0, held, &model->rotors))
        return 0;
    for (Py_ssize_t j = 0; j < n; j++)
        if (model->width < (int)model->laws[j].elements + 1)
            model->width = (int)model->laws[j].elements + 1;
    model->points = (int)(points / n);
    if (points >= n && points % n == 0 && points / n <= MOST_POINTS)
        return 1;
    PyErr_SetString(PyExc_ValueError, "backlash must be that of the joints");
    return 0;
}

/* friction_open(cores, laws | None, backlash | None, rotors | None): a capsule that keeps the arrays. */
static PyObject *friction_open(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *capsule = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &o[0], &o[1], &o[2], &o[3]))
        return NULL;
    content *new = new_content(o[0]);
    if (new == NULL)
        return NULL;
    if (take_cores(o[0], &new->made.friction) && take_laws(o + 1, &new->held, &new->made.friction))
        capsule = PyCapsule_New(new, FRICTION, drop_capsule);
    if (capsule == NULL)
        drop_content(new);
    return capsule;
}

/* -- the estimator -- */

/* estimator_open(friction, taps (length,), adaptation (joints, numbers), rate): a capsule that keeps the arrays. */
static PyObject *estimator_open(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[3], *capsule = NULL;
    double rate;
    if (!PyArg_ParseTuple(args, "OOOd", &o[0], &o[1], &o[2], &rate))
        return NULL;
    const friction_model *model = friction_of(o[0]);
    if (model == NULL)
        return NULL;
    content *new = new_content(o[0]);
    if (new == NULL)
        return NULL;
    estimator *e = &new->made.estimator;
    Py_ssize_t length = 0;
    const double *laws;
    e->model = *model;
    e->rate = rate;
    if (any_numbers(o[1], "taps", 0, &new->held, &e->taps, &length) &&
        numbers(o[2], "adaptation", e->model.joints * LAW_NUMBERS, 0, &new->held, &laws)) {
        e->laws = (const jw_adaptation *)laws;
        e->length = (int)length;
        if (length < 1 || length > MOST_TAPS)
            PyErr_SetString(PyExc_ValueError, "taps are not those of a filter");
        else
            capsule = PyCapsule_New(new, ESTIMATOR, drop_capsule);
    }
    if (capsule == NULL)
        drop_content(new);
    return capsule;
}

/* phase, memory and adaptation, which are updated. */
static int take_state(const estimator *e, PyObject *const *o, lent *held, estimator_state *at)
{
    double *adaptation;
    if (!outputs(o[0], "phase", phase_size(e), 0, held, &at->phase) ||
        !outputs(o[1], "memory", friction_memory(&e->model), 0, held, &at->memory) ||
        !outputs(o[2], "adaptation", e->model.joints * STATE_NUMBERS, 0, held, &adaptation))
        return 0;
    at->adaptation = (jw_adapted *)adaptation;
    if (at->phase[0] >= 0.0 && at->phase[0] < (double)e->length)
        return 1;
    PyErr_SetString(PyExc_ValueError, "phase is not the state of a filter");
    return 0;
}

/* estimator_steps(estimator, phase, memory, adaptation, q, theta, torque, temperature (samples, joints) each, enabled,
 * parameters (samples, 2, joints), error (samples, joints)): the state is updated. */
static PyObject *estimator_steps(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[MEASURED] = {"q", "theta", "torque", "temperature"};
    PyObject *o[10], *result = NULL;
    int enabled;
    if (!PyArg_ParseTuple(args, "OOOOOOOOpOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &enabled, &o[8],
                          &o[9]))
        return NULL;
    const estimator *e = estimator_of(o[0]);
    if (e == NULL)
        return NULL;
    lent held = {.count = 0};
    estimator_state at;
    const double *in[MEASURED];
    double *parameters, *error, temperature[MOST_JOINTS];
    Py_ssize_t n = e->model.joints, size = 0;
    int ready = take_state(e, o + 1, &held, &at) && any_numbers(o[4], names[0], 0, &held, &in[0], &size);
    for (int c = 1; c < MEASURED && ready; c++)
        ready = numbers(o[4 + c], names[c], size, 0, &held, &in[c]);
    if (ready && size % n) {
        PyErr_SetString(PyExc_ValueError, "q must be that of the joints");
    } else if (ready && outputs(o[8], "parameters", times(2, size), 0, &held, &parameters) &&
               outputs(o[9], "error", size, 0, &held, &error)) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < size; k += n) {
            const double *row[MEASURED] = {in[0] + k, in[1] + k, in[2] + k, in[3] + k};
            estimate_friction(e, &at, row, enabled, error + k, temperature);
            for (Py_ssize_t j = 0; j < n; j++)
                for (int i = 0; i < 2; i++)
                    parameters[2 * k + i * n + j] = at.adaptation[j].a[i];
        }
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* -- computed torque with adaptive feed-forward -- */

/* One period. */
typedef struct {
    const estimator *friction;
    estimator_state at;
    controller law;
    Py_ssize_t period, periods;
    const double *plan[6];                /* q, qd, qdd, theta, its speed and acceleration: (periods, joints) */
    const double *sample[6];              /* q, qd, theta, speed, current, temperature */
    const double *gains, *limits;         /* Nm/A, Nm */
    int enabled;
    double *planned, *integral, *error, *torque;
} adaptive_period;

static void step_adaptive(const adaptive_period *p)
{
    const friction_model *model = &p->friction->model;
    Py_ssize_t n = model->joints;
    double current[MOST_JOINTS], temperature[MOST_JOINTS], H[MOST_JOINTS], scratch[MOST_JOINTS], integral[MOST_JOINTS];
    const double *at[6];
    const double *measured[MEASURED] = {p->sample[0], p->sample[2], current, p->sample[5]};
    torque_parts parts;
    for (Py_ssize_t j = 0; j < n; j++) {
        current[j] = p->gains[j] * p->sample[4][j];
        integral[j] = p->integral[j];
        p->torque[j] = 0.0;
    }
    estimate_friction(p->friction, &p->at, measured, p->enabled, p->error, temperature);
    for (int c = 0; c < 6; c++)
        at[c] = p->plan[c] + p->period * n;
    drive_motion motion = {at[0], at[1], at[2], at[4], at[5], temperature};
    follow_friction(model, p->planned, at[3], H);
    friction_parts(model, p->planned, &motion, H, &parts);
    add_law(&p->law, p->period, n, 1.0 / p->friction->rate, p->sample, integral, scratch, p->torque);
    for (Py_ssize_t j = 0; j < n; j++) {
        const double *a = p->at.adaptation[j].a, limit = p->limits[j];
        const double u = p->torque[j] + parts.friction[j] + (a[0] - 1.0) * parts.dry[j] + a[1] * motion.speed[j];
        p->integral[j] = fabs(u) > limit ? p->integral[j] : integral[j];
        p->torque[j] = jw_clamp(u, limit);
    }
}

/* adaptive_step(estimator, phase, memory, adaptation, period, periods, law, plan (q, qd, qdd, theta, speed, acceleration), sample (q, qd, theta,
 * speed, current, temperature), gains, limits, enabled, planned, integral, error, torque): the state (phase, memory,
 * adaptation, planned, integral) is updated. */
static PyObject *adaptive_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[13], *result = NULL;
    adaptive_period p = {0};
    if (!PyArg_ParseTuple(args, "OOOOnnOOOOOpOOOO", &o[0], &o[1], &o[2], &o[3], &p.period, &p.periods, &o[4], &o[5], &o[6],
                          &o[7], &o[8], &p.enabled, &o[9], &o[10], &o[11], &o[12]))
        return NULL;
    if ((p.friction = estimator_of(o[0])) == NULL)
        return NULL;
    lent held = {.count = 0};
    chain unused;
    Py_ssize_t n = p.friction->model.joints;
    if (p.period < 0 || p.period >= p.periods) {
        PyErr_SetString(PyExc_ValueError, "period is not one of the reference");
    } else if (take_state(p.friction, o + 1, &held, &p.at) &&
               parse_controller(o[4], p.periods, n, &held, &p.law, &unused) &&
               take_arrays(o[5], "plan", 6, times(p.periods, n), &held, p.plan) &&
               take_arrays(o[6], "sample", 6, n, &held, p.sample) && numbers(o[7], "gains", n, 0, &held, &p.gains) &&
               numbers(o[8], "limits", n, 0, &held, &p.limits) &&
               outputs(o[9], "planned", friction_memory(&p.friction->model), 0, &held, &p.planned) &&
               outputs(o[10], "integral", n, 0, &held, &p.integral) && outputs(o[11], "error", n, 0, &held, &p.error) &&
               outputs(o[12], "torque", n, 0, &held, &p.torque)) {
        if (p.law.model == NULL) {
            step_adaptive(&p);
            result = Py_NewRef(Py_None);
        } else {
            PyErr_SetString(PyExc_ValueError, "the law must have no gravity: the feed-forward has it");
        }
    }
    give_back(&held);
    return result;
}

/* -- hand guiding -- */

enum { GUIDED = 6, TEMPERATURE = 5 }; /* q, qd, theta, speed, current, temperature */

/* The torque of one period; `last` (GUIDED, joints) takes what is finite. Returns whether everything is. */
static int guide(const friction_model *model, double *memory, double *last, const double *const *sample, double share,
                 const double *damping, const double *limits, double *torque)
{
    static const double still[MOST_JOINTS];
    Py_ssize_t n = model->joints;
    double H[MOST_JOINTS];
    torque_parts parts;
    int whole = 1;
    for (int c = 0; c < GUIDED; c++)
        for (Py_ssize_t j = 0; j < n; j++) {
            int finite = sample[c][j] - sample[c][j] == 0.0;
            last[c * n + j] = finite ? sample[c][j] : last[c * n + j];
            whole &= finite;
        }
    const double *speed = last + 3 * n;
    drive_motion motion = {last, last + n, still, speed, still, last + TEMPERATURE * n};
    follow_friction(model, memory, last + 2 * n, H);
    friction_parts(model, memory, &motion, H, &parts);
    for (Py_ssize_t j = 0; j < n; j++)
        torque[j] = jw_clamp(parts.body[j] + share * parts.friction[j] - damping[j] * speed[j], limits[j]);
    return whole;
}

/* guiding_step(friction, memory, last (6, joints), sample (q, qd, theta, speed, current, temperature), share, damping,
 * limits, torque) -> whether all of the sample is finite: memory and last are updated. */
static PyObject *guiding_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    double share;
    if (!PyArg_ParseTuple(args, "OOOOdOOO", &o[0], &o[1], &o[2], &o[3], &share, &o[4], &o[5], &o[6]))
        return NULL;
    const friction_model *model = friction_of(o[0]);
    if (model == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *sample[GUIDED], *damping, *limits;
    double *memory, *last, *torque;
    Py_ssize_t n = model->joints;
    if (outputs(o[1], "memory", friction_memory(model), 0, &held, &memory) &&
        outputs(o[2], "last", GUIDED * n, 0, &held, &last) && take_arrays(o[3], "sample", GUIDED, n, &held, sample) &&
        numbers(o[4], "damping", n, 0, &held, &damping) && numbers(o[5], "limits", n, 0, &held, &limits) &&
        outputs(o[6], "torque", n, 0, &held, &torque))
        result = PyBool_FromLong(guide(model, memory, last, sample, share, damping, limits, torque));
    give_back(&held);
    return result;
}

PyMethodDef ADAPTATION_METHODS[] = {
    {"slip_hysteresis", slip_hysteresis, METH_VARARGS, "(laws, backlash, memory, theta, H)"},
    {"slip_torque", slip_torque, METH_VARARGS, "(laws, H, speed, load, temperature, friction, dry)"},
    {"phase_steps", phase_steps, METH_VARARGS, "(taps, channels, rate, state, values, out)"},
    {"adapt_steps", adapt_steps, METH_VARARGS, "(laws, state, friction, dry, speed, enabled, parameters, error)"},
    {"friction_open", friction_open, METH_VARARGS, "(cores, laws, backlash, rotors) -> friction"},
    {"guiding_step", guiding_step, METH_VARARGS, "(friction, memory, last, sample, share, damping, limits, torque) -> bool"},
    {"estimator_open", estimator_open, METH_VARARGS, "(friction, taps, adaptation, rate) -> estimator"},
    {"estimator_steps", estimator_steps, METH_VARARGS,
     "(estimator, phase, memory, adaptation, q, theta, torque, temperature, enabled, parameters, error)"},
    {"adaptive_step", adaptive_step, METH_VARARGS,
     "(estimator, phase, memory, adaptation, period, periods, law, plan, sample, gains, limits, enabled, planned, integral, "
     "error, torque)"},
    {NULL, NULL, 0, NULL},
};
