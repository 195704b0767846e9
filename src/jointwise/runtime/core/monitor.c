/* Monitoring of the calibrated robot; see monitor.h. */
#include "monitor.h"

#include <string.h>

/* -- constants; those of the NumPy reference are the same -- */

#define FAST_TIME JW(0.008)  /* s, of the momentum observer: 20 ms show 92 % of a step; at least one period */
#define SLOW_TIME JW(0.1)    /* s, of the direct residual: shorter than the push of a hand, longer than sensor noise */
#define RISE_TIME JW(0.02)   /* s, of the acceleration, and of the direct residual before SLOW_TIME */
#define SPEED_TIME JW(0.03)  /* s, of speeds that are differences of positions */
#define PATH_TIME JW(1.0)    /* s after which the path that deforms friction follows the encoder, not the speed */
#define TORQUE_TIME JW(0.05) /* s, of the mean torque from which a shock is counted */
#define SHOCK_TIME JW(0.1)   /* s in which a shock fades */
#define SLOWNESS JW(0.05)    /* rad/s: below it friction changes its sign or breaks away */
#define REST_RANGE JW(4e-4)  /* rad: a joint within it for REST_TIME is at rest, even if its controller hunts ... */
#define LEAVE_RANGE JW(1e-3) /* ... until it is farther away than this: a push bends the arm */
#define REST_TIME JW(0.3)    /* s */
#define REST_SPEED JW(0.003) /* rad/s: a joint below it does not slide; at the first sample it is at rest */
#define COULOMB JW(1.7320508) /* dry friction, relative to the standard deviation of what it holds: a uniform one */
#define LOOSE JW(2.0)        /* bound of the error of dry friction at a stop: it may be of either sign */
#define STOP_SPEED JW(0.02)  /* rad/s: below it the sign of the speed is not that of friction */
#define BREAKAWAY_RANGE JW(2e-3) /* rad after a rest or a reversal over which dry friction of gears is deformed */
#define STATIC JW(1.6)       /* bound of static friction, relative to dry friction in slow motion */
#define CALM_SHARE JW(0.2)   /* of dry friction by which the torque held at rest varies with no joint in motion; in the
                              * fast residual it may vary by all of it: a motor overcomes friction before its joint moves */
#define STILL_SHARE JW(0.05) /* ... with the whole arm at rest for STILL_TIME: nothing but a push changes what is held */
#define STILL_TIME JW(1.0)   /* s */
#define FOLLOW_TIME JW(0.7)  /* s in which the slow residual is followed: hands push sooner, errors of the model and what
                              * friction holds change later; during a contact it is not followed */
#define SETTLED JW(0.3)      /* s after the begin or end of a rest in which a residual is not compared with what it was */
#define LOOSE_SHARE JW(0.1)  /* ... or while this part of the dry friction of a moving joint is not known */
#define RISE_REST JW(0.02)   /* least standard deviation of its changes at rest, of dry friction ... */
#define RISE_PART JW(0.3)    /* ... in motion, of the spread of the slow residual, which has a margin; at rest ... */
#define RISE_STILL JW(0.5)   /* ... of the spread at rest */
#define RISE_USUAL JW(10.0)  /* s over which their usual mean square is averaged ... */
#define RISE_START JW(0.09)  /* ... from this part of dry friction on when another joint begins to move ... */
#define RISE_FIRST JW(0.5)   /* ... and this part of the spread when the joint does */
#define RISE_LIMIT JW(6.5)   /* contact above this many standard deviations of the changes of all joints together ... */
#define RISE_TIME_LEAST JW(0.05) /* ... for this time, s; with the whole arm at rest, or about to be, PUSH_TIME */
#define RISE_END JW(0.3)     /* ... and at least this part of the largest one of a contact: the filter of the residual fades */
#define START_WAIT JW(2.0)   /* s after a start, a stop or a shock in which changes at rest do not count: motors overcome
                              * friction before their joints move, and friction settles */
#define HARD_STOP JW(0.6)    /* such a shock, relative to dry friction */
#define JUMP_TIME JW(0.004)  /* s, of the torque from which a step of the motor torque is counted */
#define JUMP_SHARE JW(1.0)   /* of such a step that the momentum observer may show: the arm follows later ... */
#define JUMP_CHANGE JW(0.3)  /* ... and that is a sudden change of it without contact */
#define SCALE JW(2.0)        /* the spread is this many times that of residuals like those of the training ... */
#define SCALE_TIME JW(20.0)  /* s over which the usual size of the slow residual in motion is averaged ... */
#define SCALE_CAP JW(3.0)    /* ... with this largest ratio to its spread: a contact does not hide the next one */
#define HELD_DRIFT JW(0.1)   /* of the torque held at rest in 1 s, relative to its standard deviation ... */
#define HELD_HUNTING JW(2.0) /* ... where a joint departs or turns round: controllers hunt about friction, ... */
#define CALM_LOAD JW(0.5)    /* ... or where a load changes by this part of the dry friction of its joint, ... */
#define CALM_TIME JW(3.0)    /* ... and so long after, s */
#define FRICTION_SHARE JW(0.15) /* standard deviation of the relative change of dry friction ... */
#define FRICTION_TIME JW(600.0) /* ... in this time, s: a warm-up */
#define PAYLOAD_TIME JW(1e5) /* s in which an unnoticed change of the payload is as large as the payload may be */
#define PAYLOAD_ERROR JW(0.05) /* of the torque of a payload: its inertia, and friction that grows with its load */
#define UPDATE_TIME JW(0.05) /* s between updates of the filter */
#define CORRELATION JW(2.0)  /* residuals are correlated over several updates: their spread counts twice */
#define PERSISTENCE JW(3.0)  /* samples in a row above the limit of the fast residual: a shock of one sample is none */
#define PUSH_TIME JW(0.3)    /* s that a slow residual at rest must last: a motor that starts overcomes friction sooner */
#define STEADY JW(4.0)       /* samples after the begin or end of a rest in which the observer itself changes */
#define CHANGE_SHOCK JW(0.2) /* part of a shock that is a change without contact */
#define LEVEL_TIME JW(0.1)   /* s, of the usual size of changes of a joint: vibration of the gears rises and fades with speed */
#define LEVEL_CAP JW(24.0)   /* largest square that counts for it: a contact does not hide the next one */
#define LEARN_TIME JW(0.25)  /* s after a start or a gap from which filters have settled and friction is learned ... */
#define START_TIME JW(0.5)   /* ... and in which no contact begins: friction is not known yet */
#define END_RATIO JW(0.7)    /* a contact ends below this ratio ... */
#define END_SHARE JW(0.5)    /* ... or, with all joints over the limit at rest, below this part of its peak ... */
#define END_TIME JW(0.2)     /* ... for this time, s; */
#define RELEASE_TIME JW(0.5) /* ... for this time, s: static friction then holds another torque than before */
#define LONGEST JW(10.0)     /* s after which a contact is taken as the new state: a payload, a wrong model */
#define GAP_STEPS JW(5.0)    /* a gap is longer than this many periods ... */
#define GAP_TIME JW(0.05)    /* ... and than this, s */
#define JUMP JW(0.5)         /* rad that a position may be off the last position and speed */
#define RESTART_TIME JW(1.0) /* s by which a clock that starts again falls ... */
#define RESTART_COUNT JW(10.0) /* ... or samples in a row with a stamp before the last good one */
#define ON_TIME JW(1e-3)     /* part of a period within which a stamp is on the uniform clock */
#define FROZEN_TIME JW(0.25) /* s in which a channel repeats its value while the joint moves */
#define FROZEN_SPEED JW(0.05) /* rad/s: a joint that moves faster changes its position and its output */
#define NOT_MEASURED JW(1e9) /* Nm, standard deviation of the external torque of a joint without a measured output */
#define SATURATED JW(0.999)  /* of the largest output so far: repeated values above it are saturated */

JW_INLINE jw_real share_of(jw_real period, jw_real time) { return JW(1.0) - jw_exp(-period / time); }
JW_INLINE int unknown(int joint, int share) { return JW_MOMENTS + JW_SHARES * joint + share; }
JW_INLINE jw_real larger(jw_real a, jw_real b) { return a > b ? a : b; }
JW_INLINE jw_real smaller(jw_real a, jw_real b) { return a < b ? a : b; }

/* -- the filter -- */

JW_INLINE jw_real *entry(jw_watch_state *s, int i, int k) { return &s->P[i * JW_UNKNOWNS + k]; }

/* Forgets an unknown; then it has this variance. */
static void forget(jw_watch_state *s, int count, int i, jw_real variance)
{
    for (int k = 0; k < count; k++)
        *entry(s, i, k) = *entry(s, k, i) = JW(0.0);
    s->x[i] = JW(0.0);
    *entry(s, i, i) = variance;
}

static void forget_payload(const jw_monitor *m, jw_watch_state *s, jw_real share)
{
    for (int k = 0; k < JW_MOMENTS; k++)
        *entry(s, k, k) += share * (k == 0 ? m->mass * m->mass : m->moment * m->moment);
}

void jw_watch_init(const jw_monitor *m, jw_watch_state *s)
{
    memset(s, 0, sizeof(*s));
    s->fresh = JW(1.0);
    forget_payload(m, s, JW(1.0));
    for (int j = 0; j < m->model->joints; j++) {
        *entry(s, unknown(j, 0), unknown(j, 0)) = FRICTION_SHARE * FRICTION_SHARE;
        *entry(s, unknown(j, 1), unknown(j, 1)) = m->joint[j].viscous * m->joint[j].viscous;
    }
}

/* What the residual of a joint depends on: indices and factors of the unknowns. */
#define FACTORS (JW_MOMENTS + JW_SHARES)

typedef struct {
    int index[FACTORS];
    jw_real factor[FACTORS];
} row;

static row row_of(const jw_watch_state *s, int j)
{
    row r;
    for (int k = 0; k < JW_MOMENTS; k++) {
        r.index[k] = k;
        r.factor[k] = s->columns[j * JW_MOMENTS + k];
    }
    int rests = s->at_rest[j] != JW(0.0);
    const jw_real factors[JW_SHARES] = {rests ? JW(0.0) : s->dry[j], s->slow_speed[j], s->slow_grip[j]};
    for (int k = 0; k < JW_SHARES; k++) {
        r.index[JW_MOMENTS + k] = unknown(j, k);
        r.factor[JW_MOMENTS + k] = factors[k];
    }
    return r;
}

static jw_real mean_of(const jw_watch_state *s, const row *r)
{
    jw_real sum = JW(0.0);
    for (int k = 0; k < FACTORS; k++)
        sum += r->factor[k] * s->x[r->index[k]];
    return sum;
}

/* What payload and friction in motion explain of a residual (Nm), without the torque that friction holds at rest. */
static jw_real explained(const jw_watch_state *s, const row *r, int j)
{
    jw_real held = s->at_rest[j] != JW(0.0) ? r->factor[JW_MOMENTS + 2] * s->x[unknown(j, 2)] : JW(0.0);
    return mean_of(s, r) - held;
}

static jw_real variance_of(jw_watch_state *s, const row *r)
{
    jw_real sum = JW(0.0);
    for (int i = 0; i < FACTORS; i++)
        for (int k = 0; k < FACTORS; k++)
            sum += r->factor[i] * r->factor[k] * *entry(s, r->index[i], r->index[k]);
    return larger(sum, JW(0.0));
}

static void correct(jw_watch_state *s, int count, const row *r, jw_real residual, jw_real variance)
{
    jw_real PH[JW_UNKNOWNS], S = variance;
    for (int i = 0; i < count; i++) {
        PH[i] = JW(0.0);
        for (int k = 0; k < FACTORS; k++)
            PH[i] += *entry(s, i, r->index[k]) * r->factor[k];
    }
    for (int k = 0; k < FACTORS; k++)
        S += r->factor[k] * PH[r->index[k]];
    if (!(S > JW(0.0)))
        return;
    jw_real error = residual - mean_of(s, r);
    for (int i = 0; i < count; i++) {
        s->x[i] += PH[i] * error / S;
        for (int k = 0; k < count; k++)
            *entry(s, i, k) -= PH[i] * PH[k] / S;
    }
}

/* Whether the whole arm rests, and nothing changed for a while. */
JW_INLINE int is_still(const jw_watch_state *s) { return s->calm >= CALM_TIME && s->still >= STILL_TIME; }

/* That of all joints. */
static void explain(const jw_monitor *m, const jw_watch_state *s, jw_real *torque)
{
    for (int j = 0; j < m->model->joints; j++) {
        row r = row_of(s, j);
        torque[j] = explained(s, &r, j);
    }
}

/* The filter after `time` s without contact; `spread` is that of the slow residuals. Nothing is learned of dry friction that
 * is not known, where a joint breaks away, reverses or stops. A residual that changes because the filter explains it
 * differently is not a push: what is followed changes with it. */
static void update(const jw_monitor *m, jw_watch_state *s, jw_real time, const jw_real *spread)
{
    int n = m->model->joints, count = unknown(n, 0);
    jw_real drift = s->calm >= CALM_TIME ? HELD_DRIFT : HELD_HUNTING, before[JW_MOST_JOINTS], after[JW_MOST_JOINTS];
    forget_payload(m, s, time / PAYLOAD_TIME);
    for (int j = 0; j < n; j++) {
        jw_real b = m->joint[j].viscous, held = drift * m->joint[j].held;
        *entry(s, unknown(j, 0), unknown(j, 0)) += FRICTION_SHARE * FRICTION_SHARE * time / FRICTION_TIME;
        *entry(s, unknown(j, 1), unknown(j, 1)) += b * b * time / FRICTION_TIME;
        if (s->at_rest[j] != JW(0.0))
            *entry(s, unknown(j, 2), unknown(j, 2)) += held * held * time;
    }
    explain(m, s, before);
    for (int j = 0; j < n; j++)
        if (m->joint[j].measured && s->above[j] == JW(0.0)) { /* what may be a push does not become friction */
            row r = row_of(s, j);
            jw_real sigma = CORRELATION * spread[j];
            jw_real loose = s->at_rest[j] != JW(0.0) ? JW(0.0) : s->loose_slow[j];
            correct(s, count, &r, s->slow[j], sigma * sigma + loose * loose);
        }
    explain(m, s, after);
    for (int j = 0; j < n; j++)
        s->followed[j] += before[j] - after[j];
}

/* -- signals on the uniform clock -- */

/* What is computed at a time of the uniform clock and not remembered. */
typedef struct {
    jw_real columns[JW_MOST_JOINTS * JW_MOMENTS], dry[JW_MOST_JOINTS];
    jw_real raw[JW_MOST_JOINTS], net[JW_MOST_JOINTS], inertia[JW_MOST_JOINTS], load[JW_MOST_JOINTS];
    jw_real total[JW_MOST_JOINTS], still[JW_MOST_JOINTS], momentum[JW_MOST_JOINTS];
} moment;

/* Begins the signals at a sample. */
static void begin(const jw_monitor *m, jw_watch_state *s, const jw_real *q, const jw_real *qd, const jw_real *torque)
{
    int n = m->model->joints;
    jw_real joints[JW_MOST_JOINTS];
    jw_to_joints(m->model, q, joints);
    jw_init(m->model, joints, NULL, &s->friction);
    for (int j = 0; j < n; j++) {
        s->position[j] = s->path[j] = s->anchor[j] = q[j];
        s->speed[j] = qd[j];
        s->acceleration[j] = s->shock[j] = s->over[j] = s->above[j] = s->travel[j] = JW(0.0);
        s->mean_torque[j] = torque[j];
        int rests = jw_fabs(qd[j]) < REST_SPEED;
        jw_real held = m->joint[j].held;
        s->resting[j] = rests ? REST_TIME : JW(0.0);
        s->at_rest[j] = s->grip[j] = s->slow_grip[j] = rests ? JW(1.0) : JW(0.0);
        s->base_torque[j] = torque[j];
        s->jump[j] = s->usual[j] = s->settled[j] = JW(0.0);
        s->scale[j] = larger(s->scale[j], JW(1.0));
        s->level[j] = JW(1.0);
        forget(s, unknown(n, 0), unknown(j, 2), rests ? held * held : JW(0.0));
    }
    memset(s->changes, 0, sizeof(s->changes));
    memset(s->steady, 0, sizeof(s->steady));
    s->contact = s->lasted = s->quiet = s->peak = JW(0.0);
    s->calm = s->age = s->still = s->moved = s->rising = JW(0.0);
}

static void smooth(jw_real *value, jw_real next, jw_real share) { *value += share * (next - *value); }

/* Torques of joints at the motors, in place: every `stride`-th number from the first on. */
static void to_motors(const jw_model *model, jw_real *torque, int stride)
{
    jw_real joints[JW_MOST_JOINTS], motors[JW_MOST_JOINTS];
    if (!model->coupling)
        return;
    for (int j = 0; j < model->joints; j++)
        joints[j] = torque[j * stride];
    jw_motor_torque(model, joints, motors);
    for (int j = 0; j < model->joints; j++)
        torque[j * stride] = motors[j];
}

/* Torques of the model; all signals and torques are those of the motors. `sliding` are speeds without those at rest. */
static void evaluate(const jw_monitor *m, jw_watch_state *s, const jw_real *q, const jw_real *qd, const jw_real *sliding,
                     const jw_real *change, const jw_real *temperature, moment *now)
{
    enum { Q, QD, SLIDING, CHANGE, QDD, PATH, BEFORE, SIGNALS };
    const jw_model *model = m->model;
    const jw_real *const motors[SIGNALS] = {q, qd, sliding, change, s->acceleration, s->path, s->position};
    jw_real *const torques[] = {now->total, now->still, now->load, now->inertia, now->momentum};
    jw_real a[SIGNALS][JW_MOST_JOINTS];
    for (int k = 0; k < SIGNALS; k++)
        jw_to_joints(model, motors[k], a[k]);
    jw_sample sample = {.q = a[Q], .qd = a[SLIDING], .qdd = a[QDD], .temperature = temperature, .path = a[PATH]};
    jw_step(model, &s->friction, &sample, now->total);
    jw_smooth_torque(model, &sample, now->still);
    jw_body_torque(model, a[Q], a[SLIDING], a[QDD], now->load);
    jw_inertia_torque(model, a[Q], a[QDD], now->inertia);
    jw_inertia_torque(model, a[BEFORE], a[CHANGE], now->momentum);
    jw_body_columns(model, a[Q], a[QD], a[QDD], m->body, JW_MOMENTS, now->columns);
    for (size_t k = 0; k < sizeof(torques) / sizeof(*torques); k++)
        to_motors(model, torques[k], 1);
    for (int k = 0; k < JW_MOMENTS; k++)
        to_motors(model, now->columns + k, JW_MOMENTS);
}

/* Residuals and what they depend on, at positions and speeds on the uniform clock. */
static void advance(const jw_monitor *m, jw_watch_state *s, const jw_real *q, const jw_real *qd, const jw_real *torque,
                    const jw_real *temperature, moment *now)
{
    const jw_model *model = m->model;
    int n = model->joints;
    jw_real T = model->period, change[JW_MOST_JOINTS], sliding[JW_MOST_JOINTS];
    jw_real follow = smaller(T / PATH_TIME, JW(1.0));
    for (int j = 0; j < n; j++) {
        jw_real ahead = s->path[j] + JW(0.5) * T * (qd[j] + s->speed[j]);
        if (s->at_rest[j] == JW(0.0))
            s->path[j] = ahead + follow * (q[j] - ahead);
        sliding[j] = s->at_rest[j] != JW(0.0) || jw_fabs(qd[j]) < REST_SPEED ? JW(0.0) : qd[j];
        change[j] = (qd[j] - s->speed[j]) / T;
        smooth(&s->acceleration[j], change[j], share_of(T, RISE_TIME));
    }
    /* friction of a joint at rest does not follow the sign of the noise of its speed */
    evaluate(m, s, q, qd, sliding, change, temperature, now);
    for (int j = 0; j < n; j++) {
        now->dry[j] = now->total[j] - now->load[j] - now->still[j];
        now->net[j] = torque[j] - (now->total[j] - now->inertia[j]);
        now->raw[j] = now->net[j] - now->momentum[j];
        smooth(&s->mean_torque[j], torque[j], share_of(T, TORQUE_TIME));
        s->jump[j] = larger(jw_fabs(torque[j] - s->base_torque[j]), jw_exp(-T / SHOCK_TIME) * s->jump[j]);
        smooth(&s->base_torque[j], torque[j], share_of(T, larger(JUMP_TIME, T)));
        jw_real sudden = smaller(jw_fabs(now->momentum[j] - now->inertia[j]), jw_fabs(torque[j] - s->mean_torque[j]));
        s->shock[j] = larger(sudden, jw_exp(-T / SHOCK_TIME) * s->shock[j]);
        s->position[j] = q[j];
        s->speed[j] = qd[j];
    }
}

/* Bound of the error of dry friction (Nm) of a joint that moves: it may take any value where the joint stops, turns
 * round or breaks away. That of a joint at rest counts once it moves: its motor may have overcome static friction. */
static jw_real loose(const jw_monitor *m, const jw_watch_state *s, int j)
{
    if (s->at_rest[j] != JW(0.0))
        return STATIC * COULOMB * m->joint[j].held;
    jw_real ratio = s->speed[j] / STOP_SPEED, left = JW(1.0) - s->grip[j];
    jw_real turns = larger(jw_exp(-ratio * ratio), jw_exp(-s->travel[j] / BREAKAWAY_RANGE));
    jw_real breaks = JW(4.0) * left * s->grip[j]; /* largest halfway between what was held and sliding */
    return LOOSE * COULOMB * m->joint[j].held * larger(left * turns, breaks);
}

/* The smoothed residuals and regressors; the first sample is where they begin. The direct residual is smoothed as a whole,
 * not its acceleration alone, whose delay would turn the inertia M of a sinusoidal motion of frequency w into a viscous
 * friction of -M RISE_TIME w^2; the change of speed of a period is that of its middle, as the mean of the other torques. */
static void smooth_all(const jw_monitor *m, jw_watch_state *s, const moment *now)
{
    jw_real T = m->model->period, fast = share_of(T, larger(FAST_TIME, T)), slow = share_of(T, SLOW_TIME);
    jw_real rise = share_of(T, RISE_TIME);
    if (s->fresh != JW(0.0))
        fast = slow = rise = JW(1.0);
    if (s->fresh != JW(0.0))
        memcpy(s->net, now->net, sizeof(s->net));
    for (int j = 0; j < m->model->joints; j++) {
        jw_real expected = s->x[unknown(j, 1)] * s->speed[j];
        expected += s->at_rest[j] != JW(0.0) ? JW(0.0) : s->x[unknown(j, 0)] * now->dry[j];
        for (int k = 0; k < JW_MOMENTS; k++) {
            expected += s->x[k] * now->columns[j * JW_MOMENTS + k];
            smooth(&s->columns[j * JW_MOMENTS + k], now->columns[j * JW_MOMENTS + k], slow);
        }
        smooth(&s->expected[j], expected, fast);
        smooth(&s->fast[j], now->raw[j], fast);
        smooth(&s->direct[j], JW(0.5) * (now->net[j] + s->net[j]) - now->momentum[j], rise);
        s->net[j] = now->net[j];
        smooth(&s->slow[j], s->direct[j], slow);
        smooth(&s->dry[j], now->dry[j], slow);
        smooth(&s->slow_load[j], now->load[j], slow);
        smooth(&s->slow_speed[j], s->speed[j], slow);
        smooth(&s->slow_grip[j], s->grip[j], slow);
        jw_real bound = loose(m, s, j);
        smooth(&s->loose_fast[j], bound, fast);
        s->loose_fast[j] = larger(s->loose_fast[j], bound);
        smooth(&s->loose_slow[j], bound, slow);
    }
    s->fresh = JW(0.0);
}

/* Whether a joint turned round: its speed has another sign than when it last was above the least one. */
static int turned(jw_watch_state *s, int j)
{
    if (jw_fabs(s->speed[j]) < REST_SPEED)
        return 0;
    int other = s->speed[j] * s->direction[j] < JW(0.0);
    s->direction[j] = s->speed[j];
    return other;
}

/* Which joints are at rest, and how well the torque is known that friction holds there. */
static void rest(const jw_monitor *m, jw_watch_state *s, const moment *now)
{
    int n = m->model->joints, calm = 1, still = 1;
    for (int j = 0; j < n; j++) {
        int rests = s->at_rest[j] != JW(0.0), b = unknown(j, 2);
        int near = jw_fabs(s->position[j] - s->anchor[j]) < (rests ? LEAVE_RANGE : REST_RANGE);
        near &= jw_fabs(s->speed[j]) < STOP_SPEED;
        jw_real held = m->joint[j].held, path = m->model->period * jw_fabs(s->speed[j]);
        s->resting[j] = near ? s->resting[j] + m->model->period : JW(0.0);
        s->anchor[j] = near ? s->anchor[j] : s->position[j];
        int turns = !rests && turned(s, j);
        s->travel[j] = rests || turns ? JW(0.0) : s->travel[j] + path;
        calm &= !turns;
        s->settled[j] += m->model->period;
        if (s->shock[j] > HARD_STOP * COULOMB * held)
            s->moved = JW(0.0);
        if (!rests && s->resting[j] >= REST_TIME) {
            s->at_rest[j] = s->grip[j] = JW(1.0);
            s->settled[j] = s->moved = JW(0.0);
            forget(s, unknown(n, 0), b, held * held);
        } else if (rests && !near) {
            s->at_rest[j] = s->settled[j] = s->moved = JW(0.0);
            s->grip[j] = jw_exp(-LEAVE_RANGE / BREAKAWAY_RANGE);
            calm = 0;
        } else if (!rests) {
            s->grip[j] *= jw_exp(-path / BREAKAWAY_RANGE);
        }
        if (jw_fabs(now->load[j] - s->calm_load[j]) > CALM_LOAD * COULOMB * held) {
            s->calm_load[j] = now->load[j];
            calm = 0;
        }
        still &= s->at_rest[j] != JW(0.0);
    }
    s->calm = calm ? s->calm + m->model->period : JW(0.0);
    s->still = still ? s->still + m->model->period : JW(0.0);
    s->age += m->model->period;
    s->moved += m->model->period;
}

/* -- contact -- */

/* Standard deviation of both residuals without contact. */
static void spreads(const jw_monitor *m, const jw_watch_state *s, const moment *now, int j, jw_real *fast, jw_real *slow)
{
    const jw_watched *w = &m->joint[j];
    jw_real v = jw_fabs(s->speed[j]), ratio = v / SLOWNESS;
    if (s->at_rest[j] != JW(0.0)) {
        *fast = w->rest_fast + w->fast[4] * s->shock[j];
        *slow = w->rest_slow + w->slow[4] * s->shock[j];
        return;
    }
    const jw_real feature[JW_FEATURES] = {JW(1.0), v, jw_fabs(now->inertia[j]), jw_exp(-ratio * ratio), s->shock[j]};
    *fast = *slow = JW(0.0);
    for (int k = 0; k < JW_FEATURES; k++) {
        *fast += w->fast[k] * feature[k];
        *slow += w->slow[k] * feature[k];
    }
}

/* Bounds (Nm) of what dry friction may add to both residuals of a joint; whether they count from zero instead of the
 * torque that it held: as long as another joint moves, a joint at rest takes up any torque within its friction. */
static int bounds(const jw_monitor *m, const jw_watch_state *s, int j, jw_real *fast, jw_real *slow)
{
    jw_real friction = COULOMB * m->joint[j].held, part = (s->position[j] - s->anchor[j]) / LEAVE_RANGE;
    jw_real bend = STATIC * part * part, whole = larger(STATIC * friction, s->loose_slow[j]);
    jw_real calm = friction * (is_still(s) ? STILL_SHARE + bend * part * part : CALM_SHARE + bend);
    int rests = s->at_rest[j] != JW(0.0), hunts = rests && s->calm < CALM_TIME;
    *fast = JUMP_SHARE * s->jump[j] + (rests ? whole : s->loose_fast[j]);
    *slow = hunts ? whole : rests ? calm : s->loose_slow[j];
    return hunts;
}

/* Spreads with what a payload adds; at least their values smoothed like the residuals, which remember what was before. */
static void widen(const jw_monitor *m, jw_watch_state *s, int j, jw_real *fast, jw_real *slow)
{
    jw_real carried = JW(0.0);
    for (int k = 0; k < JW_MOMENTS; k++)
        carried += s->x[k] * s->columns[j * JW_MOMENTS + k];
    smooth(&s->mean_fast[j], *fast, share_of(m->model->period, FAST_TIME));
    smooth(&s->mean_slow[j], *slow, share_of(m->model->period, SLOW_TIME));
    *fast = larger(*fast, s->mean_fast[j]) + PAYLOAD_ERROR * jw_fabs(carried);
    *slow = larger(*slow, s->mean_slow[j]) + PAYLOAD_ERROR * jw_fabs(carried);
}

/* Residual beyond its bound, relative to the limit. */
static jw_real beyond(jw_real residual, jw_real bound, jw_real limit, jw_real variance)
{
    return larger(jw_fabs(residual) - bound, JW(0.0)) / (limit * jw_sqrt(variance));
}

/* Change (Nm) of a slow residual within about FOLLOW_TIME; y (Nm) is what payload and friction in motion leave. A push that
 * reverses a joint is followed until the contact begins. Of a joint in motion a change is at most the residual itself: one
 * that returns to zero is the end of an error of the model or of a contact. */
static jw_real recent_change(const jw_monitor *m, jw_watch_state *s, int j, jw_real y)
{
    int free = s->contact == JW(0.0), moves = s->at_rest[j] == JW(0.0);
    int loose = free && moves && s->loose_slow[j] > LOOSE_SHARE * COULOMB * m->joint[j].held;
    jw_real share = s->settled[j] < SETTLED || loose ? JW(1.0) : free ? share_of(m->model->period, FOLLOW_TIME) : JW(0.0);
    smooth(&s->followed[j], y, share);
    smooth(&s->followed_load[j], s->slow_load[j], share);
    jw_real change = y - s->followed[j];
    return moves && jw_fabs(y) < jw_fabs(change) ? y : change;
}

/* Change (Nm) that dry friction may add: of a joint at rest it takes up a load that changes, as far as it can. */
static jw_real friction_change(const jw_monitor *m, const jw_watch_state *s, int j)
{
    if (s->at_rest[j] == JW(0.0))
        return s->loose_slow[j];
    return smaller(jw_fabs(s->slow_load[j] - s->followed_load[j]), LOOSE * COULOMB * m->joint[j].held);
}

/* Its square relative to the usual one, beyond what dry friction may add; `spread` (Nm) is that of the slow residual and
 * `known` (Nm^2) the variance of what the filter explains of it. */
static jw_real relative_change(const jw_monitor *m, jw_watch_state *s, int j, jw_real change, jw_real spread, jw_real known)
{
    const jw_watched *w = &m->joint[j];
    int rests = s->at_rest[j] != JW(0.0);
    int starts = rests ? s->still == JW(0.0) && s->moved < SETTLED : s->settled[j] < SETTLED;
    jw_real least = rests ? larger(RISE_REST * COULOMB * w->held, RISE_STILL * w->rest_slow) : RISE_PART * spread;
    jw_real start = rests ? RISE_START * COULOMB * w->held : RISE_FIRST * spread;
    s->usual[j] = starts ? larger(s->usual[j], start * start) : s->usual[j];
    jw_real size = larger(jw_fabs(change) - friction_change(m, s, j), JW(0.0));
    jw_real variance = least * least + s->usual[j] + (rests ? JW(0.0) : known);
    if (s->contact == JW(0.0))
        smooth(&s->usual[j], rests ? change * change : size * size, share_of(m->model->period, RISE_USUAL));
    return !w->measured || (rests && s->moved < START_WAIT) ? JW(0.0) : size * size / variance;
}

/* Whether a joint that is not yet at rest stands: it stops, or it turns round. */
static int stands(const jw_monitor *m, const jw_watch_state *s)
{
    for (int j = 0; j < m->model->joints; j++)
        if (s->at_rest[j] == JW(0.0) && s->resting[j] > JW(0.0))
            return 1;
    return 0;
}

/* Raises the ratios where the changes of all joints together are those of a push; `square` are the relative ones. Where a
 * joint stands, friction of the joints at rest settles as after a stop, which is known only REST_TIME later. */
static void push(const jw_monitor *m, jw_watch_state *s, const jw_real *square, jw_watch_report *report)
{
    int n = m->model->joints, most = 0;
    jw_real sum = JW(0.0);
    for (int j = 0; j < n; j++) {
        sum += square[j];
        most = square[j] > square[most] ? j : most;
    }
    s->rising = sum > RISE_LIMIT * RISE_LIMIT ? s->rising + m->model->period : JW(0.0);
    s->highest_rise = s->contact != JW(0.0) ? larger(s->highest_rise, jw_sqrt(sum)) : JW(0.0);
    jw_real limit = larger(RISE_LIMIT, RISE_END * s->highest_rise);
    int waits = s->still > JW(0.0) || (s->at_rest[most] != JW(0.0) && stands(m, s));
    int lasts = s->rising > (waits ? PUSH_TIME : RISE_TIME_LEAST);
    for (int j = 0; j < n; j++) {
        jw_real ratio = jw_sqrt(j == most ? sum : square[j]) / limit;
        report->ratio[j] = larger(report->ratio[j], lasts ? ratio : smaller(ratio, JW(1.0)));
    }
}

/* Compares the residuals with their limits. Returns whether a joint is above, or was so long enough. */
static int compare(const jw_monitor *m, jw_watch_state *s, const moment *now, jw_real *spread, jw_watch_report *report)
{
    int above = 0, n = m->model->joints;
    jw_real square[JW_MOST_JOINTS];
    report->joint = JW(0.0);
    for (int j = 0; j < n; j++) {
        row r = row_of(s, j);
        jw_real fast_spread, fast_bound, slow_bound;
        spreads(m, s, now, j, &fast_spread, &spread[j]);
        int hunts = bounds(m, s, j, &fast_bound, &slow_bound);
        jw_real held = s->x[unknown(j, 2)], fast = s->fast[j] - s->expected[j] - s->grip[j] * held;
        jw_real slow = s->slow[j] - mean_of(s, &r), whole = s->slow[j] - explained(s, &r, j);
        report->external[j] = m->joint[j].measured ? -fast : JW(0.0);
        report->residual[j] = m->joint[j].measured ? -slow : JW(0.0);
        if (hunts) {
            fast += held + s->dry[j];
            slow += r.factor[JW_MOMENTS + 2] * held + s->dry[j];
            r.factor[JW_MOMENTS + 2] = JW(0.0);
        }
        jw_real known = variance_of(s, &r);
        widen(m, s, j, &fast_spread, &spread[j]);
        jw_real scale = larger(s->scale[j], JW(1.0)), variance = spread[j] * spread[j] + known;
        jw_real u = beyond(fast, fast_bound, m->limit_fast * scale, fast_spread * fast_spread + known);
        jw_real w = beyond(slow, slow_bound, m->limit_slow * scale, variance);
        square[j] = relative_change(m, s, j, recent_change(m, s, j, whole), spread[j], known);
        if (s->at_rest[j] == JW(0.0) && s->contact == JW(0.0))
            smooth(&s->scale[j], smaller(SCALE * jw_fabs(slow) / jw_sqrt(variance), SCALE_CAP),
                   share_of(m->model->period, SCALE_TIME));
        u = m->derived ? JW(0.0) : u;
        s->over[j] = u > JW(1.0) ? s->over[j] + JW(1.0) : JW(0.0);
        u = s->over[j] >= PERSISTENCE ? u : smaller(u, JW(1.0));
        s->above[j] = w > JW(1.0) && s->at_rest[j] != JW(0.0) ? s->above[j] + m->model->period : JW(0.0);
        w = s->at_rest[j] == JW(0.0) || s->above[j] >= PUSH_TIME ? w : smaller(w, JW(1.0));
        report->deviation[j] = m->joint[j].measured ? jw_sqrt(variance) : NOT_MEASURED;
        report->ratio[j] = m->joint[j].measured ? larger(u, w) : JW(0.0);
        report->speed[j] = s->speed[j];
        report->inertia[j] = now->inertia[j];
        report->shock[j] = s->shock[j];
        report->rest[j] = s->at_rest[j];
        report->bound_fast[j] = fast_bound;
        report->bound_slow[j] = slow_bound;
        report->dry[j] = s->dry[j];
    }
    push(m, s, square, report);
    for (int j = 0; j < n; j++) {
        above |= report->ratio[j] > JW(1.0);
        if (report->ratio[j] > report->ratio[(int)report->joint])
            report->joint = (jw_real)j;
    }
    return above;
}

/* Sudden change of the momentum observer: sqrt(mean of sum_j (e_j / sigma_j)^2 / level_j), where e is the error of the
 * prediction from the last two values. Slow errors of the model and the vibration of the gears are predicted; what is
 * left, as the noise of speeds times the inertia of the pose, is that of the joint in the last LEVEL_TIME. */
static jw_real changed(const jw_monitor *m, jw_watch_state *s)
{
    jw_real sum = JW(0.0), mean = JW(0.0);
    int known = 1;
    for (int j = 0; j < m->model->joints; j++) {
        const jw_watched *w = &m->joint[j];
        jw_real now = s->expected[j] - s->fast[j];
        jw_real shock = CHANGE_SHOCK * s->shock[j] + JUMP_CHANGE * s->jump[j];
        jw_real loose = shock + (s->at_rest[j] != JW(0.0) ? JW(0.0) : s->loose_fast[j]);
        jw_real error = now - w->predictor[0] * s->before[0][j] - w->predictor[1] * s->before[1][j];
        s->before[1][j] = s->before[0][j];
        s->before[0][j] = now;
        s->steady[j] = s->rested[j] == s->at_rest[j] ? s->steady[j] + JW(1.0) : JW(0.0);
        s->rested[j] = s->at_rest[j];
        known &= jw_fabs(s->speed[j]) <= w->fastest;
        if (w->measured) {
            jw_real square = error * error / (w->change * w->change + loose * loose);
            jw_real usual = error * error / (w->change * w->change + shock * shock); /* also where nothing is decided */
            sum += s->steady[j] >= STEADY ? square / larger(s->level[j], JW(1.0)) : JW(0.0);
            smooth(&s->level[j], smaller(usual, LEVEL_CAP), share_of(m->model->period, LEVEL_TIME));
        }
    }
    for (int k = JW_CHANGES - 1; k > 0; k--)
        s->changes[k] = s->changes[k - 1];
    s->changes[0] = known ? sum : JW(0.0);
    for (int k = 0; k < JW_CHANGES; k++)
        mean += s->changes[k] / (jw_real)JW_CHANGES;
    return jw_sqrt(mean);
}

/* Takes what is left as the new state: another payload, another torque that friction holds. */
static void adopt(const jw_monitor *m, jw_watch_state *s)
{
    int n = m->model->joints;
    for (int j = 0; j < n; j++)
        if (s->at_rest[j] != JW(0.0))
            forget(s, unknown(n, 0), unknown(j, 2), m->joint[j].held * m->joint[j].held);
    memset(s->settled, 0, sizeof(s->settled));
    s->contact = JW(0.0);
}

/* Begins and ends contacts. */
static void decide(const jw_monitor *m, jw_watch_state *s, int above, const jw_watch_report *report)
{
    jw_real T = m->model->period, ratio = report->ratio[(int)report->joint];
    if (s->contact == JW(0.0)) {
        if (!above || s->age < START_TIME)
            return;
        s->contact = JW(1.0);
        s->lasted = s->quiet = s->peak = JW(0.0);
    }
    int moves = 0;
    for (int j = 0; j < m->model->joints; j++)
        moves |= report->ratio[j] > JW(1.0) && s->at_rest[j] == JW(0.0);
    s->peak = larger(s->peak, ratio);
    s->lasted += T;
    int ends = ratio < END_RATIO, released = !moves && ratio < END_SHARE * s->peak;
    s->quiet = ends || released ? s->quiet + T : JW(0.0);
    if (ends && s->quiet >= END_TIME) {
        s->contact = JW(0.0);
        memset(s->settled, 0, sizeof(s->settled));
    } else if (released && s->quiet >= RELEASE_TIME) {
        adopt(m, s);
    } else if (s->lasted >= LONGEST) {
        adopt(m, s);
        forget_payload(m, s, JW(1.0));
        s->adopted += JW(1.0);
    }
}

/* One time of the uniform clock. */
static void tick(const jw_monitor *m, jw_watch_state *s, const jw_real *q, const jw_real *qd, const jw_real *torque,
                 const jw_real *temperature, jw_watch_report *report)
{
    moment now;
    jw_real spread[JW_MOST_JOINTS], T = m->model->period;
    int every = (int)larger(jw_floor(UPDATE_TIME / T + JW(0.5)), JW(1.0));
    if (s->fresh != JW(0.0))
        begin(m, s, q, qd, torque);
    advance(m, s, q, qd, torque, temperature, &now);
    if (s->fresh != JW(0.0))
        memcpy(s->calm_load, now.load, sizeof(s->calm_load));
    rest(m, s, &now);
    smooth_all(m, s, &now);
    int above = compare(m, s, &now, spread, report);
    if (m->limit_change > JW(0.0)) {
        report->change = changed(m, s);
        above |= report->change > m->limit_change;
    }
    decide(m, s, above, report);
    report->contact = s->contact;
    s->since += JW(1.0);
    if (s->since >= (jw_real)every) {
        if (s->contact == JW(0.0) && s->age >= LEARN_TIME)
            update(m, s, s->since * T, spread);
        s->since = JW(0.0);
    }
}

/* -- samples as they come -- */

/* The output `lag` ago, from the outputs at the last times of the clock; stores the newest. */
static void delay(const jw_monitor *m, jw_watch_state *s, jw_real *torque)
{
    int n = m->model->joints, whole = (int)jw_floor(m->lag / m->model->period);
    if (!(m->lag > JW(0.0)) || whole + 1 >= JW_MOST_DELAY)
        return;
    jw_real part = m->lag / m->model->period - (jw_real)whole, *d = s->delayed;
    if (s->fresh != JW(0.0))
        for (int k = 0; k < JW_MOST_DELAY; k++)
            memcpy(d + k * n, torque, (size_t)n * sizeof(*d));
    memmove(d + n, d, (size_t)((JW_MOST_DELAY - 1) * n) * sizeof(*d));
    memcpy(d, torque, (size_t)n * sizeof(*d));
    for (int j = 0; j < n; j++)
        torque[j] = d[whole * n + j] + part * (d[(whole + 1) * n + j] - d[whole * n + j]);
}

/* A signal with the delay of speeds that are differences of positions: their filter, in the middle of a period. */
static jw_real delayed_by_filter(jw_real *value, jw_real next, jw_real share)
{
    jw_real before = *value;
    smooth(value, next, share);
    return JW(0.5) * (before + *value);
}

/* Positions and torques as late as the speeds: else inertia appears as friction. */
static void match_speeds(const jw_monitor *m, jw_watch_state *s, jw_real *q, jw_real *torque)
{
    jw_real share = share_of(m->model->period, SPEED_TIME);
    for (int j = 0; j < m->model->joints; j++) {
        s->late_q[j] = s->fresh != JW(0.0) ? q[j] : s->late_q[j];
        s->late_torque[j] = s->fresh != JW(0.0) ? torque[j] : s->late_torque[j];
        q[j] = delayed_by_filter(&s->late_q[j], q[j], share);
        torque[j] = delayed_by_filter(&s->late_torque[j], torque[j], share);
    }
}

static int is_finite(jw_real x) { return x - x == JW(0.0); }

static int is_whole(const jw_monitor *m, jw_real t, const jw_sample *in, const jw_real *output)
{
    int whole = is_finite(t);
    for (int j = 0; j < m->model->joints; j++)
        whole &= is_finite(in->q[j]) && (!in->qd || is_finite(in->qd[j])) &&
                 (!m->joint[j].measured || is_finite(output[j]));
    return whole;
}

static int jumps(const jw_monitor *m, const jw_watch_state *s, jw_real step, const jw_sample *in)
{
    int found = 0;
    for (int j = 0; j < m->model->joints; j++)
        found |= jw_fabs(in->q[j] - s->q[j] - step * s->qd[j]) > JUMP;
    return found;
}

/* What a sample is; a stamp counts from the first. */
static int judge(const jw_monitor *m, jw_watch_state *s, jw_real t, const jw_sample *in)
{
    jw_real step = t - s->stamp, T = m->model->period;
    if (step > JW(0.0)) {
        s->backwards = JW(0.0);
        if (step > larger(GAP_STEPS * T, GAP_TIME))
            return JW_GAP;
        return jumps(m, s, step, in) ? JW_JUMP : JW_GOOD;
    }
    if (step == JW(0.0))
        return JW_REPEATED;
    s->backwards += JW(1.0);
    return step < -RESTART_TIME || s->backwards >= RESTART_COUNT ? JW_RESTART : JW_REORDERED;
}

/* Time in which the channels of a joint repeat their values although it moves. */
static void watch_channels(const jw_monitor *m, jw_watch_state *s, jw_real step, const jw_real *q, const jw_real *qd,
                           const jw_real *output, jw_watch_report *report)
{
    for (int j = 0; j < m->model->joints; j++) {
        int moves = jw_fabs(qd[j]) > FROZEN_SPEED;
        s->same_q[j] = moves && !m->derived && q[j] == s->q[j] ? s->same_q[j] + step : JW(0.0);
        s->same_output[j] = moves && m->joint[j].measured && output[j] == s->output[j] ? s->same_output[j] + step
                                                                                       : JW(0.0);
        jw_real size = m->joint[j].measured ? jw_fabs(output[j]) : JW(0.0);
        s->highest[j] = larger(s->highest[j], size);
        int same = !m->derived && qd[j] == s->qd[j];
        s->same_qd[j] = same ? s->same_qd[j] + step : JW(0.0);
        s->apart[j] = same && step > JW(0.0) ? s->apart[j] + q[j] - s->q[j] - step * qd[j] : JW(0.0);
        report->frozen[j] = s->same_q[j] >= FROZEN_TIME ? JW(1.0) : JW(0.0);
        if (s->same_output[j] >= FROZEN_TIME)
            report->frozen[j] += size >= SATURATED * s->highest[j] ? JW(4.0) : JW(2.0);
        if (s->same_qd[j] >= FROZEN_TIME && jw_fabs(s->apart[j]) > FROZEN_SPEED * s->same_qd[j])
            report->frozen[j] += JW(8.0);
    }
}

/* Remembers a sample as the last one. */
static void store(const jw_monitor *m, jw_watch_state *s, jw_real t, const jw_real *q, const jw_real *qd,
                  const jw_real *output, const jw_real *temperature)
{
    for (int j = 0; j < m->model->joints; j++) {
        s->q[j] = q[j];
        s->qd[j] = qd[j];
        s->output[j] = output[j];
        s->temperature[j] = temperature[j];
    }
    s->stamp = t;
}

/* All times of the uniform clock up to a sample, between the last one and this one. */
static void ticks(const jw_monitor *m, jw_watch_state *s, jw_real t, const jw_real *q, const jw_real *qd,
                  const jw_real *output, const jw_real *temperature, jw_watch_report *report)
{
    int n = m->model->joints;
    jw_real T = m->model->period, a[4][JW_MOST_JOINTS];
    while (s->grid <= t + ON_TIME * T) {
        jw_real part = t > s->stamp ? smaller((s->grid - s->stamp) / (t - s->stamp), JW(1.0)) : JW(1.0);
        for (int j = 0; j < n; j++) {
            a[0][j] = s->q[j] + part * (q[j] - s->q[j]);
            a[1][j] = s->qd[j] + part * (qd[j] - s->qd[j]);
            a[2][j] = m->joint[j].gain * (s->output[j] + part * (output[j] - s->output[j]));
            a[3][j] = temperature[j];
        }
        delay(m, s, a[2]);
        if (m->derived)
            match_speeds(m, s, a[0], a[2]);
        tick(m, s, a[0], a[1], a[2], a[3], report);
        s->grid += T;
    }
}

/* Speeds, outputs and temperatures of a sample, with what replaces those that are not measured. */
static void complete(const jw_monitor *m, const jw_watch_state *s, jw_real step, const jw_sample *in,
                     const jw_real *output, jw_real *qd, jw_real *known, jw_real *warm)
{
    for (int j = 0; j < m->model->joints; j++) {
        jw_real difference = step > JW(0.0) ? (in->q[j] - s->q[j]) / step : JW(0.0);
        jw_real before = s->fresh != JW(0.0) ? difference : s->qd[j]; /* the first difference begins the filter */
        qd[j] = in->qd ? in->qd[j] : before + share_of(step, SPEED_TIME) * (difference - before);
        known[j] = m->joint[j].measured ? output[j] : JW(0.0);
        int has = in->temperature && is_finite(in->temperature[j]);
        warm[j] = has ? in->temperature[j] : (s->started != JW(0.0) ? s->temperature[j] : m->model->joint[j].reference);
    }
}

/* A sample that is whole. */
static void take(const jw_monitor *m, jw_watch_state *s, jw_real t, const jw_sample *in, const jw_real *output)
{
    jw_real qd[JW_MOST_JOINTS], known[JW_MOST_JOINTS], warm[JW_MOST_JOINTS];
    int first = s->started == JW(0.0);
    s->origin = first ? t : s->origin;
    t -= s->origin;
    int verdict = first ? JW_GOOD : judge(m, s, t, in), begins = first || verdict != JW_GOOD;
    s->count[verdict] += JW(1.0);
    s->last.verdict = (jw_real)verdict;
    if (verdict <= JW_REORDERED)
        return;
    jw_real step = begins ? JW(0.0) : t - s->stamp;
    complete(m, s, step, in, output, qd, known, warm);
    watch_channels(m, s, step, in->q, qd, known, &s->last);
    if (begins) {
        store(m, s, t, in->q, qd, known, warm);
        s->grid = t;
        s->backwards = JW(0.0);
        s->fresh = s->started = JW(1.0);
    }
    if (begins && m->derived)
        return; /* the next sample shows the speed of this one */
    if (m->derived && s->fresh != JW(0.0))
        memcpy(s->qd, qd, sizeof(qd));
    ticks(m, s, t, in->q, qd, known, warm, &s->last);
    store(m, s, t, in->q, qd, known, warm);
}

void jw_watch(const jw_monitor *m, jw_watch_state *s, jw_real t, const jw_sample *in, const jw_real *output,
              jw_watch_report *report)
{
    jw_real q[JW_MOST_JOINTS], qd[JW_MOST_JOINTS];
    jw_sample motors = {.q = q, .qd = in->qd ? qd : NULL, .temperature = in->temperature};
    jw_to_motors(m->model, in->q, q);
    if (in->qd)
        jw_to_motors(m->model, in->qd, qd);
    if (is_whole(m, t, &motors, output)) {
        take(m, s, t, &motors, output);
    } else {
        s->count[JW_NOT_FINITE] += JW(1.0);
        s->last.verdict = (jw_real)JW_NOT_FINITE;
    }
    *report = s->last;
}
