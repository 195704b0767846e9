/* Online stiffness of a joint: its signals with one common delay and their faults, and the recursive estimate from them.
 * NumPy references: monitoring/stiffness/signals.py and estimator.py, where the method is written down and whose
 * `packed` settings are read here. */
#include "arguments.h" /* Python.h first */

#include "adaptation.h"
#include "fusion.h"
#include "joint_friction.h"
#include "reader.h"
#include "recursive.h"

/* -- signals -- */

/* Times in samples. */
typedef struct {
    double rate, link;        /* Hz; column of the link's position */
    double slowest, standing; /* rad/s below which the joint stands, and for how long */
    double frozen[3];         /* rotor, link, current: how long they may stay the same in motion */
    double largest_step;      /* rad */
    double warm_up;           /* of the filter */
} path_options;

/* Last finite rotor position, link position and current; samples since a fault, since the joint was fast, and since each of
 * the three changed; faulty samples. */
typedef struct {
    double last[3], since_fault, since_fast, since_change[3], dropped;
} path_memory;

#define PATH_OPTIONS ((Py_ssize_t)(sizeof(path_options) / sizeof(double)))
#define PATH_MEMORY ((Py_ssize_t)(sizeof(path_memory) / sizeof(double)))

/* Follows one of the three raw signals; returns whether it jumped. */
static int follow_raw(path_memory *m, int i, double value, double largest_step)
{
    int finite = value - value == 0.0;
    double step = value - m->last[i];
    m->since_change[i] = step != 0.0 || !finite ? 0.0 : m->since_change[i] + 1.0;
    m->last[i] = finite ? value : m->last[i];
    return fabs(step) > largest_step;
}

/* Whether a sample can be used: row (channels) as measured, out (3, channels) filtered. */
static int usable_sample(const path_options *o, path_memory *m, int channels, const double *row, const double *out)
{
    int link = (int)o->link, fault = 0, frozen = 0;
    for (int c = 0; c < channels; c++)
        fault |= !(row[c] - row[c] == 0.0);
    fault |= follow_raw(m, 0, row[0], o->largest_step);
    fault |= follow_raw(m, 1, row[link], o->largest_step);
    follow_raw(m, 2, row[1], o->largest_step);
    int fast = fabs(out[channels]) >= o->slowest;
    m->since_fast = fast ? 0.0 : m->since_fast + 1.0;
    for (int i = 0; i < 3; i++)
        frozen |= m->since_change[i] > o->frozen[i];
    fault |= frozen && (fast || fabs(out[channels + link]) >= o->slowest);
    m->since_fault = fault ? 0.0 : m->since_fault + 1.0;
    m->dropped += fault ? 1.0 : 0.0;
    return m->since_fault > o->warm_up && m->since_fast <= o->standing;
}

/* joint_signals(taps (length,), options, state, rows (samples, channels), out (samples, 3, channels), usable (samples,)):
 * the state is that of the filter and the path's memory; it is updated. Columns: rotor, current, any others, links. */
static PyObject *joint_signals(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    lent held = {.count = 0};
    const double *taps, *numbers_, *rows;
    double *state, *out, *usable;
    Py_ssize_t length, samples, size;
    if (any_numbers(o[0], "taps", 0, &held, &taps, &length) &&
        numbers(o[1], "options", PATH_OPTIONS, 0, &held, &numbers_) &&
        any_numbers(o[3], "rows", 0, &held, &rows, &size) && any_outputs(o[5], "usable", &held, &usable, &samples) &&
        outputs(o[4], "out", times(3, size), 0, &held, &out)) {
        const path_options *options = (const path_options *)numbers_;
        Py_ssize_t channels = samples > 0 ? size / samples : 0, buffers = times(plus(length, JW_PHASE_SMOOTH), channels);
        if (length < 1 || length > 100000 || channels < 3 || channels > 1000 || channels * samples != size ||
            !(options->link >= 2.0 && options->link < (double)channels)) {
            PyErr_SetString(PyExc_ValueError, "rows, taps and options are not those of a joint");
        } else if (outputs(o[2], "state", plus(JW_PHASE_HEAD + PATH_MEMORY, buffers), 0, &held, &state)) {
            path_memory *memory = (path_memory *)(state + JW_PHASE_HEAD + buffers);
            if (!(state[0] >= 0.0 && state[0] < (double)length)) {
                PyErr_SetString(PyExc_ValueError, "state is not that of a filter");
            } else {
                Py_BEGIN_ALLOW_THREADS
                for (Py_ssize_t k = 0; k < samples; k++, rows += channels, out += 3 * channels) {
                    jw_phase_step(taps, (int)length, (int)channels, options->rate, state, rows, out);
                    usable[k] = usable_sample(options, memory, (int)channels, rows, out);
                }
                Py_END_ALLOW_THREADS
                result = Py_NewRef(Py_None);
            }
        }
    }
    give_back(&held);
    return result;
}

/* -- settings -- */

#define MOST_POINTS 100000
#define MOST_WAVES 1000
#define MOST_FORCES 64
#define SPRING_TERMS 2 /* phi, phi^3 */

/* A table over one turn plus mean + sum a_m sin(m theta + p_m). */
typedef struct {
    int points, waves;
    const double *table, *wave; /* wave: orders, amplitudes, phases */
    double mean;
} gear_map;

/* Errors of the gear: maps of them, or columns that are estimated along. */
typedef struct {
    int has_maps, harmonics;
    double reach, offset;
    const double *order;
    gear_map error, lost_motion;
} gear_errors;

typedef struct {
    int channels, link, has_temperature, sides[2], block; /* block: samples of constant variances */
    double link_share, gain, inertia, damping;
    double remains;                        /* of the sums of errors after a sample in use */
    fusion_options fusion;
    joint_friction friction;
    gear_errors gear;
    rls_options recursion;
} stiffness_options;

static void read_steady(reader *in, steady_law *law)
{
    temperature_law *thermal = &law->thermal;
    read_numbers(in, (double *)&law->velocity, (int)(sizeof(velocity_law) / sizeof(double)));
    read_numbers(in, (double *)&law->load, (int)(sizeof(load_law) / sizeof(double)));
    thermal->kind = read_count(in, THERMAL_EXPONENTIAL);
    read_numbers(in, thermal->number, 4);
    thermal->reference = read_number(in);
    thermal->coldest = read_number(in);
    thermal->hottest = read_number(in);
    thermal->fastest = read_number(in);
    thermal->usual = read_number(in);
}

static void read_memory(reader *in, memory_law *law)
{
    law->kind = read_count(in, MEMORY_STRIBECK);
    law->has_load = read_count(in, 1);
    law->viscous = read_number(in);
    law->growth = read_number(in);
    law->extra = read_number(in);
    law->speed = read_number(in);
    law->exponent = read_number(in);
    law->rate = read_number(in);
    law->power = read_number(in);
    law->most_load = read_number(in);
    law->period = read_number(in);
    law->elements = read_count(in, MOST_FORCES);
    law->limit = read_span(in, law->elements);
    law->forces = read_count(in, MOST_FORCES);
    law->force = read_span(in, law->forces);
    law->points = read_count(in, MOST_POINTS);
    law->backlash = read_span(in, law->points);
    int least = law->kind == MEMORY_NONE ? 0 : law->kind == MEMORY_LUGRE ? 2 : law->kind >= MEMORY_SGN ? 1 : law->elements;
    if (law->kind >= MEMORY_SGN)
        least += law->has_load + (law->kind == MEMORY_STRIBECK);
    if (law->forces < least || (law->kind == MEMORY_LUGRE && law->elements < 1))
        in->left = -1;
}

static void read_friction(reader *in, joint_friction *law)
{
    law->has_steady = read_count(in, 1);
    law->width = read_number(in);
    law->standstill = read_number(in);
    if (law->has_steady)
        read_steady(in, &law->steady);
    read_memory(in, &law->memory);
    law->sum = 0.0;
    for (int i = 0; in->left >= 0 && i < law->memory.forces; i++)
        law->sum += law->memory.force[i];
}

static void read_map(reader *in, gear_map *map)
{
    map->points = read_count(in, MOST_POINTS);
    map->table = read_span(in, map->points);
    map->mean = read_number(in);
    map->waves = read_count(in, MOST_WAVES);
    map->wave = read_span(in, 3 * (Py_ssize_t)map->waves);
}

static void read_gear(reader *in, gear_errors *gear)
{
    gear->has_maps = read_count(in, 1);
    gear->reach = read_number(in);
    if (gear->has_maps) {
        gear->offset = read_number(in);
        read_map(in, &gear->error);
        read_map(in, &gear->lost_motion);
    } else {
        gear->harmonics = read_count(in, (RLS_MOST - SPRING_TERMS - 3) / 2);
        gear->order = read_span(in, gear->harmonics);
    }
}

static void read_recursion(reader *in, rls_options *o, int least)
{
    o->kind = read_count(in, RLS_DIRECTIONAL);
    o->memory = read_number(in);
    o->threshold = read_number(in);
    o->period = read_number(in);
    o->n = read_count(in, RLS_MOST);
    o->prior = read_span(in, o->n);
    o->floor = read_span(in, o->n);
    if (o->n != least)
        in->left = -1;
}

/* Columns of the recursion: spring, change of the friction, zero of the encoders, and the gear's errors. */
static int columns_of(const gear_errors *gear)
{
    return SPRING_TERMS + 2 + (gear->has_maps ? 0 : 2 * gear->harmonics + 1);
}

static int read_options(reader *in, stiffness_options *o)
{
    o->channels = read_count(in, 1000);
    o->link = read_count(in, 1000);
    o->has_temperature = read_count(in, 1);
    o->sides[0] = read_count(in, 1);
    o->sides[1] = read_count(in, 1);
    o->block = read_count(in, 1000000);
    o->link_share = read_number(in);
    o->gain = read_number(in);
    o->inertia = read_number(in);
    o->damping = read_number(in);
    o->remains = read_number(in);
    read_numbers(in, (double *)&o->fusion, (int)(sizeof(fusion_options) / sizeof(double)));
    read_friction(in, &o->friction);
    read_gear(in, &o->gear);
    read_recursion(in, &o->recursion, columns_of(&o->gear));
    return in->left == 0 && o->channels >= 3 && o->link >= 2 && o->link < o->channels && o->block > 0;
}

/* -- the estimate -- */

enum { MOTOR, LINK };

/* Head of the state; recursion and memory of the friction follow. Squares, weights, averages and counts of the differences
 * of motor side, link side and prediction: (motor, link), (motor, prediction), (link, prediction). */
typedef struct {
    double samples, used, largest;
    double squares, sums, products; /* errors: see `StiffnessState` */
    double shares[2];
    double difference_squares[3], weights[3], averages[3], counts[3];
    double lag, lag_position; /* of the lost motion */
} stiffness_head;

#define HEAD ((Py_ssize_t)(sizeof(stiffness_head) / sizeof(double)))

/* What is known of a sample before the update. */
typedef struct {
    double phi, friction, torque[2], row[RLS_MOST];
} virtual_sample;

static double map_at(const gear_map *map, double theta)
{
    double value = map->mean + (map->points ? jw_periodic(map->table, map->points, theta) : 0.0);
    for (int k = 0; k < map->waves; k++)
        value += map->wave[map->waves + k] * sin(map->wave[k] * theta + map->wave[2 * map->waves + k]);
    return value;
}

/* Deflection without the known errors of the gear, and the columns of the recursion but for that of the friction. */
static void fill_columns(const gear_errors *gear, stiffness_head *head, double theta, double phi, virtual_sample *v)
{
    double *row = v->row;
    head->lag = jw_clamp(head->lag + (theta - head->lag_position), gear->reach);
    head->lag_position = theta;
    double lag = head->lag / gear->reach;
    if (gear->has_maps)
        phi -= map_at(&gear->error, theta) + map_at(&gear->lost_motion, theta) * lag + gear->offset;
    v->phi = phi;
    *row++ = phi;
    *row++ = phi * phi * phi;
    *row++ = 0.0;
    *row++ = 1.0;
    if (gear->has_maps)
        return;
    for (int k = 0; k < gear->harmonics; k++) {
        *row++ = sin(gear->order[k] * theta);
        *row++ = cos(gear->order[k] * theta);
    }
    *row = lag;
}

/* Friction and the virtual measurements of both sides from filtered signals (3, channels); NaN without links. */
static void fill_torques(const stiffness_options *o, const double *x, const double *links, double *memory,
                         virtual_sample *v)
{
    const double *xd = x + o->channels, *xdd = xd + o->channels;
    double theta = x[0], speed = xd[0], T = o->has_temperature ? x[2] : o->friction.steady.thermal.usual, load;
    double drive = o->gain * x[1] - o->inertia * xdd[0], damped = o->damping * (speed - xd[o->link]);
    if (links)
        load = *links;
    else
        load = drive - (o->friction.has_steady
                            ? (1.0 - o->link_share) * steady_torque(&o->friction.steady, speed, 0.0, T) : 0.0);
    v->friction = friction_torque(&o->friction, theta, speed, load, T, memory);
    v->torque[MOTOR] = drive - (1.0 - o->link_share) * v->friction - damped;
    v->torque[LINK] = links ? *links + o->link_share * v->friction - damped : NAN;
}

static double product(int n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void observe_differences(const stiffness_options *o, stiffness_head *head, const double *torques, int used)
{
    static const int first[3] = {0, 0, 1}, second[3] = {1, 2, 2};
    for (int p = 0; p < 3; p++)
        observe_difference(&o->fusion, torques[first[p]] - torques[second[p]], used, &head->difference_squares[p],
                           &head->weights[p], &head->averages[p], &head->counts[p]);
}

/* Shares of both sides by inverse variances. */
static void share_sides(const stiffness_options *o, stiffness_head *head)
{
    static const double solution[9] = {0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, 0.5};
    double v[3];
    solve_variances(&o->fusion, 3, 3, solution, head->difference_squares, head->weights, v);
    head->shares[MOTOR] = v[1] / (v[0] + v[1]);
    head->shares[LINK] = v[0] / (v[0] + v[1]);
}

static void end_block(const stiffness_options *o, stiffness_head *head)
{
    if (o->sides[MOTOR] && o->sides[LINK])
        share_sides(o, head);
    head->sums += head->products * head->products;
    head->products = 0.0;
}

static void add_error(const stiffness_options *o, stiffness_head *head, double phi, double error)
{
    double x = phi * error;
    head->squares = o->remains * head->squares + x * x;
    head->sums *= o->remains;
    head->products += x;
    head->largest = fmax(head->largest, fabs(phi));
    head->used += 1.0;
}

/* out: a_1, a_2 after the sample, measured and predicted torque, deflection, whether the sample was used. */
static void step_stiffness(const stiffness_options *o, stiffness_head *head, const double *x, int usable,
                           const double *links, double *out)
{
    double *recursion = (double *)(head + 1), *memory = recursion + o->recursion.n * (o->recursion.n + 1) + RLS_EXTRA;
    double share[2] = {1.0 - o->link_share, -o->link_share}, sides[3], measured = 0.0;
    virtual_sample v;
    fill_torques(o, x, links, memory, &v);
    fill_columns(&o->gear, head, x[0], x[0] - x[o->link], &v);
    double predicted = product(o->recursion.n, v.row, recursion), change = recursion[SPRING_TERMS];
    int used = usable;
    for (int i = 0; i < 2; i++)
        used = used && (!o->sides[i] || isfinite(v.torque[i]));
    for (int i = 0; i < 2; i++) {
        sides[i] = v.torque[i] - change * share[i] * v.friction;
        measured += head->shares[i] > 0.0 ? head->shares[i] * sides[i] : 0.0;
        v.row[SPRING_TERMS] = share[i] * v.friction;
        if (o->sides[i])
            rls_step(&o->recursion, recursion, v.row, v.torque[i], used ? head->shares[i] : 0.0);
    }
    sides[2] = predicted;
    if (o->sides[MOTOR] && o->sides[LINK])
        observe_differences(o, head, sides, used);
    if (used)
        add_error(o, head, v.phi, measured - predicted);
    head->samples += 1.0;
    if (fmod(head->samples, (double)o->block) == 0.0)
        end_block(o, head);
    out[0] = recursion[0], out[1] = recursion[1], out[2] = measured, out[3] = predicted, out[4] = v.phi, out[5] = used;
}

/* stiffness_steps(options, state, signals (samples, 3, channels), usable (samples,), links (samples,) | None,
 * out (samples, 6)): the state is updated. */
static PyObject *stiffness_steps(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    lent held = {.count = 0};
    const double *source, *x, *usable, *links;
    double *state, *out;
    Py_ssize_t size, n;
    stiffness_options options = {0}; /* without steady friction its law is not read */
    if (any_numbers(o[0], "options", 0, &held, &source, &size) && any_numbers(o[3], "usable", 0, &held, &usable, &n)) {
        reader in = {source, size};
        if (!read_options(&in, &options)) {
            PyErr_SetString(PyExc_ValueError, "options are not those of an estimator, or of one that is too large");
        } else {
            int c = options.recursion.n;
            Py_ssize_t numbers_ = HEAD + c * (c + 1) + RLS_EXTRA + memory_size(&options.friction.memory);
            if (outputs(o[1], "state", numbers_, 0, &held, &state) &&
                numbers(o[2], "signals", times(n, 3 * (Py_ssize_t)options.channels), 0, &held, &x) &&
                numbers(o[4], "links", n, 1, &held, &links) && outputs(o[5], "out", times(n, 6), 0, &held, &out)) {
                Py_BEGIN_ALLOW_THREADS
                for (Py_ssize_t k = 0; k < n; k++)
                    step_stiffness(&options, (stiffness_head *)state, x + 3 * k * options.channels, usable[k] != 0.0,
                                   links ? links + k : NULL, out + 6 * k);
                Py_END_ALLOW_THREADS
                result = Py_NewRef(Py_None);
            }
        }
    }
    give_back(&held);
    return result;
}

PyMethodDef STIFFNESS_METHODS[] = {
    {"joint_signals", joint_signals, METH_VARARGS, "(taps, options, state, rows, out, usable)"},
    {"stiffness_steps", stiffness_steps, METH_VARARGS, "(options, state, signals, usable, links, out)"},
    {NULL, NULL, 0, NULL},
};
