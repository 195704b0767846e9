/* One step of the digital robot: links, gears, motors and friction.
 *
 * A step of h seconds, for every joint with rotor angle θ at the joint side, speed w and deformation
 * φ = θ - e(θ) - d(θ) P - q (gear.h; C q in place of q where motors and joints are coupled):
 *
 *   1. friction is one constant torque f over the step, the mean of the friction terms (joint_terms.h) along the displacement Δ
 *      of the step. It solves Δ = h w + h²/2 (α - f(Δ)/B), monotone in Δ, so that the work f Δ is that of the law: friction
 *      dissipates or stores energy in the slip elements, it never supplies any.
 *   2. everything smooth (links, springs, dampers, motor torque, external wrench) takes one step of order 4 under f.
 *   3. the slip elements take the displacement that resulted (exact update), and an impulse corrects the O(h³) between it
 *      and the predicted one; another one corrects steps in which teeth leave or reach a flank, where the torque ratio
 *      jumps.
 *
 * Included once per instruction set by plant.c, after links.h and composite.h.
 */

typedef struct {
    const chain *robot;
    const law *laws;
    const joint_terms *terms;
    const double *table; /* (n, points) backlash, rad */
    const double *coupling; /* C of a coupled transmission, (n, n): φ = θ - e(θ) - d(θ) P - C q; NULL for none */
    Py_ssize_t points;
    int locked;
    state at;
    links arm, model; /* the arm, and the model in the controller */
    composite bodies;  /* the arm where its rotors do not spin */
    double *stage_q, *stage_qd, *stage_theta, *stage_w; /* one stage of the step */
    double *k_qdd, *k_wd;                               /* its accelerations */
    double *path_qdd, *path_wd, *sum_qdd, *sum_wd;      /* their sums for positions and speeds */
    double *drive, *goal;      /* motor torque now and commanded, Nm */
    double *friction;          /* mean torque of the step */
    double *link_torque, *net; /* on links, on rotors */
    double *supplied, *damped, *heat;
    double *half, *whole; /* fraction of a current difference that remains after h/2 and h */
    double *per_inertia;  /* 1 / B */
    double *cooled;       /* fraction of a temperature difference that remains after a control period */
    double *middle;       /* slope of the lost motion in the middle of the step */
    double *mid_speed;    /* speed at which the levels of friction were taken */
    double *inverse; /* M⁻¹ (n, n), only where a rigid joint has friction */
    double *still;   /* n zeros */
    double *link_side, *link_speed, *gear_torque; /* C q, C q̇, and torques of the gears before they act on the links */
    double *moved;
    gear_anchor *anchors; /* at the start of the step */
    twist *gears;         /* at the start of the step */
    twist *stage_gears;   /* at the stage */
    step_friction *step_laws;
    int has_friction, rigid_friction; /* has any joint friction, has a rigid one */
    int plain;                /* all joints are rigid and without friction, and the links are free */
} NAME(machine);
#undef machine
#define machine NAME(machine)

/* Motor torque when a fraction of the difference to the command remains. */
static inline double NAME(motor_torque)(const machine *r, Py_ssize_t j, double remains)
{
    return r->goal[j] + (r->drive[j] - r->goal[j]) * remains;
}

/* Voltage times current of a motor at a stage, times `weight`: v = R i + L di/dt + K w, with the current loop's di/dt. */
static inline void NAME(draw)(machine *r, Py_ssize_t j, double motor, double speed, double weight)
{
    const law *joint = &r->laws[j];
    double current = motor / joint->gain;
    double slope = joint->lag > 0.0 ? (r->goal[j] - motor) / (joint->lag * joint->gain) : 0.0;
    double voltage = joint->resistance * current + joint->inductance * slope + joint->gain * speed;
    r->at.electrical[j] += weight * voltage * current;
}

/* Copper loss of a step, R times the integral of i² in closed form: i approaches its command exponentially. */
static void NAME(heat_windings)(machine *r, double h)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->resistance == 0.0)
            continue;
        double goal = r->goal[j] / joint->gain, beside = r->drive[j] / joint->gain - goal, e = r->whole[j];
        double squares = goal * goal * h + 2.0 * goal * beside * joint->lag * (1.0 - e) +
                         0.5 * beside * beside * joint->lag * (1.0 - e * e);
        r->at.copper[j] += joint->resistance * squares;
    }
}

/* Of the links under their joint torques; returns the power of the wrench at the tool. */
static inline double NAME(accelerations)(machine *r, int fresh, const double *q, const double *qd, const double *w)
{
    if (r->arm.spins)
        return NAME(accelerate)(r->robot, r->laws, &r->arm, fresh, q, qd, w, r->net, r->link_torque, r->k_qdd);
    return NAME(forward_dynamics)(r->robot, &r->arm, &r->bodies, fresh, q, qd, r->link_torque, r->k_qdd);
}

static inline backlash_map NAME(map_of)(const machine *r, Py_ssize_t j)
{
    return (backlash_map){r->table + j * r->points, (int)r->points};
}

static inline void NAME(gather)(Py_ssize_t n, double weight, const double *from, double *into)
{
    for (Py_ssize_t j = 0; j < n; j++)
        into[j] += weight * from[j];
}

/* Positions or speeds of the links as the gears see them, C q; in `buffer` if the transmission is coupled. */
static inline const double *NAME(at_gears)(const machine *r, const double *q, double *buffer)
{
    Py_ssize_t n = r->robot->dof;
    if (r->coupling == NULL)
        return q;
    for (Py_ssize_t i = 0; i < n; i++) {
        buffer[i] = 0.0;
        for (Py_ssize_t k = 0; k < n; k++)
            buffer[i] += r->coupling[i * n + k] * q[k];
    }
    return buffer;
}

/* Torques on the links, Cᵀ τ, from those of the gears. */
static inline void NAME(couple)(machine *r)
{
    Py_ssize_t n = r->robot->dof;
    memcpy(r->gear_torque, r->link_torque, (size_t)n * sizeof(double));
    memset(r->link_torque, 0, (size_t)n * sizeof(double));
    for (Py_ssize_t k = 0; k < n; k++)
        NAME(gather)(n, r->gear_torque[k], r->coupling + k * n, r->link_torque);
}

/* Accelerations of a stage under constant friction; adds the powers, times `weight`, to the accounts. */
static void NAME(derivatives)(machine *r, int stage, const double *q, const double *qd, const double *theta,
                              const double *w, double weight, double *external)
{
    Py_ssize_t n = r->robot->dof;
    const double *remains = stage == START ? NULL : (stage == END ? r->whole : r->half);
    const double *side = NAME(at_gears)(r, q, r->link_side), *turn = NAME(at_gears)(r, qd, r->link_speed);
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &r->laws[j];
        double motor = NAME(motor_torque)(r, j, remains ? remains[j] : 1.0);
        if (joint->flexible == 0.0) {
            r->link_torque[j] = motor - r->friction[j];
            r->net[j] = 0.0;
            r->supplied[j] += weight * motor * qd[j];
            NAME(draw)(r, j, motor, qd[j], weight);
            continue;
        }
        twist *gear = stage == START ? &r->gears[j] : &r->stage_gears[j];
        if (stage == AGAIN)
            set_twist_speed(&joint->gear, turn[j], w[j], gear);
        else if (stage == END)
            r->middle[j] = gear->lost.slope;
        if (stage == MIDDLE || stage == END)
            *gear = twist_at(&joint->gear, &r->anchors[j], NAME(map_of)(r, j), side[j], turn[j], theta[j], w[j]);
        r->link_torque[j] = gear->torque;
        r->net[j] = motor - gear->ratio * gear->torque - r->friction[j];
        r->k_wd[j] = r->net[j] * r->per_inertia[j];
        r->supplied[j] += weight * motor * w[j];
        NAME(draw)(r, j, motor, w[j], weight);
        r->damped[j] += weight * joint->gear.damping * gear->speed * gear->speed;
    }
    if (r->coupling != NULL)
        NAME(couple)(r);
    if (r->locked)
        memset(r->k_qdd, 0, (size_t)n * sizeof(double));
    else
        *external += weight * NAME(accelerations)(r, stage != AGAIN, q, qd, w);
    for (Py_ssize_t j = 0; j < n; j++) {
        if (r->laws[j].flexible == 0.0) {
            r->k_wd[j] = r->k_qdd[j];
        } else if (j > 0 && r->laws[j].spin != 0.0 && !r->locked) {
            double spun = NAME(dot)(r->arm.fixed[j].z, r->arm.turning[j - 1]);
            r->k_wd[j] -= r->laws[j].spin * r->per_inertia[j] * spun;
        }
    }
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
    memset(r->path_qdd, 0, 4 * (size_t)n * sizeof(double));
    NAME(derivatives)(r, START, at->q, at->qd, at->theta, at->w, h / 6.0, at->external);
    for (int stage = START; stage <= END; stage++) {
        if (stage != START)
            NAME(derivatives)(r, stage, r->stage_q, r->stage_qd, r->stage_theta, r->stage_w, h * sixths[stage] / 6.0,
                              at->external);
        if (stage != END) {
            NAME(gather)(2 * n, 1.0, r->k_qdd, r->path_qdd);
            NAME(lean)(r, h, stage == AGAIN ? 0.5 : 0.125, stage == AGAIN ? 1.0 : 0.5, stage != MIDDLE);
        }
        NAME(gather)(2 * n, sixths[stage], r->k_qdd, r->sum_qdd);
    }
    for (Py_ssize_t j = 0; j < n; j++) {
        at->q[j] += h * (at->qd[j] + h / 6.0 * r->path_qdd[j]);
        at->theta[j] += h * (at->w[j] + h / 6.0 * r->path_wd[j]);
    }
    NAME(gather)(n, h / 6.0, r->sum_qdd, at->qd);
    NAME(gather)(n, h / 6.0, r->sum_wd, at->w);
}

/* Stage of a plain arm: accelerations k at q, v under the motors; v times their torque, times `weight`, is supplied. */
INLINED void NAME(plain_stage)(Py_ssize_t n, machine *r, const double *remains, int fresh, const double *q,
                               const double *v, double weight, double *k)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        double motor = NAME(motor_torque)(r, j, remains ? remains[j] : 1.0);
        r->link_torque[j] = motor;
        r->supplied[j] += weight * motor * v[j];
        NAME(draw)(r, j, motor, v[j], weight);
    }
    *r->at.external += weight * NAME(forward_dynamics)(r->robot, &r->arm, &r->bodies, fresh, q, v, r->link_torque, k);
}

/* `smooth_step` of an arm that is only links: the same method without gears, friction and a second set of coordinates. */
INLINED void NAME(plain_step_of)(Py_ssize_t n, machine *r, double h)
{
    state *at = &r->at;
    double *x = r->stage_q, *v = r->stage_qd;
    double *first = r->path_qdd, *second = r->path_wd, *third = r->sum_qdd, *last = r->sum_wd;
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
        double move = h * (at->qd[j] + h / 6.0 * (first[j] + second[j] + third[j]));
        double change = h / 6.0 * (first[j] + 2.0 * (second[j] + third[j]) + last[j]);
        at->q[j] += move, at->theta[j] += move;
        at->qd[j] += change, at->w[j] += change;
        r->drive[j] = NAME(motor_torque)(r, j, r->whole[j]);
        at->load[j] = r->drive[j] - r->laws[j].inertia * change / h; /* motor torque less that of the rotor: for the links */
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

/* Friction at a speed, load, temperature and position, over a step of h seconds that ends at theta. */
static void NAME(set_friction)(const joint_terms *law, const double *memory, double h, jw_input *in, double theta,
                               step_friction *f)
{
    if (law->plain)
        begin_friction(law, memory, h, in, theta, 1, f);
    else
        begin_friction(law, memory, h, in, theta, 0, f);
}

/* Friction of this step, its levels at the speed and load in the middle. */
static void NAME(begin_friction)(machine *r, double h)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        state *at = &r->at;
        double load = at->load[j], speed = at->w[j];
        if (joint->flexible != 0.0) {
            const twist *gear = &r->gears[j];
            speed += 0.5 * h * (r->drive[j] - gear->torque - at->friction[j]) * r->per_inertia[j];
            load = spring_torque(&joint->gear.spring, gear->phi + 0.5 * h * gear->speed) + joint->gear.damping * gear->speed;
        }
        r->mid_speed[j] = speed;
        jw_input in = {.speed = speed, .load = load, .temperature = at->temperature[j],
                       .position = at->theta[j] + 0.5 * h * speed};
        step_friction *f = &r->step_laws[j];
        const double *memory = at->memory + j * at->elements;
        double theta = at->theta[j] + h * speed;
        NAME(set_friction)(&r->terms[j], memory, h, &in, theta, f);
    }
}

/* Mean friction torque of a step whose displacement without friction is `free`. */
static double NAME(friction_torque)(const step_friction *f, double free, double G)
{
    return f->law->plain ? solve_friction(f, free, G, 1) : solve_friction(f, free, G, 0);
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
            r->friction[j] = NAME(friction_torque)(&r->step_laws[j], free, X[j * n + j]);
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
        r->friction[j] = NAME(friction_torque)(&r->step_laws[j], free, r->per_inertia[j]);
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
static double NAME(move_elements)(machine *r, Py_ssize_t j, double move, double h)
{
    step_friction *f = &r->step_laws[j];
    set_backlash(f, r->at.theta[j], f->law->plain);
    double dry = f->law->plain ? dry_mean(f, move, 1).mean : dry_mean(f, move, 0).mean;
    double mean = dry + f->factor * move / h + f->constant;
    deform(f, r->mid_speed[j], move, r->at.memory + j * r->at.elements);
    return mean;
}

/* Corrects the momentum by the difference between the friction that acted and that of the displacement. The work counted is
 * that of the law; the rest of the impulse's work, O(h⁴), is integration error and shows in the energy balance. */
static void NAME(finish_friction)(machine *r, const double *theta_before, double h)
{
    Py_ssize_t n = r->robot->dof;
    state *at = &r->at;
    double *impulse = r->net;
    for (Py_ssize_t j = 0; j < n; j++) {
        double move = at->theta[j] - theta_before[j], acted = r->friction[j];
        at->friction[j] = NAME(move_elements)(r, j, move, h);
        impulse[j] = h * (acted - at->friction[j]);
        if (r->laws[j].flexible != 0.0) {
            at->w[j] += impulse[j] * r->per_inertia[j];
            impulse[j] = 0.0;
        }
        double work = at->friction[j] * move;
        at->worked[j] += work;
        r->heat[j] += work - r->step_laws[j].constant * move; /* a constant torque or a spring heats nothing */
    }
    if (!r->rigid_friction || r->locked)
        return;
    for (Py_ssize_t j = 0; j < n; j++)
        NAME(gather)(n, impulse[j], r->inverse + j * n, at->qd);
    for (Py_ssize_t j = 0; j < n; j++)
        if (r->laws[j].flexible == 0.0)
            at->w[j] = at->qd[j];
}

/* Gears at the start of a step. */
static void NAME(read_gears)(machine *r)
{
    const state *at = &r->at;
    const double *side = NAME(at_gears)(r, at->q, r->link_side), *turn = NAME(at_gears)(r, at->qd, r->link_speed);
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->flexible == 0.0)
            continue;
        anchor_gear(&joint->gear, at->theta[j], at->play[j], &r->anchors[j]);
        r->gears[j] = twist_at(&joint->gear, &r->anchors[j], NAME(map_of)(r, j), side[j], turn[j], at->theta[j], at->w[j]);
        at->load[j] = r->gears[j].torque;
    }
}

/* Mean slope of the lost motion over a step in which it jumps: weighted by time where the rotor reverses, else by displacement. */
static inline double NAME(mean_slope)(const twist *start, const twist *end, double w_start, double w_end, double move)
{
    if (w_start * w_end >= 0.0 && move != 0.0)
        return (end->lost.lag - start->lost.lag) / move;
    double part = w_end != w_start ? w_start / (w_start - w_end) : 0.5;
    return start->lost.slope + (1.0 - part) * (end->lost.slope - start->lost.slope);
}

/* The teeth take the displacement of the step; where the torque ratio jumped, an impulse corrects what the stages used. */
static void NAME(change_flank)(machine *r, const double *theta_before, const double *w_before, double h)
{
    state *at = &r->at;
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        if (joint->flexible == 0.0 || joint->gear.lost == 0.0)
            continue;
        const twist *start = &r->gears[j], *end = &r->stage_gears[j];
        double move = at->theta[j] - theta_before[j];
        at->play[j] = jw_clamp(at->play[j] + move * joint->gear.per_reach, 1.0);
        if (start->lost.moves == end->lost.moves)
            continue;
        double seen = (start->lost.slope + 4.0 * r->middle[j] + end->lost.slope) / 6.0;
        double missed = NAME(mean_slope)(start, end, w_before[j], at->w[j], move) - seen;
        at->w[j] += 0.5 * h * missed * (start->torque + end->torque) * r->per_inertia[j];
    }
}

/* Transmitted torque of rigid joints: that of the motor less friction and the inertia of the rotor. */
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
    NAME(heat_windings)(r, h);
    if (r->plain) {
        NAME(plain_step)(r, h);
        return;
    }
    memcpy(theta_before, at->theta, (size_t)n * sizeof(double));
    memcpy(w_before, at->w, (size_t)n * sizeof(double));
    if (r->has_friction)
        NAME(predict_friction)(r, h);
    NAME(smooth_step)(r, h);
    NAME(change_flank)(r, theta_before, w_before, h);
    if (r->has_friction)
        NAME(finish_friction)(r, theta_before, h);
    for (Py_ssize_t j = 0; j < n; j++)
        r->drive[j] = NAME(motor_torque)(r, j, r->whole[j]);
    NAME(remember_load)(r, w_before, h);
    NAME(read_gears)(r);
}
