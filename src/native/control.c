/* Controllers that are stepped one period at a time. NumPy references: control/. */
#include "arguments.h" /* Python.h first */

#include "control.h"
#include "fusion.h"
#include "gear.h"
#include "runtime.h"

#define MOST_JOINTS JW_MOST_JOINTS

const jw_model *model_of(PyObject *capsule); /* runtime_module.c */

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

/* -- links in coordinates of the motors, p = C q, which are those of the joints without coupling -- */

/* M pdd + ... + g at the motors. */
static void arm_torque(const jw_model *arm, const double *p, const double *pd, const double *pdd, double *torque)
{
    double q[MOST_JOINTS], qd[MOST_JOINTS], qdd[MOST_JOINTS], at_joints[MOST_JOINTS];
    jw_to_joints(arm, p, q);
    jw_to_joints(arm, pd, qd);
    jw_to_joints(arm, pdd, qdd);
    jw_body_torque(arm, q, qd, qdd, at_joints);
    jw_motor_torque(arm, at_joints, torque);
}

static int is_finite(double x) { return x - x == 0.0; }

/* The joints of an arm if `rows` are (joints, numbers) for it. */
static int take_drives(PyObject *object, const jw_model *arm, Py_ssize_t width, lent *held, const double **rows)
{
    return numbers(object, "drives", times(arm->joints, width), 0, held, rows);
}

/* -- observer of an unknown torque; NumPy reference: runtime/observers/unknown_torque.py -- */

/* f of B wd = tau - known - f, w linear between samples; `change` is that of w since the sample before. Returns whether the
 * sample could be used. */
static int observe(double decay, double inertia, double rate, double torque, double known, double change, double *f)
{
    double unknown = torque - known - inertia * change * rate;
    if (is_finite(unknown))
        *f = decay * *f + (1.0 - decay) * unknown;
    return is_finite(unknown);
}

/* observer_steps(inertia (joints,), decay, rate, f, w (joints,) each, torque, known, speed, estimates (samples, joints) each)
 * -> samples that could not be used; f and w are updated. */
static PyObject *observer_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    double decay, rate;
    if (!PyArg_ParseTuple(args, "OddOOOOOO", &o[0], &decay, &rate, &o[1], &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    lent held = {.count = 0};
    const double *inertia, *torque, *known, *speed;
    double *f, *w, *out;
    Py_ssize_t n, size, dropped = 0;
    if (any_numbers(o[0], "inertia", 0, &held, &inertia, &n) && outputs(o[1], "f", n, 0, &held, &f) &&
        outputs(o[2], "w", n, 0, &held, &w) && any_numbers(o[3], "torque", 0, &held, &torque, &size) &&
        numbers(o[4], "known", size, 0, &held, &known) && numbers(o[5], "speed", size, 0, &held, &speed) &&
        outputs(o[6], "estimates", size, 0, &held, &out)) {
        if (n < 1 || size % n) {
            PyErr_SetString(PyExc_ValueError, "torque must be that of the joints");
        } else {
            for (Py_ssize_t k = 0; k < size; k += n) {
                int whole = 1;
                for (Py_ssize_t j = 0; j < n; j++) {
                    whole &= observe(decay, inertia[j], rate, torque[k + j], known[k + j], speed[k + j] - w[j], f + j);
                    w[j] = is_finite(speed[k + j]) ? speed[k + j] : w[j];
                    out[k + j] = f[j];
                }
                dropped += !whole;
            }
            result = PyLong_FromSsize_t(dropped);
        }
    }
    give_back(&held);
    return result;
}

/* -- fusion of estimates of one torque -- */

#define MOST_ESTIMATES 16

/* fusion_steps(options (4), solution (pairs, count), state (4, pairs), estimates (samples, count), fused (samples, 2),
 * variances (samples, count)): fused torque and its variance; a sample uses the variances of those before it. */
static PyObject *fusion_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    lent held = {.count = 0};
    const double *options, *solution, *estimate;
    double *state, *fused, *variances;
    Py_ssize_t size, samples;
    if (numbers(o[0], "options", sizeof(fusion_options) / sizeof(double), 0, &held, &options) &&
        any_outputs(o[4], "fused", &held, &fused, &samples) && any_numbers(o[3], "estimates", 0, &held, &estimate, &size) &&
        outputs(o[5], "variances", size, 0, &held, &variances)) {
        samples /= 2;
        Py_ssize_t count = samples > 0 ? size / samples : 0, pairs = count * (count - 1) / 2;
        if (count < 2 || count > MOST_ESTIMATES || count * samples != size) {
            PyErr_SetString(PyExc_ValueError, "estimates and fused must be of as many samples, with 2 to 16 estimates");
        } else if (outputs(o[4], "fused", 2 * samples, 0, &held, &fused) &&
                   numbers(o[1], "solution", pairs * count, 0, &held, &solution) &&
                   outputs(o[2], "state", 4 * pairs, 0, &held, &state)) {
            const fusion_options *settings = (const fusion_options *)options;
            for (Py_ssize_t k = 0; k < samples; k++, estimate += count, variances += count, fused += 2) {
                solve_variances(settings, (int)count, (int)pairs, solution, state, state + pairs, variances);
                fused[0] = fuse_estimates(estimate, variances, (int)count, &fused[1]);
                for (Py_ssize_t i = 0, p = 0; i < count; i++)
                    for (Py_ssize_t j = i + 1; j < count; j++, p++) {
                        double difference = estimate[i] - estimate[j];
                        observe_difference(settings, difference, is_finite(difference), state + p, state + pairs + p,
                                           state + 2 * pairs + p, state + 3 * pairs + p);
                    }
            }
            result = Py_NewRef(Py_None);
        }
    }
    give_back(&held);
    return result;
}

/* -- joint torque feedback; NumPy reference: control/torque_loop.py -- */

enum { LINK_SIDE, DEFLECTION, MOTOR_SIDE, SIDES };

/* Of one joint: only doubles, as Python packs them. */
typedef struct {
    spring_law spring; /* K1 = 0: none */
    double damping, inertia, limit, most_friction, variance[SIDES];
} fed_drive;

typedef struct {
    double torque_gain, link_share;
    double keep;  /* of a filtered acceleration after a period */
    double decay; /* of the friction observer; 1: none */
} loop_options;

/* Memory, one number a joint each. */
enum { INTEGRAL, COMMAND, LINK_SPEED, LINK_ACCELERATION, ROTOR_SPEED, ROTOR_ACCELERATION, OBSERVED, LOOP_ROWS };

typedef struct {
    const jw_model *arm;
    controller law;
    Py_ssize_t period, periods;
    double rate;
    const double *sample[4]; /* q, qd, theta, w */
    const double *load, *friction; /* (periods, joints) */
    const fed_drive *drives;
    const loop_options *options;
    double *state, *torque; /* (LOOP_ROWS, joints), (joints) */
} loop_period;

/* Filtered derivative of a speed; one that is not finite stays as it was. */
static void differentiate(double keep, double rate, double measured, double *speed, double *acceleration)
{
    double now = is_finite(measured) ? measured : *speed;
    *acceleration = keep * *acceleration + (1.0 - keep) * (now - *speed) * rate;
    *speed = now;
}

/* One period; returns whether all samples could be used. */
static int step_torque_loop(const loop_period *p)
{
    const loop_options *o = p->options;
    const Py_ssize_t n = p->arm->joints;
    double *row[LOOP_ROWS], q[MOST_JOINTS], qd[MOST_JOINTS], link[MOST_JOINTS], change[MOST_JOINTS], scratch[MOST_JOINTS];
    const double *theta = p->sample[2], *w = p->sample[3];
    int whole = 1;
    for (int r = 0; r < LOOP_ROWS; r++)
        row[r] = p->state + r * n;
    jw_to_motors(p->arm, p->sample[0], q);
    jw_to_motors(p->arm, p->sample[1], qd);
    for (Py_ssize_t j = 0; j < n; j++) {
        change[j] = w[j] - row[ROTOR_SPEED][j];
        differentiate(o->keep, p->rate, qd[j], &row[LINK_SPEED][j], &row[LINK_ACCELERATION][j]);
        differentiate(o->keep, p->rate, w[j], &row[ROTOR_SPEED][j], &row[ROTOR_ACCELERATION][j]);
        p->torque[j] = 0.0;
    }
    arm_torque(p->arm, q, row[LINK_SPEED], row[LINK_ACCELERATION], link);
    add_law(&p->law, p->period, n, 1.0 / p->rate, p->sample, row[INTEGRAL], scratch, p->torque);
    for (Py_ssize_t j = 0; j < n; j++) {
        const fed_drive *d = &p->drives[j];
        double f = p->friction[p->period * n + j], at_motor = (1.0 - o->link_share) * f, phi = theta[j] - q[j], extra = 0.0, fused;
        double side[SIDES] = {link[j] + o->link_share * f,
                              d->spring.K1 > 0.0 ? spring_torque(&d->spring, phi) + d->damping * (w[j] - qd[j]) : NAN,
                              row[COMMAND][j] - d->inertia * row[ROTOR_ACCELERATION][j] - at_motor};
        if (o->decay < 1.0) {
            double known = fuse_estimates(side, d->variance, MOTOR_SIDE, &fused) + at_motor;
            whole &= observe(o->decay, d->inertia, p->rate, row[COMMAND][j], known, change[j], &row[OBSERVED][j]);
            extra = jw_clamp(row[OBSERVED][j], d->most_friction);
        }
        double error = p->load[p->period * n + j] - fuse_estimates(side, d->variance, SIDES, &fused);
        p->torque[j] = jw_clamp(p->torque[j] + extra + o->torque_gain * error, d->limit);
        row[COMMAND][j] = p->torque[j];
    }
    return whole;
}

/* torque_loop_step(arm, law, period, periods, rate, sample (q, qd, theta, speed), load, friction, drives, options, state,
 * torque) -> whether all samples could be used; the state is updated. */
static PyObject *torque_loop_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[9], *result = NULL;
    loop_period p = {0};
    if (!PyArg_ParseTuple(args, "OOnndOOOOOOO", &o[0], &o[1], &p.period, &p.periods, &p.rate, &o[2], &o[3], &o[4], &o[5],
                          &o[6], &o[7], &o[8]))
        return NULL;
    if ((p.arm = model_of(o[0])) == NULL)
        return NULL;
    lent held = {.count = 0};
    chain unused;
    const double *drives, *options;
    Py_ssize_t n = p.arm->joints;
    if (p.period < 0 || p.period >= p.periods) {
        PyErr_SetString(PyExc_ValueError, "period is not one of the reference");
    } else if (parse_controller(o[1], p.periods, n, &held, &p.law, &unused) &&
               take_arrays(o[2], "sample", 4, n, &held, p.sample) &&
               numbers(o[3], "load", times(p.periods, n), 0, &held, &p.load) &&
               numbers(o[4], "friction", times(p.periods, n), 0, &held, &p.friction) &&
               take_drives(o[5], p.arm, sizeof(fed_drive) / sizeof(double), &held, &drives) &&
               numbers(o[6], "options", sizeof(loop_options) / sizeof(double), 0, &held, &options) &&
               outputs(o[7], "state", LOOP_ROWS * n, 0, &held, &p.state) &&
               outputs(o[8], "torque", n, 0, &held, &p.torque)) {
        p.drives = (const fed_drive *)drives;
        p.options = (const loop_options *)options;
        result = PyBool_FromLong(step_torque_loop(&p));
    }
    give_back(&held);
    return result;
}

/* -- feedback linearisation; NumPy reference: control/feedback_linearisation.py -- */

typedef struct {
    spring_law spring;
    double damping, inertia, limit, elastic;
    double k[4], ki;      /* of the error equation of fourth order */
    double kp, kd, ki_rigid; /* of that of a joint that is not elastic */
} linearised_drive;

enum { POSITION, SPEED, ACCELERATION, JERK, SNAP, ORDERS };
enum { FEED = ORDERS, SAG, SAG_RATE, PLANS };

typedef struct {
    const jw_model *arm;
    Py_ssize_t period, periods;
    double rate, observer, interval;
    const double *sample[4], *plan[PLANS]; /* plan: (periods, joints) each */
    const linearised_drive *drives;
    double *integral, *speed, *torque;
} linearisation_period;

typedef double motion[ORDERS][MOST_JOINTS];

typedef struct {
    double torque[MOST_JOINTS], rate[MOST_JOINTS], stiffness[MOST_JOINTS], curvature[MOST_JOINTS];
} springs;

/* Torque of the links along the Taylor series of a motion, s seconds later. */
static void series_torque(const jw_model *arm, const motion x, double s, double *torque)
{
    double p[MOST_JOINTS], pd[MOST_JOINTS], pdd[MOST_JOINTS];
    for (int j = 0; j < arm->joints; j++) {
        double q = x[POSITION][j], qd = x[SPEED][j], qdd = x[ACCELERATION][j], jerk = x[JERK][j], snap = x[SNAP][j];
        pdd[j] = qdd + s * (jerk + s / 2.0 * snap);
        pd[j] = qd + s * (qdd + s / 2.0 * (jerk + s / 3.0 * snap));
        p[j] = q + s * (qd + s / 2.0 * (qdd + s / 3.0 * (jerk + s / 4.0 * snap)));
    }
    arm_torque(arm, p, pd, pdd, torque);
}

/* x of elastic joints from M x = force, the others as they are given in x; L is the factor of `elastic_matrix`. */
static void solve_elastic(const linearisation_period *p, const double *M, const double *L, const double *force, double *x)
{
    const Py_ssize_t n = p->arm->joints;
    double right[MOST_JOINTS];
    for (Py_ssize_t i = 0; i < n; i++) {
        right[i] = p->drives[i].elastic != 0.0 ? force[i] : x[i];
        for (Py_ssize_t j = 0; j < n && p->drives[i].elastic != 0.0; j++)
            right[i] -= p->drives[j].elastic != 0.0 ? 0.0 : M[i * n + j] * x[j];
    }
    jw_solve((int)n, L, right);
    memcpy(x, right, (size_t)n * sizeof(double));
}

/* M of the elastic joints, ones for the others, as a Cholesky factor; 0 if it is not positive definite. */
static int elastic_matrix(const linearisation_period *p, const double *M, double *L)
{
    const Py_ssize_t n = p->arm->joints;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t j = 0; j < n; j++) {
            int both = p->drives[i].elastic != 0.0 && p->drives[j].elastic != 0.0;
            L[i * n + j] = both ? M[i * n + j] : (i == j ? 1.0 : 0.0);
        }
    return jw_factorize((int)n, L);
}

/* Springs and position, speed of the links; what is planned for joints with a value that is not finite. Returns whether
 * there was none. */
static int read_joints(const linearisation_period *p, motion x, springs *out)
{
    const Py_ssize_t n = p->arm->joints, at = p->period * n;
    double q[MOST_JOINTS], qd[MOST_JOINTS];
    int whole = 1;
    jw_to_motors(p->arm, p->sample[0], q);
    jw_to_motors(p->arm, p->sample[1], qd);
    for (Py_ssize_t j = 0; j < n; j++) {
        const linearised_drive *d = &p->drives[j];
        double theta = p->sample[2][j], w = p->sample[3][j], sag = p->plan[SAG][at + j], sag_rate = p->plan[SAG_RATE][at + j];
        if (!is_finite(q[j] + qd[j] + theta + w)) {
            q[j] = p->plan[POSITION][at + j], qd[j] = p->plan[SPEED][at + j];
            theta = q[j] + sag, w = qd[j] + sag_rate;
            whole = 0;
        }
        double phi = theta - q[j], phi_d = w - qd[j], k = spring_stiffness(&d->spring, phi);
        out->torque[j] = spring_torque(&d->spring, phi) + d->damping * phi_d;
        out->rate[j] = k * phi_d;
        out->stiffness[j] = k;
        out->curvature[j] = spring_curvature(&d->spring, phi);
        x[POSITION][j] = d->elastic != 0.0 ? q[j] : theta - sag;
        x[SPEED][j] = d->elastic != 0.0 ? qd[j] : w - sag_rate;
    }
    return whole;
}

/* Acceleration, jerk and snap that the error equation of a rigid joint wants. */
static void plan_rigid(const linearisation_period *p, motion x)
{
    const Py_ssize_t n = p->arm->joints, at = p->period * n;
    for (Py_ssize_t j = 0; j < n; j++) {
        const linearised_drive *d = &p->drives[j];
        double e = x[POSITION][j] - p->plan[POSITION][at + j], first = x[SPEED][j] - p->plan[SPEED][at + j];
        double second = -d->kd * first - d->kp * e - d->ki_rigid * p->integral[j];
        double third = -d->kd * second - d->kp * first - d->ki_rigid * e;
        x[ACCELERATION][j] = p->plan[ACCELERATION][at + j] + second;
        x[JERK][j] = p->plan[JERK][at + j] + third;
        x[SNAP][j] = p->plan[SNAP][at + j] - d->kd * third - d->kp * second - d->ki_rigid * first;
    }
}

/* Acceleration and jerk of links that springs pull; 0 if the mass matrix is not positive definite. */
static int pull_links(const linearisation_period *p, motion x, const springs *s)
{
    const Py_ssize_t n = p->arm->joints;
    double M[MOST_JOINTS * MOST_JOINTS], L[MOST_JOINTS * MOST_JOINTS], q[MOST_JOINTS];
    double force[MOST_JOINTS] = {0}, before[MOST_JOINTS], after[MOST_JOINTS];
    motion still = {{0}};
    jw_to_joints(p->arm, x[POSITION], q);
    jw_mass_matrix(p->arm, q, M);
    jw_motor_mass_matrix(p->arm, M);
    if (!elastic_matrix(p, M, L))
        return 0;
    memcpy(still[POSITION], x[POSITION], sizeof(still[POSITION]));
    memcpy(still[SPEED], x[SPEED], sizeof(still[SPEED]));
    series_torque(p->arm, still, 0.0, before);
    for (Py_ssize_t j = 0; j < n; j++)
        force[j] = s->torque[j] - before[j];
    solve_elastic(p, M, L, force, x[ACCELERATION]);
    memcpy(still[ACCELERATION], x[ACCELERATION], sizeof(still[ACCELERATION]));
    series_torque(p->arm, still, -p->interval, before);
    series_torque(p->arm, still, p->interval, after);
    for (Py_ssize_t j = 0; j < n; j++)
        force[j] = s->rate[j] - (after[j] - before[j]) / (2.0 * p->interval);
    solve_elastic(p, M, L, force, x[JERK]);
    return 1;
}

/* Snap of the error equation of elastic joints, whose acceleration the observer corrects by the measured speed. */
static void plan_elastic(const linearisation_period *p, motion x)
{
    const Py_ssize_t n = p->arm->joints, at = p->period * n;
    for (Py_ssize_t j = 0; j < n; j++) {
        const linearised_drive *d = &p->drives[j];
        if (d->elastic == 0.0)
            continue;
        x[ACCELERATION][j] += p->observer * (x[SPEED][j] - p->speed[j]);
        double wanted = p->plan[SNAP][at + j] - d->ki * p->integral[j];
        for (int k = POSITION; k <= JERK; k++)
            wanted -= d->k[k] * (x[k][j] - p->plan[k][at + j]);
        x[SNAP][j] = wanted;
    }
}

/* One period: -1 if the mass matrix is not positive definite, else whether all samples could be used. */
static int step_linearisation(const linearisation_period *p)
{
    const Py_ssize_t n = p->arm->joints, at = p->period * n;
    const double period = 1.0 / p->rate, h = p->interval;
    double before[MOST_JOINTS], now[MOST_JOINTS], after[MOST_JOINTS];
    motion x = {{0}};
    springs s;
    int whole = read_joints(p, x, &s);
    plan_rigid(p, x);
    if (!pull_links(p, x, &s))
        return -1;
    plan_elastic(p, x);
    series_torque(p->arm, x, -h, before);
    series_torque(p->arm, x, 0.0, now);
    series_torque(p->arm, x, h, after);
    for (Py_ssize_t j = 0; j < n; j++) {
        const linearised_drive *d = &p->drives[j];
        double k = s.stiffness[j], second = (after[j] - 2.0 * now[j] + before[j]) / (h * h);
        double acceleration = x[ACCELERATION][j] + second / k - s.curvature[j] * s.rate[j] * s.rate[j] / (k * k * k);
        double u = d->inertia * acceleration + now[j] + p->plan[FEED][at + j];
        p->torque[j] = jw_clamp(u, d->limit);
        if (p->torque[j] == u)
            p->integral[j] += period * (x[POSITION][j] - p->plan[POSITION][at + j]);
        p->speed[j] = d->elastic != 0.0 ? p->speed[j] + period * x[ACCELERATION][j] : x[SPEED][j];
    }
    return whole;
}

/* linearisation_step(arm, period, periods, rate, observer, interval, sample (q, qd, theta, speed), plan (q, qd, qdd, jerk,
 * snap, feed, sag, its rate), drives, integral, speed, torque) -> whether all samples could be used; integral and observed
 * speed are updated. */
static PyObject *linearisation_step(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[7], *result = NULL;
    linearisation_period p = {0};
    if (!PyArg_ParseTuple(args, "OnndddOOOOOO", &o[0], &p.period, &p.periods, &p.rate, &p.observer, &p.interval, &o[1],
                          &o[2], &o[3], &o[4], &o[5], &o[6]))
        return NULL;
    if ((p.arm = model_of(o[0])) == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *drives;
    Py_ssize_t n = p.arm->joints;
    if (p.period < 0 || p.period >= p.periods) {
        PyErr_SetString(PyExc_ValueError, "period is not one of the reference");
    } else if (take_arrays(o[1], "sample", 4, n, &held, p.sample) &&
               take_arrays(o[2], "plan", PLANS, times(p.periods, n), &held, p.plan) &&
               take_drives(o[3], p.arm, sizeof(linearised_drive) / sizeof(double), &held, &drives) &&
               outputs(o[4], "integral", n, 0, &held, &p.integral) && outputs(o[5], "speed", n, 0, &held, &p.speed) &&
               outputs(o[6], "torque", n, 0, &held, &p.torque)) {
        p.drives = (const linearised_drive *)drives;
        int whole = step_linearisation(&p);
        if (whole < 0)
            PyErr_SetString(PyExc_ValueError, "the mass matrix is not positive definite");
        else
            result = PyBool_FromLong(whole);
    }
    give_back(&held);
    return result;
}

PyMethodDef CONTROL_METHODS[] = {
    {"affine_step", affine_step, METH_VARARGS, "(law, period, periods, rate, sample, integral, torque)"},
    {"observer_steps", observer_steps, METH_VARARGS,
     "(inertia, decay, rate, f, w, torque, known, speed, estimates) -> samples not used"},
    {"fusion_steps", fusion_steps, METH_VARARGS, "(options, solution, state, estimates, fused, variances)"},
    {"torque_loop_step", torque_loop_step, METH_VARARGS,
     "(arm, law, period, periods, rate, sample, load, friction, drives, options, state, torque) -> used"},
    {"linearisation_step", linearisation_step, METH_VARARGS,
     "(arm, period, periods, rate, observer, interval, sample, plan, drives, integral, speed, torque) -> used"},
    {NULL, NULL, 0, NULL},
};
