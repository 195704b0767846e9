/* The digital robot: a serial arm with elastic joints, hysteretic friction, motors and a controller, one robot, one control
 * period at a time. The step within a period is in integrator.h.
 *
 * Included once per instruction set by plant.c, after integrator.h.
 */

/* The dry part along given positions at a level of 1, starting at the first: out is (samples, 2), its value there and its mean
 * since the sample before. */
static void NAME(follow)(const joint_terms *law, const double *theta, Py_ssize_t samples, double *memory, double *out)
{
    step_friction f;
    jw_input in = {.speed = 0.0};
    for (Py_ssize_t k = 0; k < samples; k++) {
        double move = k > 0 ? theta[k] - theta[k - 1] : 0.0;
        begin_friction(law, memory, 1.0, &in, theta[k], 0, &f);
        out[2 * k + 1] = dry_mean(&f, move, 0).mean;
        deform(&f, 0.0, move, memory);
        out[2 * k] = dry_mean(&f, 0.0, 0).mean;
    }
}

/* Friction and damping heat the joint, the ambient air cools it: C dT/dt = P - G (T - T_ambient), exact for constant P. */
static void NAME(change_temperature)(machine *r, const double *damped_before, double period)
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

/* The commanded motor torque of a control period, within the current limit. */
static void NAME(begin_period)(machine *r, const double *command)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const law *joint = &r->laws[j];
        double limit = joint->current_limit * joint->gain;
        r->goal[j] = jw_clamp(command[j], limit);
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
    NAME(change_temperature)(r, damped_before, period);
}

/* -- the controller -- */

/* Encoder positions, and speeds by their differences over a period; a count of 0 rad: no quantisation. */
static inline void NAME(read)(Py_ssize_t n, const double *counts, const double *now, const double *before, double period,
                              double *position, double *speed)
{
    for (Py_ssize_t j = 0; j < n; j++) {
        double count = counts[j] > 0.0 ? counts[j] : 1.0;
        double position_now = now[j] / count, last = before[j] / count;
        if (counts[j] > 0.0)
            position_now = rint(position_now), last = rint(last);
        position[j] = position_now * count;
        speed[j] = (position_now - last) * count / period;
    }
}

/* Torques u of the control law; scratch is (5, n). */
static void NAME(control)(machine *r, const controller *feedback, Py_ssize_t k, double period, double *scratch, double *u)
{
    Py_ssize_t n = r->robot->dof;
    double *error = scratch, *seen = scratch + n;
    const state *at = &r->at;
    const double *actual[4] = {at->q, at->qd, at->theta, at->w};
    if (feedback->counts != NULL) {
        NAME(read)(n, feedback->counts, at->q, at->q_before, period, seen, seen + n);
        NAME(read)(n, feedback->counts + n, at->theta, at->theta_before, period, seen + 2 * n, seen + 3 * n);
        for (int c = 0; c < 4; c++)
            actual[c] = seen + c * n;
    }
    if (feedback->model != NULL) {
        NAME(gravity_torque)(feedback->model, &r->model, actual[0], r->still, u);
        if (feedback->shares != NULL) {
            memcpy(error, u, (size_t)n * sizeof(double));
            memset(u, 0, (size_t)n * sizeof(double));
            for (Py_ssize_t j = 0; j < n; j++)
                for (Py_ssize_t i = 0; i < n; i++)
                    u[j] += feedback->shares[j * n + i] * error[i];
        }
    } else {
        memset(u, 0, (size_t)n * sizeof(double));
    }
    add_law(feedback, k, n, period, actual, r->at.integral, error, u);
}

/* -- many periods -- */

static void NAME(record)(const machine *r, const double *u, double *row)
{
    Py_ssize_t n = r->robot->dof;
    const state *at = &r->at;
    memcpy(row, at->q, 8 * (size_t)n * sizeof(double)); /* q to friction, as they lie in the state */
    memcpy(row + 8 * n, u, (size_t)n * sizeof(double));
    memcpy(row + 9 * n, at->supplied, 6 * (size_t)n * sizeof(double)); /* accounts and play */
    row += (RECORD_ROWS - 2) * n;
    for (Py_ssize_t j = 0; j < n; j++) {
        const law *joint = &r->laws[j];
        row[j] = row[n + j] = 0.0;
        if (joint->flexible != 0.0)
            row[j] = spring_energy(&joint->gear.spring, r->gears[j].phi);
        if (r->terms[j].memory == 0)
            continue;
        step_friction f;
        jw_input in = {.speed = at->w[j], .load = at->load[j], .temperature = at->temperature[j], .position = at->theta[j]};
        NAME(set_friction)(&r->terms[j], at->memory + j * at->elements, 1.0, &in, at->theta[j], &f);
        row[n + j] = dry_energy(&f);
    }
    row[2 * n] = *at->external;
}

static int NAME(is_in_range)(const machine *r)
{
    for (Py_ssize_t j = 0; j < r->robot->dof; j++) {
        const state *at = &r->at;
        if (!(fabs(at->w[j]) < FASTEST && fabs(at->qd[j]) < FASTEST && fabs(at->q[j]) < FARTHEST &&
              fabs(at->theta[j]) < FARTHEST && fabs(at->load[j]) < STRONGEST))
            return 0;
    }
    return 1;
}

/* Assigns the work space to the arrays of the machine. */
static machine NAME(assemble)(const task *job, char *memory)
{
    Py_ssize_t n = job->robot->dof;
    machine r = {.robot = job->robot, .laws = job->laws, .terms = job->terms, .table = job->table, .points = job->points,
                 .coupling = job->coupling,
                 .locked = job->locked, .at = job->at};
    memory = NAME(assign_links)(&r.model, n, NAME(assign_links)(&r.arm, n, memory));
    memory = NAME(assign_composite)(&r.bodies, n, memory);
    r.step_laws = (step_friction *)memory;
    r.anchors = (gear_anchor *)(r.step_laws + n);
    r.gears = (twist *)(r.anchors + n);
    r.stage_gears = r.gears + n;
    double *next = (double *)(r.stage_gears + n);
    double **one[22] = {&r.stage_q, &r.stage_qd, &r.stage_theta, &r.stage_w,   &r.k_qdd,  &r.k_wd, &r.path_qdd,
                        &r.path_wd,  &r.sum_qdd,  &r.sum_wd,      &r.drive,     &r.goal,   &r.friction, &r.link_torque,
                        &r.net,     &r.heat,     &r.half,        &r.whole,     &r.mid_speed, &r.per_inertia,
                        &r.middle,  &r.cooled};
    for (int k = 0; k < 22; k++, next += n)
        *one[k] = next;
    r.moved = next, next += 4 * n;
    r.inverse = next, next += n * n;
    r.still = next, next += n;
    r.link_side = next, r.link_speed = next + n, r.gear_torque = next + 2 * n, next += 3 * n;
    r.supplied = r.at.supplied, r.damped = r.at.damped;
    NAME(set_links)(&r.arm, job->robot, job->laws, job->tool);
    NAME(set_composite)(&r.bodies, job->robot, &r.arm);
    if (job->feedback.model != NULL)
        NAME(set_links)(&r.model, job->feedback.model, NULL, job->tool);
    memset(r.heat, 0, (size_t)n * sizeof(double));
    NAME(read_gears)(&r);
    r.plain = !job->locked;
    for (Py_ssize_t j = 0; j < n; j++) {
        double h = job->period / (double)job->substeps, lag = job->laws[j].lag;
        r.half[j] = lag > 0.0 ? exp(-0.5 * h / lag) : 0.0;
        r.whole[j] = lag > 0.0 ? exp(-h / lag) : 0.0;
        r.per_inertia[j] = 1.0 / job->laws[j].inertia;
        const law *joint = &job->laws[j];
        r.cooled[j] = joint->capacity > 0.0 ? exp(-joint->conductance * job->period / joint->capacity) : 0.0;
        int rigid = joint->flexible == 0.0, friction = r.terms[j].has_friction;
        r.has_friction |= friction;
        r.plain &= !friction && rigid;
        r.rigid_friction |= friction && rigid;
    }
    return r;
}

/* Runs the periods; returns the index of the first one after which the state is out of range, or -1. */
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
        NAME(control)(&r, &job->feedback, k, job->period, scratch, u);
        if (job->out != NULL)
            NAME(record)(&r, u, job->out + k * (RECORD_ROWS * n + 1));
        memcpy(r.at.q_before, r.at.q, (size_t)n * sizeof(double));
        memcpy(r.at.theta_before, r.at.theta, (size_t)n * sizeof(double));
        NAME(period)(&r, u, job->period, job->substeps);
        if (!NAME(is_in_range)(&r))
            return k;
    }
    return -1;
}
