/* The digital robot: a serial arm with elastic joints, hysteretic friction and motors, one robot, one sample at a time.
 *
 * A step of h seconds, for every joint with rotor angle θ at the joint side, speed w and deformation
 * φ = θ - e(θ) - d(θ) P - q (e: kinematic error, d P: lost motion):
 *
 *   1. friction is one constant torque f over the step, the mean of the friction law along the step's displacement Δ.
 *      It solves Δ = h w + h²/2 (α - f(Δ)/B), monotone in Δ, so that the work f Δ is the law's own work: what is not in
 *      the slip elements is lost, never gained.
 *   2. everything smooth (links, springs, dampers, motor torque, external wrench) goes one step of order 4 under f.
 *   3. the slip elements take the displacement that came out (exact update), and an impulse puts right the O(h³) between
 *      it and the predicted one. So does another where teeth leave or reach a flank within the step, where the torque
 *      ratio jumps.
 *
 * Included once per instruction set by plant.c, after links.h.
 */

/* -- one joint -- */

/* Spring torque: three segments plus a cubic, odd in φ. */
static inline double NAME(spring)(const law *joint, double phi)
{
    double size = fabs(phi), torque = joint->K1 * size;
    if (size > joint->phi1)
        torque += (joint->K2 - joint->K1) * (size - joint->phi1);
    if (size > joint->phi2)
        torque += (joint->K3 - joint->K2) * (size - joint->phi2);
    return copysign(torque, phi) + joint->cubic * phi * phi * phi;
}

/* Energy of the spring, J. */
static inline double NAME(spring_energy)(const law *joint, double phi)
{
    double size = fabs(phi), square = phi * phi, energy = 0.5 * joint->K1 * square;
    if (size > joint->phi1)
        energy += 0.5 * (joint->K2 - joint->K1) * (size - joint->phi1) * (size - joint->phi1);
    if (size > joint->phi2)
        energy += 0.5 * (joint->K3 - joint->K2) * (size - joint->phi2) * (size - joint->phi2);
    return energy + 0.25 * joint->cubic * square * square;
}

/* Sines and cosines of the harmonics at θ: evaluated once a step, turned by small angles within it. */
static void NAME(anchor)(const law *joint, double theta, double play, ripple *waves)
{
    waves->theta = theta;
    waves->play = play;
    for (int k = 0; k < (int)joint->harmonics; k++)
        NAME(sine_cosine)(joint->order[k] * theta + joint->phase[k], &waves->s[k], &waves->c[k]);
}

/* e(θ) = Σ a sin(m θ + p) and its slope. Taylor polynomials of the angle d from the anchor, below 1e-12 for |d| < 0.5. */
static inline double NAME(kinematic_error)(const law *joint, const ripple *waves, double theta, double *slope)
{
    double error = 0.0, rate = 0.0;
    for (int k = 0; k < (int)joint->harmonics; k++) {
        double d = joint->order[k] * (theta - waves->theta), z = d * d, s, c;
        if (z < 0.25) {
            double sd = d * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * (1.0 / 5040.0 - z / 362880.0))));
            double cd = 1.0 - z * (0.5 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z * (1.0 / 40320.0 - z / 3628800.0))));
            s = waves->s[k] * cd + waves->c[k] * sd;
            c = waves->c[k] * cd - waves->s[k] * sd;
        } else {
            NAME(sine_cosine)(joint->order[k] * theta + joint->phase[k], &s, &c);
        }
        error += joint->amplitude[k] * s;
        rate += joint->amplitude[k] * joint->order[k] * c;
    }
    *slope = rate;
    return error;
}

static inline double NAME(within)(double x, double low, double high)
{
    return x < low ? low : (x > high ? high : x);
}

/* Backlash B(θ), rad, and its slope by θ: periodic table, linear between its points. */
static inline double NAME(backlash_slope)(const double *table, Py_ssize_t points, double theta, double *slope)
{
    *slope = 0.0;
    if (points == 1)
        return table[0];
    double per_turn = 0.15915494309189533577, turns = theta * per_turn;
    double place = (turns - floor(turns)) * (double)points;
    Py_ssize_t k = place >= 0.0 ? (Py_ssize_t)place : 0; /* an angle that is no number has none: it gives NaN below */
    k = k >= points ? points - 1 : k;
    double part = place - (double)k, rise = table[k + 1 < points ? k + 1 : 0] - table[k];
    *slope = rise * (double)points * per_turn;
    return table[k] + part * rise;
}

static inline double NAME(backlash)(const double *table, Py_ssize_t points, double theta)
{
    double slope;
    return NAME(backlash_slope)(table, points, theta, &slope);
}

/* The map of a joint's backlash. */
typedef struct { const double *table; Py_ssize_t points; } NAME(toothing);
#undef toothing
#define toothing NAME(toothing)

/* Lost motion d P, rad, its slope by θ, and whether P moves. */
typedef struct { double lag, slope; int moves; } NAME(loose);
#undef loose
#define loose NAME(loose)

/* Lost motion d(θ) P, d = lost B(θ). P follows θ over 2 L from flank to flank, then rests:
 * P = P0 + (θ - θ0) / L within ±1, so it depends on the way alone, not on the rate. */
static inline loose NAME(lost_motion)(const law *joint, const ripple *from, toothing teeth, double theta, double w)
{
    if (joint->lost == 0.0)
        return (loose){0.0, 0.0, 0};
    double free = from->play + (theta - from->theta) * joint->per_reach, P = NAME(within)(free, -1.0, 1.0), rise;
    double d = joint->lost * NAME(backlash_slope)(teeth.table, teeth.points, theta, &rise);
    int moves = fabs(free) < 1.0 || (free == P && P * w < 0.0); /* or leaves its flank at once */
    return (loose){d * P, joint->lost * rise * P + (moves ? d * joint->per_reach : 0.0), moves};
}

/* Deformation of the gear, its speed, 1 - e' - (d P)', torque of the spring and of spring and damper. */
typedef struct { double phi, speed, ratio, spring, torque; loose lost; } NAME(twist);
#undef twist
#define twist NAME(twist)

/* The same deformation at other speeds. */
static inline void NAME(twist_speed)(const law *joint, double qd, double w, twist *gear)
{
    gear->speed = gear->ratio * w - qd;
    gear->torque = gear->spring + joint->damping * gear->speed;
}

static inline twist NAME(twist_of)(const law *joint, const ripple *waves, toothing teeth, double q, double qd, double theta,
                                   double w)
{
    twist gear;
    double wavy;
    gear.lost = NAME(lost_motion)(joint, waves, teeth, theta, w);
    gear.phi = theta - NAME(kinematic_error)(joint, waves, theta, &wavy) - gear.lost.lag - q;
    gear.ratio = 1.0 - wavy - gear.lost.slope;
    gear.spring = NAME(spring)(joint, gear.phi);
    NAME(twist_speed)(joint, qd, w, &gear);
    return gear;
}

/* -- friction -- */

/* Mean of a slip element along a way, and its derivative by the way. */
typedef struct { double mean, slope; } NAME(pull);
#undef pull
#define pull NAME(pull)

/* One slip element, deformed by x (relative to its limit) and moved by `move` (relative too): mean of x (1 + a sgn x)
 * along the way, x kept within ±1. By energies, without cancellation: (E(end) - E(start) + work in slip) / move. */
static inline pull NAME(element_pull)(double x, double move, double per_move, double a)
{
    x = x > 1.0 ? 1.0 : (x < -1.0 ? -1.0 : x);
    double end = x + move, side = end < 0.0 ? -1.0 : 1.0, factor = 1.0 + a * side, slipped = 0.0;
    if (fabs(end) > 1.0) { /* not |end| - 1, which cancels for tiny moves */
        slipped = fmax(fabs(move) - fabs(side - x), 0.0);
        end = side;
    }
    if (move == 0.0)
        return (pull){x * factor, 0.5 * factor};
    double mean;
    if (x * end >= 0.0) /* does not pass zero; (end - x) / move is 1 without slip */
        mean = factor * (0.5 * (slipped > 0.0 ? (end - x) * per_move : 1.0) * (x + end) + slipped * fabs(per_move) * side);
    else
        mean = per_move * (factor * (0.5 * end * end + slipped) - 0.5 * x * x * (1.0 - a * side));
    return (pull){mean, (end * factor - mean) * per_move};
}

/* What the friction of a joint is during one step: f(Δ) = level H̄(Δ) + viscous Δ/h. */
typedef struct {
    const law *joint;
    const double *deformation;
    double level, viscous, per_backlash;
} NAME(dry);
#undef dry
#define dry NAME(dry)

static inline pull NAME(hysteresis_pull)(const dry *f, double move)
{
    const law *joint = f->joint;
    double way = move * f->per_backlash, per_way;
    way = fabs(way) < SHORTEST ? 0.0 : way; /* its inverse would overflow */
    per_way = 1.0 / way;
    pull H = {0.0, 0.0};
    for (int i = 0; i < (int)joint->elements; i++) {
        double per_limit = joint->per_limit[i];
        pull own = NAME(element_pull)(f->deformation[i] * f->per_backlash * per_limit, way * per_limit,
                                      per_way * joint->limits[i], joint->asymmetry);
        H.mean += joint->shares[i] * own.mean;
        H.slope += joint->shares[i] * own.slope * per_limit * f->per_backlash;
    }
    return H;
}

/* δ_i <- sgn(s) min(|s|, B(θ) D_i), s = δ_i + Δ: exact for slip, whatever the rate. */
static inline void NAME(deform)(const law *joint, double backlash, double move, double *deformation)
{
    for (int i = 0; i < (int)joint->elements; i++) {
        double s = deformation[i] + move, limit = backlash * joint->limits[i];
        deformation[i] = s > limit ? limit : (s < -limit ? -limit : s);
    }
}

/* H along given positions, starting at the first: out is (samples, 2), H there and its mean since the sample before. */
static void NAME(follow)(const law *joint, const double *table, Py_ssize_t points, const double *theta,
                         Py_ssize_t samples, double *deformation, double *out)
{
    for (Py_ssize_t k = 0; k < samples; k++) {
        double move = k > 0 ? theta[k] - theta[k - 1] : 0.0, backlash = NAME(backlash)(table, points, theta[k]);
        dry f = {joint, deformation, 1.0, 0.0, 1.0 / backlash};
        out[2 * k + 1] = NAME(hysteresis_pull)(&f, move).mean;
        NAME(deform)(joint, backlash, move, deformation);
        out[2 * k] = NAME(hysteresis_pull)(&f, 0.0).mean;
    }
}

/* Level of the dry part, sgn(w) replaced by H everywhere so that friction is continuous at reversal and passive:
 * F_C0 + F_C1 τ² + (F_S - F_C0) exp(-(|w|/V_S)^μ) + √|w| F_T(T), never below zero. */
static inline double NAME(dry_level)(const law *joint, double speed, double load, double warmth)
{
    double size = fabs(speed), level = joint->coulomb + joint->load * load * load + warmth * sqrt(size);
    if (joint->stiction != 0.0) {
        double x = size / joint->stribeck_speed;
        double power = joint->stribeck_shape == 2.0 ? x * x : (joint->stribeck_shape == 1.0 ? x : pow(x, joint->stribeck_shape));
        if (power < 40.0)
            level += joint->stiction * exp(-power);
    }
    return level > 0.0 ? level : 0.0;
}

static inline double NAME(viscous_factor)(const law *joint, double speed)
{
    double size = fabs(speed), factor = joint->viscous + size * (joint->square + size * joint->cube);
    return factor > 0.0 ? factor : 0.0;
}

/* Solves Δ (1 + c v) + c h level H̄(Δ) = free, c = h G / 2, G the inverse inertia; returns the mean friction torque.
 * Newton from the slipping side, kept in its bracket by bisection; the left side only grows with Δ. */
static double NAME(solve_friction)(const dry *f, double free, double h, double G)
{
    double c = 0.5 * h * G, straight = 1.0 + c * f->viscous, dry_part = c * h * f->level, a = f->joint->asymmetry;
    if (dry_part == 0.0 || f->joint->elements == 0.0)
        return f->viscous * free / straight / h;
    double forth = dry_part * (1.0 + a), back = dry_part * (1.0 - a);
    double low = (free - forth) / straight, high = (free + back) / straight;
    double move = low > 0.0 ? low : (high < 0.0 ? high : 0.0), size = straight * (high - low);
    pull H = NAME(hysteresis_pull)(f, move);
    for (int k = 0; k < 60; k++) {
        double rest = straight * move + dry_part * H.mean - free;
        if (fabs(rest) <= 4e-16 * (fabs(free) + size))
            break;
        if (rest > 0.0)
            high = move;
        else
            low = move;
        double next = move - rest / (straight + dry_part * H.slope);
        if (!(next >= low && next <= high))
            next = 0.5 * (low + high);
        if (next == move)
            break;
        move = next;
        H = NAME(hysteresis_pull)(f, move);
    }
    return f->level * H.mean + f->viscous * move / h;
}

/* -- the robot -- */

typedef struct {
    const chain *robot;
    const law *laws;
    const double *table; /* (n, points) backlash, rad */
    Py_ssize_t points;
    int locked;
    state at;
    links arm, model; /* the arm, and the controller's idea of it */
    compound bodies;  /* the arm where its rotors do not spin */
    double *stage_q, *stage_qd, *stage_theta, *stage_w; /* one stage of the step */
    double *k_qdd, *k_wd;                               /* its accelerations */
    double *way_qdd, *way_wd, *sum_qdd, *sum_wd;        /* their sums for positions and speeds */
    double *drive, *goal;      /* motor torque now and asked for, Nm */
    double *friction;          /* mean torque of the step */
    double *link_torque, *net; /* on links, on rotors */
    double *supplied, *damped, *heat;
    double *half, *whole; /* what is left of a current difference after h/2 and h */
    double *per_inertia;  /* 1 / B */
    double *cooled;       /* what is left of a temperature difference after a control period */
    double *middle;       /* slope of the lost motion in the middle of the step */
    double *warmth;       /* F_T(T), constant over a control period */
    double *inverse; /* M⁻¹ (n, n), only where a rigid joint has friction */
    double *still;   /* n zeros */
    double *moved;
    ripple *waves;  /* anchored at the start of the step */
    twist *gears;   /* at the start of the step */
    twist *turned;  /* at the stage */
    dry *laws_now;
    int rubs, rigid_friction; /* has any joint friction, has a rigid one */
    int plain;                /* all joints are rigid and without friction, and the links are free */
} NAME(machine);
#undef machine
#define machine NAME(machine)

static inline double NAME(motor_torque)(const machine *r, Py_ssize_t j, double left)
{
    return r->goal[j] + (r->drive[j] - r->goal[j]) * left;
}

/* Of the links under their joint torques; returns the power of the wrench at the tool. */
static inline double NAME(accelerations)(machine *r, int fresh, const double *q, const double *qd, const double *w)
{
    if (r->arm.spins)
        return NAME(accelerate)(r->robot, r->laws, &r->arm, fresh, q, qd, w, r->net, r->link_torque, r->k_qdd);
    return NAME(fall)(r->robot, &r->arm, &r->bodies, fresh, q, qd, r->link_torque, r->k_qdd);
}

static inline toothing NAME(teeth)(const machine *r, Py_ssize_t j)
{
    return (toothing){r->table + j * r->points, r->points};
}

/* Accelerations of a stage under constant friction; adds the powers, times `weight`, to the accounts. */
static void NAME(derivatives)(machine *r, int stage, const double *q, const double *qd, const double *theta,
                              const double *w, double weight, double *external)
{
    Py_ssize_t n = r->robot->dof;
    const double *left = stage == START ? NULL : (stage == END ? r->whole : r->half);
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &r->laws[j];
        double motor = NAME(motor_torque)(r, j, left ? left[j] : 1.0);
        if (joint->flexible == 0.0) {
            r->link_torque[j] = motor - r->friction[j];
            r->net[j] = 0.0;
            r->supplied[j] += weight * motor * qd[j];
            continue;
        }
        twist *gear = stage == START ? &r->gears[j] : &r->turned[j];
        if (stage == AGAIN)
            NAME(twist_speed)(joint, qd[j], w[j], gear);
        else if (stage == END)
            r->middle[j] = gear->lost.slope;
        if (stage == MIDDLE || stage == END)
            *gear = NAME(twist_of)(joint, &r->waves[j], NAME(teeth)(r, j), q[j], qd[j], theta[j], w[j]);
        r->link_torque[j] = gear->torque;
        r->net[j] = motor - gear->ratio * gear->torque - r->friction[j];
        r->k_wd[j] = r->net[j] * r->per_inertia[j];
        r->supplied[j] += weight * motor * w[j];
        r->damped[j] += weight * joint->damping * gear->speed * gear->speed;
    }
    if (r->locked)
        memset(r->k_qdd, 0, (size_t)n * sizeof(double));
    else
        *external += weight * NAME(accelerations)(r, stage != AGAIN, q, qd, w);
    for (Py_ssize_t j = 0; j < n; j++) {
        if (r->laws[j].flexible == 0.0) {
            r->k_wd[j] = r->k_qdd[j];
        } else if (j > 0 && r->laws[j].spin != 0.0 && !r->locked) {
            double turn = NAME(inner)(r->arm.fixed[j].z, r->arm.turning[j - 1]);
            r->k_wd[j] -= r->laws[j].spin * r->per_inertia[j] * turn;
        }
    }
}

static inline void NAME(gather)(Py_ssize_t n, double weight, const double *from, double *into)
{
    for (Py_ssize_t j = 0; j < n; j++)
        into[j] += weight * from[j];
}

/* The next stage: x + c h v + b h² k and v + c h k, for links and rotors. */
static void NAME(lean)(machine *r, double h, double b, double c, int move)
{
    const state *at = &r->at;
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        if (move) {
            r->stage_q[j] = at->q[j] + c * h * at->qd[j] + b * h * h * r->k_qdd[j];
            r->stage_theta[j] = at->theta[j] + c * h * at->w[j] + b * h * h * r->k_wd[j];
        }
        r->stage_qd[j] = at->qd[j] + c * h * r->k_qdd[j];
        r->stage_w[j] = at->w[j] + c * h * r->k_wd[j];
    }
}

/* One step of the smooth part by Nyström's method of fourth order: RK4 for second-order equations, with both stages of
 * the middle at one position, so that the inertias serve twice. */
static void NAME(smooth_step)(machine *r, double h)
{
    static const double sixths[4] = {1.0, 2.0, 2.0, 1.0};
    Py_ssize_t n = r->robot->dof;
    state *at = &r->at;
    memset(r->way_qdd, 0, 4 * (size_t)n * sizeof(double));
    NAME(derivatives)(r, START, at->q, at->qd, at->theta, at->w, h / 6.0, at->external);
    for (int stage = START; stage <= END; stage++) {
        if (stage != START)
            NAME(derivatives)(r, stage, r->stage_q, r->stage_qd, r->stage_theta, r->stage_w, h * sixths[stage] / 6.0,
                              at->external);
        if (stage != END) {
            NAME(gather)(2 * n, 1.0, r->k_qdd, r->way_qdd);
            NAME(lean)(r, h, stage == AGAIN ? 0.5 : 0.125, stage == AGAIN ? 1.0 : 0.5, stage != MIDDLE);
        }
        NAME(gather)(2 * n, sixths[stage], r->k_qdd, r->sum_qdd);
    }
    for (Py_ssize_t j = 0; j < n; j++) {
        at->q[j] += h * (at->qd[j] + h / 6.0 * r->way_qdd[j]);
        at->theta[j] += h * (at->w[j] + h / 6.0 * r->way_wd[j]);
    }
    NAME(gather)(n, h / 6.0, r->sum_qdd, at->qd);
    NAME(gather)(n, h / 6.0, r->sum_wd, at->w);
}

/* Stage of a plain arm: accelerations k at q, v under the motors; v times their torque, times `weight`, is supplied. */
INLINED void NAME(plain_stage)(Py_ssize_t n, machine *r, const double *left, int fresh, const double *q, const double *v,
                               double weight, double *k)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        double motor = NAME(motor_torque)(r, j, left ? left[j] : 1.0);
        r->link_torque[j] = motor;
        r->supplied[j] += weight * motor * v[j];
    }
    *r->at.external += weight * NAME(fall)(r->robot, &r->arm, &r->bodies, fresh, q, v, r->link_torque, k);
}

/* `smooth_step` of an arm that is only links: the same method without gears, friction and a second set of coordinates. */
INLINED void NAME(plain_step_of)(Py_ssize_t n, machine *r, double h)
{
    state *at = &r->at;
    double *x = r->stage_q, *v = r->stage_qd;
    double *first = r->way_qdd, *second = r->way_wd, *third = r->sum_qdd, *last = r->sum_wd;
    NAME(plain_stage)(n, r, NULL, 1, at->q, at->qd, h / 6.0, first);
    for (Py_ssize_t j = 0; j < n; j++) {
        x[j] = at->q[j] + 0.5 * h * at->qd[j] + 0.125 * h * h * first[j];
        v[j] = at->qd[j] + 0.5 * h * first[j];
    }
    NAME(plain_stage)(n, r, r->half, 1, x, v, h / 3.0, second);
    for (Py_ssize_t j = 0; j < n; j++)
        v[j] = at->qd[j] + 0.5 * h * second[j];
    NAME(plain_stage)(n, r, r->half, 0, x, v, h / 3.0, third);
    for (Py_ssize_t j = 0; j < n; j++) {
        x[j] = at->q[j] + h * at->qd[j] + 0.5 * h * h * third[j];
        v[j] = at->qd[j] + h * third[j];
    }
    NAME(plain_stage)(n, r, r->whole, 1, x, v, h / 6.0, last);
    for (Py_ssize_t j = 0; j < n; j++) {
        double way = h * (at->qd[j] + h / 6.0 * (first[j] + second[j] + third[j]));
        double gain_of = h / 6.0 * (first[j] + 2.0 * (second[j] + third[j]) + last[j]);
        at->q[j] += way, at->theta[j] += way;
        at->qd[j] += gain_of, at->w[j] += gain_of;
        r->drive[j] = NAME(motor_torque)(r, j, r->whole[j]);
        at->load[j] = r->drive[j] - r->laws[j].inertia * gain_of / h; /* what the motor has left for the links */
    }
}

static void NAME(plain_step)(machine *r, double h)
{
    if (r->robot->dof == 6)
        NAME(plain_step_of)(6, r, h);
    else if (r->robot->dof == 7)
        NAME(plain_step_of)(7, r, h);
    else
        NAME(plain_step_of)(r->robot->dof, r, h);
}

/* Friction laws of this step, at the speed and load in its middle. */
static void NAME(begin_friction)(machine *r, double h)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        state *at = &r->at;
        double load = at->load[j], speed = at->w[j];
        if (joint->flexible != 0.0) {
            const twist *gear = &r->gears[j];
            speed += 0.5 * h * (r->drive[j] - gear->torque - at->friction[j]) * r->per_inertia[j];
            load = NAME(spring)(joint, gear->phi + 0.5 * h * gear->speed) + joint->damping * gear->speed;
        }
        dry *f = &r->laws_now[j];
        f->joint = joint;
        f->deformation = at->deformation + j * at->elements;
        f->level = NAME(dry_level)(joint, speed, load, r->warmth[j]);
        f->viscous = NAME(viscous_factor)(joint, speed);
        f->per_backlash = 1.0 / NAME(backlash)(r->table + j * r->points, r->points, at->theta[j] + h * speed);
    }
}

/* Rigid joints share the links' inertia: Gauss-Seidel over them, each solved exactly under the others' friction. */
static void NAME(solve_rigid)(machine *r, double h)
{
    Py_ssize_t n = r->robot->dof;
    const double *X = r->inverse;
    for (int sweep = 0; sweep < 50; sweep++) {
        double change = 0.0, size = 0.0;
        for (Py_ssize_t j = 0; j < n; j++) {
            if (r->laws[j].flexible != 0.0)
                continue;
            double others = 0.0;
            for (Py_ssize_t i = 0; i < n; i++)
                if (i != j && r->laws[i].flexible == 0.0)
                    others += X[j * n + i] * r->friction[i];
            double free = h * r->at.qd[j] + 0.5 * h * h * (r->moved[j] - others);
            double before = r->friction[j];
            r->friction[j] = NAME(solve_friction)(&r->laws_now[j], free, h, X[j * n + j]);
            change = fmax(change, fabs(r->friction[j] - before));
            size = fmax(size, fabs(r->friction[j]));
        }
        if (change <= 1e-12 * size)
            break;
    }
}

/* Mean friction torque of every joint for the step to come. */
static void NAME(predict_friction)(machine *r, double h)
{
    Py_ssize_t n = r->robot->dof;
    state *at = &r->at;
    NAME(begin_friction)(r, h);
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &r->laws[j];
        if (joint->flexible == 0.0)
            continue;
        double motor = NAME(motor_torque)(r, j, r->half[j]);
        const twist *gear = &r->gears[j];
        double free = h * at->w[j] + 0.5 * h * h * (motor - gear->ratio * gear->torque) * r->per_inertia[j];
        r->friction[j] = NAME(solve_friction)(&r->laws_now[j], free, h, r->per_inertia[j]);
    }
    if (!r->rigid_friction || r->locked)
        return;
    double nothing = 0.0;
    for (Py_ssize_t j = 0; j < n; j++)
        if (r->laws[j].flexible == 0.0)
            r->friction[j] = 0.0;
    NAME(inverse_mass)(r->robot, &r->arm, at->q, r->moved, r->inverse);
    NAME(derivatives)(r, START, at->q, at->qd, at->theta, at->w, 0.0, &nothing);
    memcpy(r->moved, r->k_qdd, (size_t)n * sizeof(double));
    for (Py_ssize_t j = 0; j < n; j++)
        if (r->laws[j].flexible == 0.0)
            r->friction[j] = at->friction[j];
    NAME(solve_rigid)(r, h);
}

/* The elements take the displacement that came out. Returns the mean torque along it. */
static double NAME(slip)(machine *r, Py_ssize_t j, double move, double h)
{
    dry *f = &r->laws_now[j];
    double backlash = NAME(backlash)(r->table + j * r->points, r->points, r->at.theta[j]);
    f->per_backlash = 1.0 / backlash;
    double mean = f->level * NAME(hysteresis_pull)(f, move).mean + f->viscous * move / h;
    NAME(deform)(f->joint, backlash, move, r->at.deformation + j * r->at.elements);
    return mean;
}

/* Takes the difference between the friction that acted and that of the displacement out of the momentum. The work counted
 * is the law's own; what the impulse does otherwise, O(h⁴), is integration error and shows in the energy balance. */
static void NAME(finish_friction)(machine *r, const double *theta_before, double h)
{
    Py_ssize_t n = r->robot->dof;
    state *at = &r->at;
    double *impulse = r->net;
    for (Py_ssize_t j = 0; j < n; j++) {
        double move = at->theta[j] - theta_before[j], acted = r->friction[j];
        at->friction[j] = NAME(slip)(r, j, move, h);
        impulse[j] = h * (acted - at->friction[j]);
        if (r->laws[j].flexible != 0.0) {
            at->w[j] += impulse[j] * r->per_inertia[j];
            impulse[j] = 0.0;
        }
        double work = at->friction[j] * move;
        at->worked[j] += work;
        r->heat[j] += work;
    }
    if (!r->rigid_friction || r->locked)
        return;
    for (Py_ssize_t j = 0; j < n; j++)
        NAME(gather)(n, impulse[j], r->inverse + j * n, at->qd);
    for (Py_ssize_t j = 0; j < n; j++)
        if (r->laws[j].flexible == 0.0)
            at->w[j] = at->qd[j];
}

/* Gears at the start of a step: of the springs. */
static void NAME(read_gears)(machine *r)
{
    const state *at = &r->at;
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->flexible == 0.0)
            continue;
        NAME(anchor)(joint, at->theta[j], at->play[j], &r->waves[j]);
        r->gears[j] = NAME(twist_of)(joint, &r->waves[j], NAME(teeth)(r, j), at->q[j], at->qd[j], at->theta[j], at->w[j]);
        at->load[j] = r->gears[j].torque;
    }
}

/* Mean slope of the lost motion over a step in which it jumps: by time where the rotor reverses, by way where it does not. */
static inline double NAME(mean_slope)(const twist *start, const twist *end, double w_start, double w_end, double move)
{
    if (w_start * w_end >= 0.0 && move != 0.0)
        return (end->lost.lag - start->lost.lag) / move;
    double part = w_end != w_start ? w_start / (w_start - w_end) : 0.5;
    return start->lost.slope + (1.0 - part) * (end->lost.slope - start->lost.slope);
}

/* The teeth take the displacement of the step; where the torque ratio jumped, an impulse puts right what the stages saw. */
static void NAME(change_flank)(machine *r, const double *theta_before, const double *w_before, double h)
{
    state *at = &r->at;
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->flexible == 0.0 || joint->lost == 0.0)
            continue;
        const twist *start = &r->gears[j], *end = &r->turned[j];
        double move = at->theta[j] - theta_before[j];
        at->play[j] = NAME(within)(at->play[j] + move * joint->per_reach, -1.0, 1.0);
        if (start->lost.moves == end->lost.moves)
            continue;
        double seen = (start->lost.slope + 4.0 * r->middle[j] + end->lost.slope) / 6.0;
        double missed = NAME(mean_slope)(start, end, w_before[j], at->w[j], move) - seen;
        at->w[j] += 0.5 * h * missed * (start->torque + end->torque) * r->per_inertia[j];
    }
}

/* Transmitted torque of rigid joints: what the motor has left for the links. */
static void NAME(remember_load)(machine *r, const double *w_before, double h)
{
    state *at = &r->at;
    for (Py_ssize_t j = 0; j < r->robot->dof; j++)
        if (r->laws[j].flexible == 0.0)
            at->load[j] = r->drive[j] - at->friction[j] - r->laws[j].inertia * (at->w[j] - w_before[j]) / h;
}

static void NAME(step)(machine *r, double h)
{
    Py_ssize_t n = r->robot->dof;
    state *at = &r->at;
    double *theta_before = r->moved + n, *w_before = r->moved + 2 * n;
    if (r->plain) {
        NAME(plain_step)(r, h);
        return;
    }
    memcpy(theta_before, at->theta, (size_t)n * sizeof(double));
    memcpy(w_before, at->w, (size_t)n * sizeof(double));
    if (r->rubs)
        NAME(predict_friction)(r, h);
    NAME(smooth_step)(r, h);
    NAME(change_flank)(r, theta_before, w_before, h);
    if (r->rubs)
        NAME(finish_friction)(r, theta_before, h);
    for (Py_ssize_t j = 0; j < n; j++)
        r->drive[j] = NAME(motor_torque)(r, j, r->whole[j]);
    NAME(remember_load)(r, w_before, h);
    NAME(read_gears)(r);
}

/* Friction and damping heat, the surroundings cool: C dT/dt = P - G (T - T_ambient), exact for constant P. */
static void NAME(warm_up)(machine *r, const double *damped_before, double period)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        double work = r->heat[j] + r->damped[j] - damped_before[j], *T = &r->at.temperature[j];
        r->heat[j] = 0.0;
        if (joint->capacity == 0.0)
            continue;
        double power = work / period;
        if (joint->conductance > 0.0) {
            double end = joint->ambient + power / joint->conductance;
            *T = end + (*T - end) * r->cooled[j];
        } else {
            *T += power * period / joint->capacity;
        }
    }
}

/* F_T = F_T1 (T - T0) + F_T2 (T⁻³ - T0⁻³), T kept in its range: constant over a control period. */
static void NAME(feel_temperature)(machine *r)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->FT1 == 0.0 && joint->FT2 == 0.0)
            continue; /* stays 0 */
        double T = NAME(within)(r->at.temperature[j], joint->T_least, joint->T_most), T0 = joint->T0;
        r->warmth[j] = joint->FT1 * (T - T0) + joint->FT2 * (1.0 / (T * T * T) - 1.0 / (T0 * T0 * T0));
    }
}

/* What the motor is asked for over a control period, within its limit. */
static void NAME(begin_period)(machine *r, const double *command)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        double limit = joint->current_limit * joint->gain;
        r->goal[j] = NAME(within)(command[j], -limit, limit);
        r->drive[j] = joint->lag > 0.0 ? r->at.current[j] * joint->gain : r->goal[j];
    }
}

static void NAME(period)(machine *r, const double *command, double period, Py_ssize_t substeps)
{
    Py_ssize_t n = r->robot->dof;
    double *damped_before = r->moved + 3 * n;
    NAME(begin_period)(r, command);
    memcpy(damped_before, r->damped, (size_t)n * sizeof(double));
    for (Py_ssize_t k = 0; k < substeps; k++)
        NAME(step)(r, period / (double)substeps);
    for (Py_ssize_t j = 0; j < n; j++)
        r->at.current[j] = r->drive[j] / r->laws[j].gain;
    NAME(warm_up)(r, damped_before, period);
    NAME(feel_temperature)(r);
}

/* -- the controller: u = u_ff - Kp (q - q_d) - Kd (qd - qd_d) - Ki ∫ - Kθ (θ - θ_d) - Kω (w - w_d) + g(q) -- */

static inline void NAME(feed_back)(const gain *K, Py_ssize_t k, Py_ssize_t n, const double *error, double *u)
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

/* What encoders read, and the way since what they read a period ago, over the period; a count of 0 rad is none. */
static inline void NAME(read)(Py_ssize_t n, const double *counts, const double *now, const double *before, double period,
                              double *position, double *speed)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        double count = counts[j] > 0.0 ? counts[j] : 1.0;
        double place = now[j] / count, last = before[j] / count;
        if (counts[j] > 0.0)
            place = rint(place), last = rint(last);
        position[j] = place * count;
        speed[j] = (place - last) * count / period;
    }
}

/* Torques u that the law asks for; scratch is (5, n). */
static void NAME(control)(machine *r, const controller *law_of, Py_ssize_t k, double period, double *scratch, double *u)
{
    Py_ssize_t n = r->robot->dof;
    double *error = scratch, *seen = scratch + n;
    const state *at = &r->at;
    const double *actual[4] = {at->q, at->qd, at->theta, at->w};
    if (law_of->counts != NULL) {
        NAME(read)(n, law_of->counts, at->q, at->q_before, period, seen, seen + n);
        NAME(read)(n, law_of->counts + n, at->theta, at->theta_before, period, seen + 2 * n, seen + 3 * n);
        for (int c = 0; c < 4; c++)
            actual[c] = seen + c * n;
    }
    if (law_of->model != NULL) {
        NAME(gravity_torque)(law_of->model, &r->model, actual[0], r->still, u);
    } else {
        memset(u, 0, (size_t)n * sizeof(double));
    }
    if (law_of->feed_forward != NULL)
        NAME(gather)(n, 1.0, law_of->feed_forward + k * n, u);
    for (int c = 0; c < 4; c++) {
        if (law_of->reference[c] == NULL)
            continue;
        for (Py_ssize_t j = 0; j < n; j++)
            error[j] = actual[c][j] - law_of->reference[c][k * n + j];
        NAME(feed_back)(&law_of->gains[c], k, n, error, u);
        if (c == 0 && law_of->gains[4].data != NULL) {
            NAME(feed_back)(&law_of->gains[4], k, n, r->at.integral, u);
            NAME(gather)(n, period, error, r->at.integral);
        }
    }
}

/* -- many periods -- */

static void NAME(record)(const machine *r, const double *u, double *row)
{
    Py_ssize_t n = r->robot->dof;
    const state *at = &r->at;
    memcpy(row, at->q, 8 * (size_t)n * sizeof(double)); /* q to friction, as they lie in the state */
    memcpy(row + 8 * n, u, (size_t)n * sizeof(double));
    memcpy(row + 9 * n, at->supplied, 4 * (size_t)n * sizeof(double)); /* accounts and play */
    row += (RECORD_ROWS - 2) * n;
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &r->laws[j];
        row[j] = row[n + j] = 0.0;
        if (joint->flexible != 0.0)
            row[j] = NAME(spring_energy)(joint, r->gears[j].phi);
        if (joint->elements == 0.0)
            continue;
        double held = 0.0, per_backlash = 0.5 / NAME(backlash)(r->table + j * r->points, r->points, at->theta[j]);
        for (int i = 0; i < (int)joint->elements; i++) {
            double x = at->deformation[j * at->elements + i];
            held += joint->shares[i] * joint->per_limit[i] * per_backlash * x * fabs(x) * (joint->asymmetry + copysign(1.0, x));
        }
        row[n + j] = held * NAME(dry_level)(joint, at->w[j], at->load[j], r->warmth[j]);
    }
    row[2 * n] = *at->external;
}

static int NAME(sound)(const machine *r)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const state *at = &r->at;
        if (!(fabs(at->w[j]) < FASTEST && fabs(at->qd[j]) < FASTEST && fabs(at->q[j]) < FARTHEST &&
              fabs(at->theta[j]) < FARTHEST && fabs(at->load[j]) < STRONGEST))
            return 0;
    }
    return 1;
}

/* Cuts the work space into the arrays of the machine. */
static machine NAME(assemble)(const task *job, char *memory)
{
    Py_ssize_t n = job->robot->dof;
    machine r = {.robot = job->robot, .laws = job->laws, .table = job->table, .points = job->points,
                 .locked = job->locked, .at = job->at};
    memory = NAME(cut_links)(&r.model, n, NAME(cut_links)(&r.arm, n, memory));
    memory = NAME(cut_compound)(&r.bodies, n, memory);
    r.laws_now = (dry *)memory;
    r.waves = (ripple *)(r.laws_now + n);
    r.gears = (twist *)(r.waves + n);
    r.turned = r.gears + n;
    double *next = (double *)(r.turned + n);
    double **one[22] = {&r.stage_q, &r.stage_qd, &r.stage_theta, &r.stage_w,   &r.k_qdd,  &r.k_wd, &r.way_qdd,
                        &r.way_wd,  &r.sum_qdd,  &r.sum_wd,      &r.drive,     &r.goal,   &r.friction, &r.link_torque,
                        &r.net,     &r.heat,     &r.half,        &r.whole,     &r.warmth, &r.per_inertia,
                        &r.middle,  &r.cooled};
    for (int k = 0; k < 22; k++, next += n)
        *one[k] = next;
    r.moved = next, next += 4 * n;
    r.inverse = next, next += n * n;
    r.still = next, next += n;
    r.supplied = r.at.supplied, r.damped = r.at.damped;
    NAME(set_links)(&r.arm, job->robot, job->laws, job->tool);
    NAME(set_compound)(&r.bodies, job->robot, &r.arm);
    if (job->law_of.model != NULL)
        NAME(set_links)(&r.model, job->law_of.model, NULL, job->tool);
    memset(r.heat, 0, (size_t)n * sizeof(double));
    NAME(feel_temperature)(&r);
    NAME(read_gears)(&r);
    r.plain = !job->locked;
    for (Py_ssize_t j = 0; j < n; j++) {
        double h = job->period / (double)job->substeps, lag = job->laws[j].lag;
        r.half[j] = lag > 0.0 ? exp(-0.5 * h / lag) : 0.0;
        r.whole[j] = lag > 0.0 ? exp(-h / lag) : 0.0;
        r.per_inertia[j] = 1.0 / job->laws[j].inertia;
        const law *joint = &job->laws[j];
        r.cooled[j] = joint->capacity > 0.0 ? exp(-joint->conductance * job->period / joint->capacity) : 0.0;
        int rubs = joint->viscous != 0.0 || joint->square != 0.0 || joint->cube != 0.0 || joint->elements != 0.0;
        r.rubs |= rubs;
        r.plain &= !rubs && joint->flexible == 0.0;
        r.rigid_friction |= joint->flexible == 0.0 && rubs;
    }
    return r;
}

/* Runs the periods; returns the index of the first that left the sound range, or -1. */
static Py_ssize_t NAME(run)(const task *job, char *memory)
{
    Py_ssize_t n = job->robot->dof;
    machine r = NAME(assemble)(job, memory);
    double *u = job->scratch, *scratch = job->scratch + n;
    for (Py_ssize_t k = 0; k < job->periods; k++) {
        if (job->push != NULL) {
            const double *w = job->push + k * job->push_stride;
            r.arm.force = NAME(vector)(w[0], w[1], w[2]);
            r.arm.torque = NAME(vector)(w[3], w[4], w[5]);
            r.arm.pushed = 1;
        }
        NAME(control)(&r, &job->law_of, k, job->period, scratch, u);
        if (job->out != NULL)
            NAME(record)(&r, u, job->out + k * (RECORD_ROWS * n + 1));
        memcpy(r.at.q_before, r.at.q, (size_t)n * sizeof(double));
        memcpy(r.at.theta_before, r.at.theta, (size_t)n * sizeof(double));
        NAME(period)(&r, u, job->period, job->substeps);
        if (!NAME(sound)(&r))
            return k;
    }
    return -1;
}
