/* Rigid-body algorithms of a serial chain on one lane of samples; the NumPy twin is model/rigid/numpy_kernels.py.
 *
 * Frame {j} sits on joint axis j, z along it. All vectors of link j are in {j}. Included once per instruction set.
 */

/* {j} in {j-1}: R = Q Rot_z(angle) and origin p in m. Nearly every arm has z of {j} along an axis of {j-1}; then Q is
 * the quarter turn `turn`, c and s are cosine and sine of the angle (c0, s0 at q = 0), and R itself is not needed.
 * Otherwise turn = ANY_TURN and R is kept. `upright`: the angle at q = 0 is zero. `along`: bits of the components of p
 * that are not zero, mostly one or none. */
typedef struct { mat R; vec p; lane c, s, c0, s0; int turn, upright, along; } NAME(placement);
#undef placement
#define placement NAME(placement)

/* Angular velocity of a link, its derivative, acceleration of its origin less gravity; U = [wd] + [w][w], so that a
 * point c of the link accelerates by a + U c. */
typedef struct { vec w, wd, a; mat U; } NAME(motion);
#undef motion
#define motion NAME(motion)

typedef struct { vec n, f; } NAME(wrench); /* moment about the origin, force */
#undef wrench
#define wrench NAME(wrench)

/* A symmetric 3x3 matrix. */
typedef struct { lane xx, xy, xz, yy, yz, zz; } NAME(sym);
#undef sym
#define sym NAME(sym)

/* Every algorithm returns 1 if its results are finite, else 0: a NaN or infinity put in always comes out. */
static inline int NAME(all_zero)(const lane *trace)
{
    for (int k = 0; k < LANES; k++)
        if (NAME(lane_get)(trace, k) != 0.0)
            return 0;
    return 1;
}

static inline vec NAME(sym_times)(const sym *S, vec v)
{
    return (vec){S->xx * v.x + S->xy * v.y + S->xz * v.z,
                 S->xy * v.x + S->yy * v.y + S->yz * v.z,
                 S->xz * v.x + S->yz * v.y + S->zz * v.z};
}

/* -- placements -- */

/* Q v of a quarter turn. */
INLINED vec NAME(quarter)(int turn, vec v)
{
    switch (turn) {
    case X_QUARTER: return (vec){v.x, -v.z, v.y};
    case Z_DOWN: return (vec){v.x, -v.y, -v.z};
    case X_QUARTER_BACK: return (vec){v.x, v.z, -v.y};
    case Y_QUARTER: return (vec){v.z, v.y, -v.x};
    case Y_QUARTER_BACK: return (vec){-v.z, v.y, v.x};
    default: return v;
    }
}

/* Qᵀ v. */
INLINED vec NAME(quarter_back)(int turn, vec v)
{
    switch (turn) {
    case X_QUARTER: return NAME(quarter)(X_QUARTER_BACK, v);
    case X_QUARTER_BACK: return NAME(quarter)(X_QUARTER, v);
    case Y_QUARTER: return NAME(quarter)(Y_QUARTER_BACK, v);
    case Y_QUARTER_BACK: return NAME(quarter)(Y_QUARTER, v);
    default: return NAME(quarter)(turn, v);
    }
}

/* R v: from {j} to {j-1}. */
INLINED vec NAME(rotate)(int turn, const placement *at, vec v)
{
    if (turn == ANY_TURN)
        return NAME(times)(&at->R, v);
    return NAME(quarter)(turn, (vec){at->c * v.x - at->s * v.y, at->s * v.x + at->c * v.y, v.z});
}

/* Rᵀ v: from {j-1} to {j}. */
INLINED vec NAME(unrotate)(int turn, const placement *at, vec v)
{
    if (turn == ANY_TURN)
        return NAME(transposed_times)(&at->R, v);
    v = NAME(quarter_back)(turn, v);
    return (vec){at->c * v.x + at->s * v.y, at->c * v.y - at->s * v.x, v.z};
}

/* R A Rᵀ. */
INLINED mat NAME(mat_rotate)(int turn, const placement *at, const mat *A)
{
    mat half = {NAME(rotate)(turn, at, A->x), NAME(rotate)(turn, at, A->y), NAME(rotate)(turn, at, A->z)};
    half = NAME(transposed)(&half);
    mat whole = {NAME(rotate)(turn, at, half.x), NAME(rotate)(turn, at, half.y), NAME(rotate)(turn, at, half.z)};
    return NAME(transposed)(&whole);
}

/* R S Rᵀ of a symmetric matrix. */
INLINED sym NAME(sym_rotate)(int turn, const placement *at, const sym *S)
{
    if (turn == ANY_TURN) {
        mat rows = NAME(transposed)(&at->R);
        vec sx = NAME(sym_times)(S, rows.x), sy = NAME(sym_times)(S, rows.y), sz = NAME(sym_times)(S, rows.z);
        return (sym){NAME(dot)(rows.x, sx), NAME(dot)(rows.x, sy), NAME(dot)(rows.x, sz),
                     NAME(dot)(rows.y, sy), NAME(dot)(rows.y, sz), NAME(dot)(rows.z, sz)};
    }
    lane k = at->s * (S->xx - S->yy) + at->c * (S->xy + S->xy);
    lane xy = at->c * k - S->xy, xz = at->c * S->xz - at->s * S->yz, yz = at->s * S->xz + at->c * S->yz;
    mat T = {NAME(quarter)(turn, (vec){S->xx - at->s * k, xy, xz}),
             NAME(quarter)(turn, (vec){xy, S->yy + at->s * k, yz}),
             NAME(quarter)(turn, (vec){xz, yz, S->zz})};
    T = NAME(transposed)(&T);
    vec x = NAME(quarter)(turn, T.x), y = NAME(quarter)(turn, T.y), z = NAME(quarter)(turn, T.z);
    return (sym){x.x, y.x, z.x, y.y, z.y, z.z};
}

/* The quarter turn Q for which Qᵀ R is a rotation about z, to rounding; that goes to c0 and s0. */
static inline int NAME(quarter_of)(const mat *R, lane *c0, lane *s0)
{
    const double tolerance = 1e-15;
    for (int turn = 0; turn < ANY_TURN; turn++) {
        vec x = NAME(quarter_back)(turn, R->x), y = NAME(quarter_back)(turn, R->y), z = NAME(quarter_back)(turn, R->z);
        lane off[5] = {z.z - 1.0, z.x, z.y, y.y - x.x, y.x + x.y};
        int within = 1;
        for (int k = 0; k < 5; k++)
            within &= fabs(NAME(lane_get)(&off[k], 0)) <= tolerance;
        *c0 = x.x, *s0 = x.y;
        if (within)
            return turn;
    }
    return ANY_TURN;
}

/* What does not depend on q: R0 and p0. */
static inline void NAME(place_fixed)(const chain *robot, placement *placements)
{
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        const double *R0 = robot->rotations + 9 * j;
        placement *at = &placements[j];
        mat rows = {NAME(constant)(R0), NAME(constant)(R0 + 3), NAME(constant)(R0 + 6)};
        at->R = NAME(transposed)(&rows);
        at->p = NAME(constant)(robot->translations + 3 * j);
        at->turn = NAME(quarter_of)(&at->R, &at->c0, &at->s0);
        at->c = at->c0, at->s = at->s0;
        at->upright = NAME(lane_get)(&at->c0, 0) == 1.0 && NAME(lane_get)(&at->s0, 0) == 0.0;
        at->along = 0;
        for (int k = 0; k < 3; k++)
            if (!robot->revolute[j] || robot->translations[3 * j + k] != 0.0)
                at->along |= 1 << k;
    }
}

/* What does: x and y of R0 Rot_z(q), or p0 + R0 e_z q. */
static inline void NAME(place)(const chain *robot, Py_ssize_t j, lane q, int near, placement *at)
{
    if (!robot->revolute[j]) {
        at->p = NAME(add)(NAME(constant)(robot->translations + 3 * j), NAME(scale)(at->R.z, q));
        return;
    }
    lane s, c;
    NAME(sincos)(q, near, &s, &c);
    if (at->turn == ANY_TURN) {
        const double *R0 = robot->rotations + 9 * j;
        vec x = {NAME(splat)(R0[0]), NAME(splat)(R0[3]), NAME(splat)(R0[6])};
        vec y = {NAME(splat)(R0[1]), NAME(splat)(R0[4]), NAME(splat)(R0[7])};
        at->R.x = NAME(add)(NAME(scale)(x, c), NAME(scale)(y, s));
        at->R.y = NAME(sub)(NAME(scale)(y, c), NAME(scale)(x, s));
    } else if (at->upright) {
        at->c = c, at->s = s;
    } else {
        at->c = at->c0 * c - at->s0 * s;
        at->s = at->s0 * c + at->c0 * s;
    }
}

/* v + A p */
static inline vec NAME(add_times_origin)(vec v, const mat *A, const placement *at)
{
    if (at->along & 1)
        v = NAME(add)(v, NAME(scale)(A->x, at->p.x));
    if (at->along & 2)
        v = NAME(add)(v, NAME(scale)(A->y, at->p.y));
    if (at->along & 4)
        v = NAME(add)(v, NAME(scale)(A->z, at->p.z));
    return v;
}

/* v + p x f */
static inline vec NAME(add_origin_cross)(vec v, const placement *at, vec f)
{
    if (at->along & 1)
        v.y -= at->p.x * f.z, v.z += at->p.x * f.y;
    if (at->along & 2)
        v.z -= at->p.y * f.x, v.x += at->p.y * f.z;
    if (at->along & 4)
        v.x -= at->p.z * f.y, v.y += at->p.z * f.x;
    return v;
}

/* Runs its body for every lane: samples first .. first + count - 1. */
static inline int NAME(lane_count)(const states *in, Py_ssize_t first)
{
    return in->samples - first < LANES ? (int)(in->samples - first) : LANES;
}
#undef FOR_LANES
#define FOR_LANES(in)                                                                                                  \
    for (Py_ssize_t first = 0, count = NAME(lane_count)(in, 0); first < (in)->samples;                                 \
         first += LANES, count = NAME(lane_count)(in, first))

/* The states of a lane, joint by joint. */
typedef struct { lane *q, *qd, *qdd; } NAME(columns);
#undef columns
#define columns NAME(columns)

static inline columns NAME(load_states)(const chain *robot, const states *in, Py_ssize_t first, int count, lane *memory)
{
    Py_ssize_t n = robot->dof;
    columns x = {memory, memory + n, memory + 2 * n};
    NAME(load_all)(&in->q, first, count, n, x.q);
    NAME(load_all)(&in->qd, first, count, n, x.qd);
    NAME(load_all)(&in->qdd, first, count, n, x.qdd);
    return x;
}

/* In a separate loop: sine and cosine of one joint do not wait for the recursion of another. */
static inline void NAME(place_all)(const chain *robot, const lane *q, placement *placements)
{
    lane sum = {0};
    for (Py_ssize_t j = 0; j < robot->dof; j++)
        sum += q[j] * q[j];
    int near = NAME(all_within)(sum, SINCOS_LIMIT * SINCOS_LIMIT);
    for (Py_ssize_t j = 0; j < robot->dof; j++)
        NAME(place)(robot, j, q[j], near, &placements[j]);
}

/* Kernels of positions alone: the placement of every link, and q. */
typedef struct { placement *placements; lane *q; } NAME(posture);
#undef posture
#define posture NAME(posture)

static inline posture NAME(begin_posture)(const chain *robot, void *memory)
{
    posture at = {memory, (lane *)((placement *)memory + robot->dof)};
    NAME(place_fixed)(robot, at.placements);
    return at;
}

static inline void NAME(place_lane)(const chain *robot, const states *in, Py_ssize_t first, int count, const posture *at)
{
    NAME(load_all)(&in->q, first, count, robot->dof, at->q);
    NAME(place_all)(robot, at->q, at->placements);
}

/* From the motion of link j-1 to that of link j, but for the spin; m->a already belongs to the origin of {j}. */
INLINED void NAME(cross_joint)(int turn, int revolute, const placement *at, lane qd, lane qdd, motion *m)
{
    vec w = NAME(unrotate)(turn, at, m->w), wd = NAME(unrotate)(turn, at, m->wd), a = NAME(unrotate)(turn, at, m->a);
    if (revolute) { /* w += z qd; wd += w x z qd + z qdd */
        wd.x += w.y * qd;
        wd.y -= w.x * qd;
        wd.z += qdd;
        w.z += qd;
    } else { /* a += 2 w x z qd + z qdd */
        a.x += 2.0 * w.y * qd;
        a.y -= 2.0 * w.x * qd;
        a.z += qdd + 0.0 * qd; /* a NaN comes out even where w is zero */
    }
    m->w = w, m->wd = wd, m->a = a;
}

/* Newton-Euler, outwards: from the motion of link j-1 to that of link j. */
static inline void NAME(advance)(int revolute, const placement *at, lane qd, lane qdd, motion *m)
{
    m->a = NAME(add_times_origin)(m->a, &m->U, at);
    WITH_TURN(at->turn, NAME(cross_joint)(TURN, revolute, at, qd, qdd, m))
    vec w = m->w, wd = m->wd;
    lane xx = w.x * w.x, yy = w.y * w.y, zz = w.z * w.z;
    m->U.x = (vec){-yy - zz, w.x * w.y + wd.z, w.x * w.z - wd.y};
    m->U.y = (vec){w.x * w.y - wd.z, -xx - zz, w.y * w.z + wd.x};
    m->U.z = (vec){w.x * w.z + wd.y, w.y * w.z - wd.x, -xx - yy};
}

/* The motion of link 1: the base rests. */
static inline motion NAME(motion_of_first)(const chain *robot, const placement *at, lane qd, lane qdd)
{
    vec o = NAME(zero)();
    motion m = {o, o, NAME(unrotate)(at->turn, at, NAME(sub)(o, NAME(constant)(robot->gravity))), {o, o, o}};
    if (robot->revolute[0]) {
        m.w.z = qd, m.wd.z = qdd;
        m.U.x.x = m.U.y.y = -qd * qd;
        m.U.x.y = qdd, m.U.y.x = -qdd;
    } else {
        m.a.z += qdd + 0.0 * (qd + at->p.x + at->p.y + at->p.z); /* a NaN comes out though nothing depends on it */
    }
    return m;
}

/* A body as the wrench needs it: second moments, first moments, mass. `slim`: zz, mc.z and m are zero. */
typedef struct { sym J; vec mc; lane m; int slim; } NAME(body);
#undef body
#define body NAME(body)

/* Bodies that need the same torques as the robot's (Gautier and Khalil's regrouping). Mass on the axis of a revolute
 * joint (zz, mc.z, m) does not move with it: it is counted with the link before, and that of link 1 with the base. */
static inline void NAME(regrouped)(const chain *robot, body *bodies)
{
    double axial[3] = {0}, tensor[3][3] = {{0}}, first[3] = {0}; /* what came from the link beyond */
    double mass = 0.0;
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        const double *inertial = robot->inertials + 10 * j, *R0 = robot->rotations + 9 * j, *p = robot->translations + 3 * j;
        double half = 0.5 * (inertial[0] + inertial[3] + inertial[5]);
        tensor[0][0] += half - inertial[0], tensor[0][1] -= inertial[1], tensor[0][2] -= inertial[2];
        tensor[1][1] += half - inertial[3], tensor[1][2] -= inertial[4], tensor[2][2] += half - inertial[5];
        for (int k = 0; k < 3; k++)
            first[k] += inertial[6 + k];
        mass += inertial[9];
        int slim = robot->revolute[j];
        axial[0] = slim ? mass : 0.0, axial[1] = slim ? first[2] : 0.0, axial[2] = slim ? tensor[2][2] : 0.0;
        mass -= axial[0], first[2] -= axial[1], tensor[2][2] -= axial[2];
        bodies[j].J = (sym){NAME(splat)(tensor[0][0]), NAME(splat)(tensor[0][1]), NAME(splat)(tensor[0][2]),
                            NAME(splat)(tensor[1][1]), NAME(splat)(tensor[1][2]), NAME(splat)(tensor[2][2])};
        bodies[j].mc = NAME(constant)(first);
        bodies[j].m = NAME(splat)(mass);
        bodies[j].slim = slim;
        mass = axial[0];
        for (int i = 0; i < 3; i++) {
            double zi = R0[3 * i + 2];
            first[i] = axial[0] * p[i] + axial[1] * zi;
            for (int k = i; k < 3; k++) {
                double zk = R0[3 * k + 2];
                tensor[i][k] = axial[0] * p[i] * p[k] + axial[1] * (p[i] * zk + zi * p[k]) + axial[2] * zi * zk;
            }
        }
    }
}

/* f = m a + U mc; n is the axial vector of G = J Uᵀ + mc aᵀ, the same as I wd + w x (I w) + mc x a. */
static inline wrench NAME(body_wrench)(const body *b, const motion *m)
{
    const sym *J = &b->J;
    const mat *U = &m->U;
    vec a = m->a;
    wrench result;
    result.f = NAME(add)(NAME(scale)(U->x, b->mc.x), NAME(scale)(U->y, b->mc.y));
    result.n.x = J->xy * U->x.z + J->yy * U->y.z + J->yz * (U->z.z - U->y.y) - J->xz * U->x.y + b->mc.y * a.z;
    result.n.y = J->xz * (U->x.x - U->z.z) + J->yz * U->y.x - J->xx * U->x.z - J->xy * U->y.z - b->mc.x * a.z;
    result.n.z = J->xx * U->x.y + J->xy * (U->y.y - U->x.x) + J->xz * U->z.y - J->yy * U->y.x - J->yz * U->z.x +
                 b->mc.x * a.y - b->mc.y * a.x;
    if (!b->slim) {
        result.f = NAME(add)(result.f, NAME(add)(NAME(scale)(U->z, b->mc.z), NAME(scale)(a, b->m)));
        result.n.x -= J->zz * U->z.y + b->mc.z * a.y;
        result.n.y += J->zz * U->z.x + b->mc.z * a.x;
    }
    return result;
}

/* The wrench of link j at the origin and in the axes of {j-1}. */
static inline wrench NAME(pass_inward)(const placement *at, wrench w)
{
    WITH_TURN(at->turn, w.f = NAME(rotate)(TURN, at, w.f); w.n = NAME(rotate)(TURN, at, w.n))
    w.n = NAME(add_origin_cross)(w.n, at, w.f);
    return w;
}

/* What the recursions of the dynamics keep of n links in the work memory; `rest` is the memory after it. */
typedef struct { placement *placements; wrench *wrenches; body *bodies; void *rest; } NAME(recursion);
#undef recursion
#define recursion NAME(recursion)

static inline recursion NAME(begin_recursion)(const chain *robot, void *memory)
{
    recursion r;
    r.placements = memory;
    r.wrenches = (wrench *)(r.placements + robot->dof);
    r.bodies = (body *)(r.wrenches + robot->dof);
    r.rest = r.bodies + robot->dof;
    NAME(place_fixed)(robot, r.placements);
    NAME(regrouped)(robot, r.bodies);
    return r;
}

/* Outwards: the placement of every link and the wrench its body needs. */
static inline void NAME(outward)(const chain *robot, const columns *x, const recursion *r)
{
    placement *placements = r->placements;
    motion m;
    NAME(place_all)(robot, x->q, placements);
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        if (j == 0)
            m = NAME(motion_of_first)(robot, placements, x->qd[0], x->qdd[0]);
        else
            NAME(advance)(robot->revolute[j], &placements[j], x->qd[j], x->qdd[j], &m);
        r->wrenches[j] = NAME(body_wrench)(&r->bodies[j], &m);
    }
}

static int NAME(inverse_dynamics)(const chain *robot, const states *in, const series *torque, void *memory)
{
    Py_ssize_t n = robot->dof;
    recursion r = NAME(begin_recursion)(robot, memory);
    lane *tau = r.rest, *states_memory = tau + n;
    lane trace = {0};
    FOR_LANES(in) {
        columns x = NAME(load_states)(robot, in, first, count, states_memory);
        NAME(outward)(robot, &x, &r);
        wrench carried = {NAME(zero)(), NAME(zero)()};
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            carried.n = NAME(add)(carried.n, r.wrenches[j].n);
            carried.f = NAME(add)(carried.f, r.wrenches[j].f);
            tau[j] = (robot->revolute[j] ? carried.n.z : carried.f.z) + robot->rotors[j] * x.qdd[j];
            trace += tau[j] - tau[j];
            if (j > 0)
                carried = NAME(pass_inward)(&r.placements[j], carried);
        }
        NAME(store_all)(torque, first, count, n, tau);
    }
    return NAME(all_zero)(&trace);
}

/* One row block of the regressor: u·n + v·f for each of the ten parameters of a link, u and v being the axis of
 * the joint and its moment arm (axis x (link origin - joint origin)) in the frame of the link. */
static inline void NAME(regressor_block)(const motion *m, vec u, vec v, lane *block)
{
    vec w = m->w, wd = m->wd;
    const mat *U = &m->U;
    /* u·(I wd + w x (I w)), the products of w taken from U */
    block[0] = u.x * wd.x + (u.y * w.z - u.z * w.y) * w.x;
    block[1] = u.y * U->y.z - u.x * U->x.z + u.z * (U->x.x - U->y.y);
    block[2] = u.x * U->x.y - u.z * U->z.y + u.y * (U->z.z - U->x.x);
    block[3] = u.y * wd.y + (u.z * w.x - u.x * w.z) * w.y;
    block[4] = u.z * U->z.x - u.y * U->y.x + u.x * (U->y.y - U->z.z);
    block[5] = u.z * wd.z + (u.x * w.y - u.y * w.x) * w.z;
    /* v·(U c) + u·(c x a) = c·(Uᵀ v + a x u) */
    vec c = NAME(add)(NAME(transposed_times)(U, v), NAME(cross)(m->a, u));
    block[6] = c.x;
    block[7] = c.y;
    block[8] = c.z;
    block[9] = NAME(dot)(v, m->a);
}

/* The row block of a joint on the link that it moves. */
static inline void NAME(regressor_own_block)(int revolute, const motion *m, lane *block)
{
    lane zero = {0};
    const mat *U = &m->U;
    if (revolute) {
        block[3] = m->w.x * m->w.y;
        block[0] = -block[3];
        block[1] = U->x.x - U->y.y;
        block[2] = -U->z.y;
        block[4] = U->z.x;
        block[5] = m->wd.z;
        block[6] = m->a.y, block[7] = -m->a.x, block[8] = zero, block[9] = zero;
    } else {
        for (int k = 0; k < 6; k++)
            block[k] = zero;
        block[6] = U->x.z, block[7] = U->y.z, block[8] = U->z.z, block[9] = m->a.z;
    }
}

/* u and v of `count` joints, from link j-1 to link j. */
INLINED void NAME(arms_outward)(int turn, const placement *at, Py_ssize_t count, vec *arms)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        vec u = arms[2 * i], v = NAME(sub)(arms[2 * i + 1], NAME(cross)(at->p, u));
        arms[2 * i] = NAME(unrotate)(turn, at, u);
        arms[2 * i + 1] = NAME(unrotate)(turn, at, v);
    }
}

/* Writes TILE samples of every structurally non-zero series, then moves the tile out in whole cache lines.
 * `places[10 (i n + j) + k]` is the index of the series of row i, parameter k of link j; or -1 for a zero. */
static int NAME(regressor)(const chain *robot, const states *in, const int32_t *places, Py_ssize_t count_series,
                            const series *out, void *memory)
{
    Py_ssize_t n = robot->dof;
    placement *placements = memory;
    vec *arms = (vec *)(placements + n); /* u, v of every joint before the current link */
    lane *states_memory = (lane *)(arms + 2 * n);
    double *tile = (double *)(states_memory + 3 * n);
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t start = 0; start < in->samples; start += TILE) {
        Py_ssize_t length = in->samples - start < TILE ? in->samples - start : TILE;
        for (Py_ssize_t offset = 0; offset < length; offset += LANES) {
            int count = length - offset < LANES ? (int)(length - offset) : LANES;
            motion m;
            columns x = NAME(load_states)(robot, in, start + offset, count, states_memory);
            NAME(place_all)(robot, x.q, placements);
            for (Py_ssize_t j = 0; j < n; j++) {
                const placement *at = &placements[j];
                if (j == 0) {
                    m = NAME(motion_of_first)(robot, at, x.qd[0], x.qdd[0]);
                } else {
                    NAME(advance)(robot->revolute[j], at, x.qd[j], x.qdd[j], &m);
                    WITH_TURN(at->turn, NAME(arms_outward)(TURN, at, j, arms))
                }
                lane sum = NAME(dot)(m.w, m.w) + NAME(dot)(m.wd, m.a);
                vec zero = NAME(zero)(), z = {zero.x, zero.x, NAME(splat)(1.0)};
                arms[2 * j] = robot->revolute[j] ? z : zero;
                arms[2 * j + 1] = robot->revolute[j] ? zero : z;
                for (Py_ssize_t i = 0; i <= j; i++) {
                    lane block[10];
                    if (i == j)
                        NAME(regressor_own_block)(robot->revolute[j], &m, block);
                    else
                        NAME(regressor_block)(&m, arms[2 * i], arms[2 * i + 1], block);
                    sum += block[6] + block[7] + (block[8] + block[9]);
                    const int32_t *place = places + 10 * (i * n + j);
                    for (int k = 0; k < 10; k++)
                        if (place[k] >= 0)
                            NAME(put_lane)(tile + (Py_ssize_t)place[k] * TILE + offset, block[k]);
                }
                trace += sum - sum;
            }
        }
        NAME(flush)(tile, count_series, length, out, start);
    }
    return NAME(all_zero)(&trace);
}

/* Positions and rotations of every frame in the base: out[(sample, 12 j + ...)] = R row by row, then p. */
static int NAME(kinematics)(const chain *robot, const states *in, const series *out, void *memory)
{
    posture arm = NAME(begin_posture)(robot, memory);
    lane trace = {0};
    FOR_LANES(in) {
        NAME(place_lane)(robot, in, first, count, &arm);
        vec o = NAME(zero)();
        mat T = {o, o, o}; /* by rows */
        T.x.x = T.y.y = T.z.z = NAME(splat)(1.0);
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            const placement *at = &arm.placements[j];
            o = NAME(add)(o, NAME(transposed_times)(&T, at->p));
            WITH_TURN(at->turn, T.x = NAME(unrotate)(TURN, at, T.x); T.y = NAME(unrotate)(TURN, at, T.y);
                      T.z = NAME(unrotate)(TURN, at, T.z))
            lane values[12] = {T.x.x, T.x.y, T.x.z, T.y.x, T.y.y, T.y.z, T.z.x, T.z.y, T.z.z, o.x, o.y, o.z};
            for (int k = 0; k < 12; k++)
                NAME(store)(out, first, count, 12 * j + k, values[k]);
            lane sum = T.x.x + T.y.x + T.z.x + (o.x + o.y + o.z);
            trace += sum - sum;
        }
    }
    return NAME(all_zero)(&trace);
}

/* Composite rigid bodies: ten parameters of link j and all beyond it, in {j}. */
typedef struct { sym I; vec mc; lane m; } NAME(composite);
#undef composite
#define composite NAME(composite)

/* The body seen from {j-1}: c' = R c + p and I' = R I Rᵀ + 2 (p·Rmc) E - p (Rmc)ᵀ - (Rmc) pᵀ + m (p² E - p pᵀ). */
INLINED composite NAME(composite_inward)(int turn, const placement *at, const composite *outer)
{
    composite up;
    vec h = NAME(rotate)(turn, at, outer->mc), p = at->p;
    up.I = NAME(sym_rotate)(turn, at, &outer->I);
    up.m = outer->m;
    up.mc = NAME(add)(h, NAME(scale)(p, outer->m));
    lane diagonal = 2.0 * NAME(dot)(p, h) + outer->m * NAME(dot)(p, p);
    up.I.xx += diagonal - 2.0 * p.x * h.x - outer->m * p.x * p.x;
    up.I.yy += diagonal - 2.0 * p.y * h.y - outer->m * p.y * p.y;
    up.I.zz += diagonal - 2.0 * p.z * h.z - outer->m * p.z * p.z;
    up.I.xy -= p.x * h.y + h.x * p.y + outer->m * p.x * p.y;
    up.I.xz -= p.x * h.z + h.x * p.z + outer->m * p.x * p.z;
    up.I.yz -= p.y * h.z + h.y * p.z + outer->m * p.y * p.z;
    return up;
}

static int NAME(mass_matrix)(const chain *robot, const states *in, const series *out, void *memory)
{
    Py_ssize_t n = robot->dof;
    posture arm = NAME(begin_posture)(robot, memory);
    lane trace = {0};
    FOR_LANES(in) {
        NAME(place_lane)(robot, in, first, count, &arm);
        vec zero = NAME(zero)();
        composite sum = {{zero.x, zero.x, zero.x, zero.x, zero.x, zero.x}, zero, zero.x};
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            const double *inertial = robot->inertials + 10 * j;
            sum.I.xx += inertial[0], sum.I.xy += inertial[1], sum.I.xz += inertial[2];
            sum.I.yy += inertial[3], sum.I.yz += inertial[4], sum.I.zz += inertial[5];
            sum.mc.x += inertial[6], sum.mc.y += inertial[7], sum.mc.z += inertial[8];
            sum.m += inertial[9];
            wrench unit; /* momentum of the composite body under unit speed of joint j */
            if (robot->revolute[j]) {
                unit.n = (vec){sum.I.xz, sum.I.yz, sum.I.zz};
                unit.f = (vec){-sum.mc.y, sum.mc.x, zero.x};
            } else {
                unit.n = (vec){sum.mc.y, -sum.mc.x, zero.x};
                unit.f = (vec){zero.x, zero.x, sum.m};
            }
            for (Py_ssize_t i = j; i >= 0; i--) {
                lane entry = robot->revolute[i] ? unit.n.z : unit.f.z;
                if (i == j)
                    entry += robot->rotors[j];
                trace += entry - entry;
                NAME(store)(out, first, count, i * n + j, entry);
                if (i != j)
                    NAME(store)(out, first, count, j * n + i, entry);
                if (i > 0)
                    unit = NAME(pass_inward)(&arm.placements[i], unit);
            }
            if (j > 0)
                WITH_TURN(arm.placements[j].turn, sum = NAME(composite_inward)(TURN, &arm.placements[j], &sum))
        }
        for (Py_ssize_t j = 0; j < n; j++)
            trace += arm.q[j] - arm.q[j]; /* M need not depend on it */
    }
    return NAME(all_zero)(&trace);
}

/* Articulated inertia [[A, B], [Bᵀ, M]] on (angular; linear), B by rows, and the bias wrench. */
typedef struct {
    sym A, M;
    vec Bx, By, Bz;
    wrench bias;
} NAME(articulated);
#undef articulated
#define articulated NAME(articulated)

/* What the joint keeps: articulated inertia times its axis, one over its entry at the axis, torque that is left. */
typedef struct { vec n, f; lane g, u; } NAME(hinge);
#undef hinge
#define hinge NAME(hinge)

static inline articulated NAME(articulated_nothing)(void)
{
    vec o = NAME(zero)();
    sym none = {o.x, o.x, o.x, o.x, o.x, o.x};
    return (articulated){none, none, o, o, o, {o, o}};
}

static inline void NAME(articulated_add)(const double *inertial, const wrench *push, articulated *whole)
{
    whole->A.xx += inertial[0], whole->A.xy += inertial[1], whole->A.xz += inertial[2];
    whole->A.yy += inertial[3], whole->A.yz += inertial[4], whole->A.zz += inertial[5];
    whole->Bx.y -= inertial[8], whole->Bx.z += inertial[7];
    whole->By.x += inertial[8], whole->By.z -= inertial[6];
    whole->Bz.x -= inertial[7], whole->Bz.y += inertial[6];
    whole->M.xx += inertial[9], whole->M.yy += inertial[9], whole->M.zz += inertial[9];
    whole->bias.n = NAME(add)(whole->bias.n, push->n);
    whole->bias.f = NAME(add)(whole->bias.f, push->f);
}

static inline hinge NAME(hinge_of)(int revolute, double rotor, lane torque, const articulated *whole)
{
    if (revolute)
        return (hinge){{whole->A.xz, whole->A.yz, whole->A.zz}, whole->Bz, 1.0 / (whole->A.zz + rotor),
                       torque - whole->bias.n.z};
    return (hinge){{whole->Bx.z, whole->By.z, whole->Bz.z}, {whole->M.xz, whole->M.yz, whole->M.zz},
                   1.0 / (whole->M.zz + rotor), torque - whole->bias.f.z};
}

/* The body freed along its joint's axis, seen from {j-1}. */
INLINED void NAME(articulated_inward)(int turn, const placement *at, const hinge *joint, articulated *whole)
{
    vec n = joint->n, f = joint->f, gn = NAME(scale)(n, joint->g), gf = NAME(scale)(f, joint->g);
    sym A = whole->A, M = whole->M;
    A.xx -= gn.x * n.x, A.xy -= gn.x * n.y, A.xz -= gn.x * n.z;
    A.yy -= gn.y * n.y, A.yz -= gn.y * n.z, A.zz -= gn.z * n.z;
    M.xx -= gf.x * f.x, M.xy -= gf.x * f.y, M.xz -= gf.x * f.z;
    M.yy -= gf.y * f.y, M.yz -= gf.y * f.z, M.zz -= gf.z * f.z;
    mat Bt = {NAME(sub)(whole->Bx, NAME(scale)(f, gn.x)), NAME(sub)(whole->By, NAME(scale)(f, gn.y)),
              NAME(sub)(whole->Bz, NAME(scale)(f, gn.z))};
    vec p = at->p;

    /* rotate: A' = R A Rᵀ, B' = R B Rᵀ (its rows are rb.x, rb.y, rb.z), M' = R M Rᵀ */
    sym Ar = NAME(sym_rotate)(turn, at, &A), Mr = NAME(sym_rotate)(turn, at, &M);
    mat rb = NAME(mat_rotate)(turn, at, &Bt);

    /* shift: B'' = B' + [p] M', A'' = A' + [p] B'ᵀ - B'' [p] */
    vec mx = {Mr.xx, Mr.xy, Mr.xz}, my = {Mr.xy, Mr.yy, Mr.yz}, mz = {Mr.xz, Mr.yz, Mr.zz};
    vec cx = NAME(add)(rb.x, NAME(sub)(NAME(scale)(mz, p.y), NAME(scale)(my, p.z)));
    vec cy = NAME(add)(rb.y, NAME(sub)(NAME(scale)(mx, p.z), NAME(scale)(mz, p.x)));
    vec cz = NAME(add)(rb.z, NAME(sub)(NAME(scale)(my, p.x), NAME(scale)(mx, p.y)));
    vec px_rb = NAME(cross)(p, rb.x), py_rb = NAME(cross)(p, rb.y), pz_rb = NAME(cross)(p, rb.z); /* columns of [p] B'ᵀ */
    vec cx_p = NAME(cross)(cx, p), cy_p = NAME(cross)(cy, p), cz_p = NAME(cross)(cz, p);         /* rows of B'' [p] */
    whole->A = (sym){Ar.xx + px_rb.x - cx_p.x, Ar.xy + py_rb.x - cx_p.y, Ar.xz + pz_rb.x - cx_p.z,
                    Ar.yy + py_rb.y - cy_p.y, Ar.yz + pz_rb.y - cy_p.z, Ar.zz + pz_rb.z - cz_p.z};
    whole->Bx = cx, whole->By = cy, whole->Bz = cz;
    whole->M = Mr;
    whole->bias.n = NAME(add)(whole->bias.n, NAME(scale)(gn, joint->u));
    whole->bias.f = NAME(add)(whole->bias.f, NAME(scale)(gf, joint->u));
}

/* Articulated bodies. The outward pass with qdd = 0 gives every link its velocity-product and gravity acceleration;
 * the bias wrench is the body's wrench under it, and the recursion solves for the rest, which starts at 0. */
static int NAME(forward_dynamics)(const chain *robot, const states *in, const series *torque, const series *out,
                                   void *memory)
{
    Py_ssize_t n = robot->dof;
    recursion r = NAME(begin_recursion)(robot, memory);
    hinge *hinges = r.rest;
    lane *applied = (lane *)(hinges + n), *states_memory = applied + n;
    lane trace = {0};
    FOR_LANES(in) {
        columns x = NAME(load_states)(robot, in, first, count, states_memory);
        NAME(load_all)(torque, first, count, n, applied);
        NAME(outward)(robot, &x, &r);
        articulated whole = NAME(articulated_nothing)();
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            NAME(articulated_add)(robot->inertials + 10 * j, &r.wrenches[j], &whole);
            hinges[j] = NAME(hinge_of)(robot->revolute[j], robot->rotors[j], applied[j], &whole);
            if (j > 0) {
                const placement *at = &r.placements[j];
                WITH_TURN(at->turn, NAME(articulated_inward)(TURN, at, &hinges[j], &whole))
                whole.bias = NAME(pass_inward)(at, whole.bias);
            }
        }
        vec wd = NAME(zero)(), a = NAME(zero)();
        for (Py_ssize_t j = 0; j < n; j++) {
            const hinge *joint = &hinges[j];
            const placement *at = &r.placements[j];
            a = NAME(sub)(a, NAME(add_origin_cross)(NAME(zero)(), at, wd));
            WITH_TURN(at->turn, a = NAME(unrotate)(TURN, at, a); wd = NAME(unrotate)(TURN, at, wd))
            lane qdd = (joint->u - NAME(dot)(joint->n, wd) - NAME(dot)(joint->f, a)) * joint->g;
            if (robot->revolute[j])
                wd.z += qdd;
            else
                a.z += qdd;
            trace += qdd - qdd;
            applied[j] = qdd;
        }
        NAME(store_all)(out, first, count, n, applied);
    }
    return NAME(all_zero)(&trace);
}

/* Energy per unit of each standard parameter: kinetic into columns 0 .. 10 n - 1 of `kinetic`, potential (zero at
 * the base origin) into those of `potential`. */
static int NAME(energy_regressors)(const chain *robot, const states *in, const series *kinetic,
                                    const series *potential, void *memory)
{
    posture arm = NAME(begin_posture)(robot, memory);
    lane trace = {0};
    FOR_LANES(in) {
        NAME(place_lane)(robot, in, first, count, &arm);
        vec w = NAME(zero)(), v = NAME(zero)(), g = NAME(constant)(robot->gravity);
        lane height = {0}; /* -g·o, o the origin of the frame */
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            const placement *at = &arm.placements[j];
            lane qd = NAME(load)(&in->qd, first, count, j);
            height -= NAME(dot)(g, at->p);
            v = NAME(add)(v, NAME(cross)(w, at->p));
            WITH_TURN(at->turn, g = NAME(unrotate)(TURN, at, g); v = NAME(unrotate)(TURN, at, v);
                      w = NAME(unrotate)(TURN, at, w))
            if (robot->revolute[j])
                w.z += qd;
            else
                v.z += qd;
            vec vxw = NAME(cross)(v, w);
            lane k[10] = {0.5 * w.x * w.x, w.x * w.y, w.x * w.z, 0.5 * w.y * w.y, w.y * w.z, 0.5 * w.z * w.z,
                          vxw.x, vxw.y, vxw.z, 0.5 * NAME(dot)(v, v)};
            lane zero = {0};
            lane u[10] = {zero, zero, zero, zero, zero, zero, -g.x, -g.y, -g.z, height};
            for (int c = 0; c < 10; c++) {
                NAME(store)(kinetic, first, count, 10 * j + c, k[c]);
                NAME(store)(potential, first, count, 10 * j + c, u[c]);
            }
            lane sum = k[9] + NAME(dot)(w, w) + NAME(dot)(w, g) + height; /* bounds every entry: |v x w| <= v² + w² */
            trace += sum - sum;
        }
    }
    return NAME(all_zero)(&trace);
}
