/* The calibrated robot at run time; see runtime.h. */
#include "runtime.h"

#include <string.h>

/* -- vectors -- */

typedef struct {
    jw_real x, y, z;
} vec;

JW_INLINE vec vector(const jw_real *v) { return (vec){v[0], v[1], v[2]}; }
JW_INLINE vec add(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
JW_INLINE vec scaled(vec a, jw_real s) { return (vec){a.x * s, a.y * s, a.z * s}; }
JW_INLINE vec cross(vec a, vec b)
{
    return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
/* R v and R^T v of a matrix by rows. */
JW_INLINE vec times(const jw_real *R, vec v)
{
    return (vec){R[0] * v.x + R[1] * v.y + R[2] * v.z, R[3] * v.x + R[4] * v.y + R[5] * v.z,
                 R[6] * v.x + R[7] * v.y + R[8] * v.z};
}
JW_INLINE vec transposed_times(const jw_real *R, vec v)
{
    return (vec){R[0] * v.x + R[3] * v.y + R[6] * v.z, R[1] * v.x + R[4] * v.y + R[7] * v.z,
                 R[2] * v.x + R[5] * v.y + R[8] * v.z};
}
/* I v of a symmetric tensor XX XY XZ YY YZ ZZ. */
JW_INLINE vec tensor_times(const jw_real *I, vec v)
{
    return (vec){I[0] * v.x + I[1] * v.y + I[2] * v.z, I[1] * v.x + I[3] * v.y + I[4] * v.z,
                 I[2] * v.x + I[4] * v.y + I[5] * v.z};
}

/* -- coupled transmission -- */

/* A x, or A^T x, of a matrix by rows; x itself where there is no matrix. */
static void product(const jw_model *model, const jw_real *A, int transposed, const jw_real *x, jw_real *result)
{
    int n = model->joints;
    for (int i = 0; i < n; i++) {
        result[i] = A ? JW(0.0) : x[i];
        for (int k = 0; A && k < n; k++)
            result[i] += A[transposed ? k * n + i : i * n + k] * x[k];
    }
}

void jw_to_motors(const jw_model *model, const jw_real *joints, jw_real *motors)
{
    product(model, model->coupling, 0, joints, motors);
}
void jw_to_joints(const jw_model *model, const jw_real *motors, jw_real *joints)
{
    product(model, model->decoupling, 0, motors, joints);
}
void jw_motor_torque(const jw_model *model, const jw_real *joints, jw_real *motors)
{
    product(model, model->decoupling, 1, joints, motors);
}
void jw_joint_torque(const jw_model *model, const jw_real *motors, jw_real *joints)
{
    product(model, model->coupling, 1, motors, joints);
}

/* Positions of the motors, in `buffer` if the transmission is coupled; NULL of NULL. */
JW_INLINE const jw_real *at_motors(const jw_model *model, const jw_real *joints, jw_real *buffer)
{
    if (!model->coupling || !joints)
        return joints;
    jw_to_motors(model, joints, buffer);
    return buffer;
}

/* Adds the torque of the motors to that of the joints. */
JW_INLINE void add_motor_torque(const jw_model *model, const jw_real *motors, jw_real *torque)
{
    jw_real joints[JW_MOST_JOINTS];
    if (model->coupling)
        jw_joint_torque(model, motors, joints);
    for (int j = 0; j < model->joints; j++)
        torque[j] += model->coupling ? joints[j] : motors[j];
}

/* -- bodies: recursive Newton-Euler, all vectors of link j in frame {j} -- */

/* A joint at its position: cosine and sine of a revolute one, the origin of {j} in {j-1}. */
typedef struct {
    jw_real c, s;
    vec p;
} placed;

JW_INLINE placed place(const jw_joint *joint, jw_real q)
{
    if (joint->revolute)
        return (placed){jw_cos(q), jw_sin(q), vector(joint->translation)};
    vec axis = {joint->rotation[2], joint->rotation[5], joint->rotation[8]};
    return (placed){JW(1.0), JW(0.0), add(vector(joint->translation), scaled(axis, q))};
}

/* From {j-1} to {j}, and back. */
JW_INLINE vec outward(const jw_joint *joint, const placed *at, vec v)
{
    v = transposed_times(joint->rotation, v);
    return (vec){at->c * v.x + at->s * v.y, at->c * v.y - at->s * v.x, v.z};
}
JW_INLINE vec inward(const jw_joint *joint, const placed *at, vec v)
{
    return times(joint->rotation, (vec){at->c * v.x - at->s * v.y, at->s * v.x + at->c * v.y, v.z});
}

/* Angular velocity, its derivative, acceleration of the origin less gravity. */
typedef struct {
    vec w, wd, a;
} motion;

JW_INLINE motion next_motion(const jw_joint *joint, const placed *at, const motion *before, jw_real qd, jw_real qdd)
{
    vec p = at->p;
    vec a = add(before->a, add(cross(before->wd, p), cross(before->w, cross(before->w, p))));
    motion link = {outward(joint, at, before->w), outward(joint, at, before->wd), outward(joint, at, a)};
    if (joint->revolute) { /* wd + w x z qd + z qdd */
        link.wd = add(link.wd, (vec){link.w.y * qd, -link.w.x * qd, qdd});
        link.w.z += qd;
    } else { /* a + 2 w x z qd + z qdd */
        link.a = add(link.a, (vec){JW(2.0) * link.w.y * qd, JW(-2.0) * link.w.x * qd, qdd});
    }
    return link;
}

/* Force and moment about the origin that move a body of ten parameters. */
JW_INLINE void body_wrench(const jw_real *body, const motion *link, vec *force, vec *moment)
{
    vec mc = vector(body + 6), w = link->w;
    vec Iw = tensor_times(body, w);
    *force = add(scaled(link->a, body[9]), add(cross(link->wd, mc), cross(w, cross(w, mc))));
    *moment = add(tensor_times(body, link->wd), add(cross(w, Iw), cross(mc, link->a)));
}

/* Inertia of the rotor among the terms of a joint. */
JW_INLINE jw_real term_inertia(const jw_joint *joint)
{
    jw_real sum = JW(0.0);
    for (int k = 0; k < joint->terms; k++)
        if (jw_term_role(&joint->term[k]) == JW_ROLE_ROTOR)
            sum += joint->term[k].number[0];
    return sum;
}

enum { BODY_ROTORS, LOAD_ROTORS, TERM_ROTORS }; /* rotors of the bodies, of the load torque, of the terms */

JW_INLINE jw_real rotor_inertia(const jw_joint *joint, int which)
{
    return which == TERM_ROTORS ? term_inertia(joint) : which == LOAD_ROTORS ? joint->load_rotor : joint->rotor;
}

/* Adds the torque of rotors, C^T I C qdd. */
JW_INLINE void add_rotors(const jw_model *model, int which, const jw_real *qdd, jw_real *torque)
{
    jw_real buffer[JW_MOST_JOINTS], motors[JW_MOST_JOINTS] = {0};
    const jw_real *spin = at_motors(model, qdd, buffer);
    for (int j = 0; j < model->joints; j++)
        motors[j] = rotor_inertia(&model->joint[j], which) * spin[j];
    add_motor_torque(model, motors, torque);
}

/* Torque of the bodies; with `load` that of the bodies of the load torque. */
JW_INLINE void newton_euler(const jw_model *model, const placed *at, const jw_real *qd, const jw_real *qdd,
                            const jw_real *gravity, int load, jw_real *torque)
{
    vec forces[JW_MOST_JOINTS], moments[JW_MOST_JOINTS], force = {JW(0.0), JW(0.0), JW(0.0)}, moment = force;
    motion link = {force, force, scaled(vector(gravity), JW(-1.0))};
    for (int j = 0; j < model->joints; j++) {
        const jw_joint *joint = &model->joint[j];
        link = next_motion(joint, &at[j], &link, qd[j], qdd[j]);
        body_wrench(load ? joint->load_inertial : joint->inertial, &link, &forces[j], &moments[j]);
    }
    for (int j = model->joints - 1; j >= 0; j--) {
        const jw_joint *joint = &model->joint[j];
        force = add(force, forces[j]);
        moment = add(moment, moments[j]);
        torque[j] = joint->revolute ? moment.z : force.z;
        force = inward(joint, &at[j], force);
        moment = add(inward(joint, &at[j], moment), cross(at[j].p, force));
    }
    add_rotors(model, load ? LOAD_ROTORS : BODY_ROTORS, qdd, torque);
}

static void place_all(const jw_model *model, const jw_real *q, placed *at)
{
    for (int j = 0; j < model->joints; j++)
        at[j] = place(&model->joint[j], q[j]);
}

void jw_body_torque(const jw_model *model, const jw_real *q, const jw_real *qd, const jw_real *qdd, jw_real *torque)
{
    placed at[JW_MOST_JOINTS];
    place_all(model, q, at);
    newton_euler(model, at, qd, qdd, model->gravity, 0, torque);
}

void jw_mass_matrix(const jw_model *model, const jw_real *q, jw_real *M)
{
    placed at[JW_MOST_JOINTS];
    jw_real none[JW_MOST_JOINTS] = {0}, unit[JW_MOST_JOINTS] = {0};
    int n = model->joints;
    place_all(model, q, at);
    for (int j = 0; j < n; j++) {
        unit[j] = JW(1.0);
        newton_euler(model, at, none, unit, none, 0, M + j * n); /* M is symmetric: its column is its row */
        add_rotors(model, TERM_ROTORS, unit, M + j * n);
        unit[j] = JW(0.0);
    }
}

void jw_inertia_torque(const jw_model *model, const jw_real *q, const jw_real *x, jw_real *torque)
{
    placed at[JW_MOST_JOINTS];
    jw_real none[JW_MOST_JOINTS] = {0};
    place_all(model, q, at);
    newton_euler(model, at, none, x, none, 0, torque);
    add_rotors(model, TERM_ROTORS, x, torque);
}

void jw_body_columns(const jw_model *model, const jw_real *q, const jw_real *qd, const jw_real *qdd,
                     const jw_real (*bodies)[10], int count, jw_real *columns)
{
    placed at[JW_MOST_JOINTS];
    vec none = {JW(0.0), JW(0.0), JW(0.0)};
    motion link = {none, none, scaled(vector(model->gravity), JW(-1.0))};
    place_all(model, q, at);
    for (int j = 0; j < model->joints; j++)
        link = next_motion(&model->joint[j], &at[j], &link, qd[j], qdd[j]);
    for (int k = 0; k < count; k++) {
        vec force, moment;
        body_wrench(bodies[k], &link, &force, &moment);
        for (int j = model->joints - 1; j >= 0; j--) {
            const jw_joint *joint = &model->joint[j];
            columns[j * count + k] = joint->revolute ? moment.z : force.z;
            force = inward(joint, &at[j], force);
            moment = add(inward(joint, &at[j], moment), cross(at[j].p, force));
        }
    }
}

/* -- memory of friction -- */

/* A state is: whether a sample came before; for every joint the integrated measured speed and the last measured speed;
 * then what each term remembers. */
#define JOINT_MEMORY 2

int jw_memory(const jw_model *model)
{
    int size = 1 + JOINT_MEMORY * model->joints;
    for (int j = 0; j < model->joints; j++)
        for (int k = 0; k < model->joint[j].terms; k++)
            size += jw_term_memory(&model->joint[j].term[k]);
    return size > JW_MOST_MEMORY || model->joints > JW_MOST_JOINTS ? -1 : size;
}

void jw_init(const jw_model *model, const jw_real *q, const jw_real *rotor, jw_state *state)
{
    jw_real buffer[JW_MOST_JOINTS];
    q = at_motors(model, q, buffer);
    memset(state, 0, sizeof(*state));
    jw_real *memory = state->memory + 1 + JOINT_MEMORY * model->joints;
    for (int j = 0; j < model->joints; j++)
        for (int k = 0; k < model->joint[j].terms; k++) {
            const jw_term *term = &model->joint[j].term[k];
            int size = jw_term_memory(term);
            if (jw_term_role(term) == JW_ROLE_SLIP)
                memory[size - 1] = term->driver == JW_DRIVER_ROTOR && rotor ? rotor[j] : q[j];
            memory += size;
        }
}

/* -- terms -- */

/* Torque of all terms of a joint; `memory` is moved to that of the next joint. */
JW_INLINE jw_real joint_terms(const jw_joint *joint, jw_input *in, jw_real **memory)
{
    jw_real torque = JW(0.0);
    for (int k = 0; k < joint->terms; k++) {
        torque += jw_part_torque(jw_term_part(&joint->term[k], in, *memory), in->speed);
        *memory += jw_term_memory(&joint->term[k]);
    }
    return torque;
}

/* The integral of the measured speed that follows the encoder slowly; the position at the first sample. */
JW_INLINE jw_real track(const jw_model *model, const jw_state *state, jw_real q, jw_real speed, jw_real *memory)
{
    jw_real predicted = memory[0] + JW(0.5) * (speed + memory[1]) * model->period;
    memory[0] = state->memory[0] == JW(0.0) ? q : predicted + model->track * (q - predicted);
    memory[1] = speed;
    return memory[0];
}

/* A sample whose positions, speeds and accelerations are those of the motors, in `buffer` if they are coupled. */
JW_INLINE jw_sample motor_sample(const jw_model *model, const jw_sample *in, jw_real buffer[5][JW_MOST_JOINTS])
{
    jw_sample motors = *in;
    motors.q = at_motors(model, in->q, buffer[0]);
    motors.qd = at_motors(model, in->qd, buffer[1]);
    motors.qdd = at_motors(model, in->qdd, buffer[2]);
    motors.speed = at_motors(model, in->speed, buffer[3]);
    motors.path = at_motors(model, in->path, buffer[4]);
    return motors;
}

/* What the terms of a motor depend on; `in` is a sample of the motors. */
JW_INLINE jw_input gather(const jw_model *model, jw_state *state, const jw_sample *in, int j, jw_real load)
{
    jw_real path = in->path ? in->path[j] : in->q[j];
    jw_input s = {.speed = in->qd[j], .load = load, .path = {path, path, in->rotor ? in->rotor[j] : path}};
    s.position = in->q[j];
    s.acceleration = in->qdd ? in->qdd[j] : JW(0.0);
    s.temperature = in->temperature ? in->temperature[j] : model->joint[j].reference;
    if (in->speed) {
        s.path[JW_DRIVER_TRACK] = track(model, state, in->q[j], in->speed[j], state->memory + 1 + JOINT_MEMORY * j);
        s.ripple = in->speed[j] - in->qd[j];
    }
    return s;
}

void jw_step(const jw_model *model, jw_state *state, const jw_sample *sample, jw_real *torque)
{
    placed at[JW_MOST_JOINTS];
    jw_real buffer[5][JW_MOST_JOINTS], body[JW_MOST_JOINTS], load[JW_MOST_JOINTS], friction[JW_MOST_JOINTS] = {0};
    jw_real *memory = state->memory + 1 + JOINT_MEMORY * model->joints;
    const jw_sample motors = motor_sample(model, sample, buffer);
    place_all(model, sample->q, at);
    newton_euler(model, at, sample->qd, sample->qdd, model->gravity, 0, torque);
    if (model->other_load)
        newton_euler(model, at, sample->qd, sample->qdd, model->gravity, 1, body);
    jw_motor_torque(model, model->other_load ? body : torque, load);
    for (int j = 0; j < model->joints; j++) {
        jw_input in = gather(model, state, &motors, j, load[j]);
        friction[j] = joint_terms(&model->joint[j], &in, &memory);
    }
    add_motor_torque(model, friction, torque);
    state->memory[0] = JW(1.0);
}

void jw_smooth_torque(const jw_model *model, const jw_sample *sample, jw_real *torque)
{
    jw_real buffer[5][JW_MOST_JOINTS], smooth[JW_MOST_JOINTS] = {0};
    jw_sample motors = motor_sample(model, sample, buffer);
    motors.speed = NULL; /* no term below looks at the ripple of a measured speed */
    for (int j = 0; j < model->joints; j++) {
        jw_input in = gather(model, NULL, &motors, j, JW(0.0));
        smooth[j] = torque[j] = JW(0.0);
        for (int k = 0; k < model->joint[j].terms; k++) {
            const jw_term *term = &model->joint[j].term[k];
            int role = jw_term_role(term);
            if (role == JW_ROLE_SMOOTH || role == JW_ROLE_ROTOR)
                smooth[j] += jw_part_torque(jw_term_part(term, &in, NULL), in.speed);
        }
    }
    add_motor_torque(model, smooth, torque);
}

void jw_output(const jw_model *model, const jw_real *torque, jw_real *output)
{
    jw_real motors[JW_MOST_JOINTS];
    jw_motor_torque(model, torque, motors);
    for (int j = 0; j < model->joints; j++)
        output[j] = motors[j] / model->joint[j].gain;
}

/* -- motion of a torque -- */

#define MOST_ITERATIONS 40

#define LOAD_ITERATIONS 30

/* Least part of a torque that friction in proportion to the load leaves. */
#define LEAST_SHARE JW(0.1)

/* Speed (rad/s) over which the sign of a speed turns while a motion is integrated: a jump has no solution at rest. */
#define SHARPEST JW(1e-6)

#ifdef JW_FLOAT
#define SMALL_STEP JW(1e-4)      /* rad/s, for the slope of friction */
#define SMALLEST_CHANGE JW(1e-6) /* of a speed in the last iteration, relative to its size */
#else
#define SMALL_STEP JW(1e-8)
#define SMALLEST_CHANGE JW(1e-12)
#endif

int jw_factorize(int n, jw_real *M)
{
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            jw_real sum = M[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= M[i * n + k] * M[j * n + k];
            if (i == j && !(sum > JW(0.0)))
                return 0;
            M[i * n + j] = i == j ? jw_sqrt(sum) : sum / M[j * n + j];
        }
    return 1;
}

void jw_solve(int n, const jw_real *L, jw_real *x)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= L[i * n + k] * x[k];
        x[i] /= L[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            x[i] -= L[k * n + i] * x[k];
        x[i] /= L[i * n + i];
    }
}

/* One period of motion that is being solved for, in coordinates of the motors, where friction is that of each speed. */
typedef struct {
    const jw_model *model;
    const jw_state *start;
    const placed *at;
    const jw_real *torque, *temperature, *q, *qd;
} move;

/* Friction of all joints at the end of a period with speeds v and load torques, starting at the memory before it;
 * `after` receives the memory. */
static void friction_at(const move *m, const jw_real *v, const jw_real *load, jw_real *friction, jw_state *after)
{
    const jw_model *model = m->model;
    jw_real position[JW_MOST_JOINTS];
    jw_sample sample = {.q = position, .qd = v, .temperature = m->temperature};
    *after = *m->start;
    jw_real *memory = after->memory + 1 + JOINT_MEMORY * model->joints;
    for (int j = 0; j < model->joints; j++)
        position[j] = m->q[j] + model->period * v[j];
    for (int j = 0; j < model->joints; j++) {
        jw_input in = gather(model, after, &sample, j, load[j]);
        in.sharpest = SHARPEST;
        friction[j] = joint_terms(&model->joint[j], &in, &memory);
    }
    after->memory[0] = JW(1.0);
}

/* How the friction of a joint depends on its load: in one way, or mixed. */
static int load_law(const jw_joint *joint)
{
    int law = JW_LOAD_NONE;
    for (int k = 0; k < joint->terms; k++) {
        int load = joint->term[k].load;
        if (load != JW_LOAD_NONE)
            law = law == JW_LOAD_NONE || law == load ? load : JW_LOAD_MIXED;
    }
    return law;
}

/* The load x with x + b growth(x) = c, on the branch through x = c at b = 0; the fold of it where there is none. */
JW_INLINE jw_real solve_load(int law, jw_real b, jw_real c)
{
    if (law == JW_LOAD_SQUARE)
        return JW(2.0) * c / (JW(1.0) + jw_sqrt(jw_fmax(JW(1.0) + JW(4.0) * b * c, JW(0.0))));
    if (law == JW_LOAD_ABSOLUTE)
        return c / jw_fmax(c < JW(0.0) ? JW(1.0) - b : JW(1.0) + b, LEAST_SHARE);
    return c;
}

/* Load torque of the load bodies at speeds v and accelerations. */
static void other_load(const move *m, const jw_real *v, const jw_real *acceleration, jw_real *load)
{
    jw_real qd[JW_MOST_JOINTS], qdd[JW_MOST_JOINTS], torque[JW_MOST_JOINTS];
    jw_to_joints(m->model, v, qd);
    jw_to_joints(m->model, acceleration, qdd);
    newton_euler(m->model, m->at, qd, qdd, m->model->gravity, 1, torque);
    jw_motor_torque(m->model, torque, load);
}

/* Friction of all joints at speeds v, with the load torque that it leaves of the motor torque, or that of the load
 * bodies. Friction is linear in the growth with the load, which is 0 and 1 at the loads 0 and 1; what is not is iterated. */
static void loaded_friction(const move *m, const jw_real *v, jw_real *friction, jw_state *after)
{
    const jw_model *model = m->model;
    jw_real none[JW_MOST_JOINTS] = {0}, unit[JW_MOST_JOINTS], load[JW_MOST_JOINTS] = {0}, qdd[JW_MOST_JOINTS] = {0};
    jw_real grown[JW_MOST_JOINTS], rest[JW_MOST_JOINTS];
    int mixed = 0;
    for (int j = 0; j < model->joints; j++) {
        unit[j] = JW(1.0);
        qdd[j] = (v[j] - m->qd[j]) / model->period;
        rest[j] = m->torque[j] - term_inertia(&model->joint[j]) * qdd[j];
    }
    friction_at(m, v, none, friction, after);
    friction_at(m, v, unit, grown, after);
    if (model->other_load)
        other_load(m, v, qdd, load);
    for (int j = 0; j < model->joints; j++) {
        int law = load_law(&model->joint[j]);
        jw_real b = grown[j] - friction[j];
        mixed |= law == JW_LOAD_MIXED;
        if (!model->other_load)
            load[j] = solve_load(law, b, rest[j] - friction[j]);
        friction[j] += law == JW_LOAD_MIXED ? JW(0.0) : b * jw_load_growth(load[j], law);
    }
    for (int k = 0; mixed && k < LOAD_ITERATIONS; k++) {
        friction_at(m, v, load, grown, after);
        for (int j = 0; j < model->joints; j++)
            if (load_law(&model->joint[j]) == JW_LOAD_MIXED) {
                friction[j] = grown[j];
                if (!model->other_load)
                    load[j] += JW(0.5) * (rest[j] - friction[j] - load[j]);
            }
    }
}

/* Slope of the friction of every joint between two speeds; over a small step where they are equal. */
static void slopes(const move *m, const jw_real *v, const jw_real *last, const jw_real *friction,
                   const jw_real *last_friction, jw_real *slope)
{
    jw_real beside[JW_MOST_JOINTS] = {0}, other[JW_MOST_JOINTS];
    jw_state unused;
    for (int j = 0; j < m->model->joints; j++)
        beside[j] = v[j] + SMALL_STEP * (JW(1.0) + jw_fabs(v[j]));
    loaded_friction(m, beside, other, &unused);
    for (int j = 0; j < m->model->joints; j++) {
        jw_real local = (other[j] - friction[j]) / (beside[j] - v[j]), chord = JW(0.0);
        if (v[j] != last[j])
            chord = (friction[j] - last_friction[j]) / (v[j] - last[j]);
        slope[j] = jw_fmax(jw_fmax(local, chord), JW(0.0));
    }
}

/* One step of Newton's method for M (v - v0) / h + f(v) = rest, the Jacobian made of M / h and the slopes; returns the
 * largest change of a speed relative to its size, or -1 if the Jacobian is not positive definite. */
static jw_real improve(int n, const jw_real *M, jw_real h, const jw_real *v0, const jw_real *rest, const jw_real *friction,
                       const jw_real *slope, jw_real *v)
{
    jw_real J[JW_MOST_JOINTS * JW_MOST_JOINTS], step[JW_MOST_JOINTS], change = JW(0.0);
    for (int i = 0; i < n; i++) {
        step[i] = h * (rest[i] - friction[i]);
        for (int k = 0; k < n; k++) {
            J[i * n + k] = M[i * n + k] + (i == k ? h * slope[i] : JW(0.0));
            step[i] -= M[i * n + k] * (v[k] - v0[k]);
        }
    }
    if (!jw_factorize(n, J))
        return JW(-1.0);
    jw_solve(n, J, step);
    for (int i = 0; i < n; i++) {
        v[i] += step[i];
        change = jw_fmax(change, jw_fabs(step[i]) / (JW(1.0) + jw_fabs(v[i])));
    }
    return change;
}

void jw_motor_mass_matrix(const jw_model *model, jw_real *M)
{
    if (!model->coupling)
        return;
    int n = model->joints;
    jw_real column[JW_MOST_JOINTS] = {0}, half[JW_MOST_JOINTS * JW_MOST_JOINTS], row[JW_MOST_JOINTS];
    for (int i = 0; i < n; i++) /* rows of M C^-1 are C^-T times the columns of the symmetric M */
        jw_motor_torque(model, M + i * n, half + i * n);
    for (int k = 0; k < n; k++) {
        for (int i = 0; i < n; i++)
            column[i] = half[i * n + k];
        jw_motor_torque(model, column, row);
        memcpy(M + k * n, row, (size_t)n * sizeof(*row));
    }
}

/* Speeds v of the motors at the end of a period, with what friction then remembers; -1 without a solution. */
static int solve_move(const move *m, const jw_real *M, const jw_real *rest, jw_real *v, jw_state *after)
{
    int n = m->model->joints;
    jw_real last[JW_MOST_JOINTS], slope[JW_MOST_JOINTS], friction[JW_MOST_JOINTS] = {0};
    jw_real last_friction[JW_MOST_JOINTS] = {0}, change = JW(1.0);
    memcpy(v, m->qd, (size_t)n * sizeof(*v));
    memcpy(last, m->qd, (size_t)n * sizeof(*v));
    for (int k = 0; k < MOST_ITERATIONS && change > SMALLEST_CHANGE; k++) {
        loaded_friction(m, v, friction, after);
        slopes(m, v, last, friction, last_friction, slope);
        memcpy(last, v, (size_t)n * sizeof(*v));
        memcpy(last_friction, friction, sizeof(last_friction));
        if ((change = improve(n, M, m->model->period, m->qd, rest, friction, slope, v)) < JW(0.0))
            return -1;
    }
    loaded_friction(m, v, friction, after);
    return 0;
}

int jw_move(const jw_model *model, jw_state *state, const jw_real *torque, const jw_real *temperature, jw_real *q,
            jw_real *qd)
{
    int n = model->joints;
    jw_real h = model->period, middle[JW_MOST_JOINTS] = {0}, none[JW_MOST_JOINTS] = {0}, rest[JW_MOST_JOINTS];
    jw_real M[JW_MOST_JOINTS * JW_MOST_JOINTS], v[JW_MOST_JOINTS], force[JW_MOST_JOINTS] = {0}, motor[JW_MOST_JOINTS];
    jw_real theta[JW_MOST_JOINTS], speed[JW_MOST_JOINTS];
    placed at[JW_MOST_JOINTS];
    jw_state after;
    for (int j = 0; j < n; j++)
        middle[j] = q[j] + JW(0.5) * h * qd[j];
    place_all(model, middle, at);
    newton_euler(model, at, qd, none, model->gravity, 0, rest);
    for (int j = 0; j < n; j++)
        force[j] = torque[j] - rest[j];
    jw_mass_matrix(model, middle, M);
    jw_motor_mass_matrix(model, M);
    jw_motor_torque(model, force, rest);
    jw_motor_torque(model, torque, motor);
    jw_to_motors(model, q, theta);
    jw_to_motors(model, qd, speed);
    const move m = {model, state, at, motor, temperature, theta, speed};
    if (solve_move(&m, M, rest, v, &after) != 0)
        return -1;
    jw_to_joints(model, v, qd);
    for (int j = 0; j < n; j++)
        q[j] += h * qd[j];
    *state = after;
    return 0;
}
