/* Rigid-body algorithms of a serial chain on one lane of samples; the NumPy twin is model/rigid/twin.py.
 *
 * Frame {j} sits on joint axis j, z along it. All vectors of link j are in {j}. Included once per instruction set.
 */

typedef struct { mat R; vec p; } NAME(placement); /* {j} in {j-1}: rotation, origin in m */
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

/* What does not depend on q: R0 and p0. */
static inline void NAME(place_fixed)(const chain *robot, placement *placements)
{
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        const double *R0 = robot->rotations + 9 * j;
        placements[j].R.x = (vec){NAME(splat)(R0[0]), NAME(splat)(R0[3]), NAME(splat)(R0[6])};
        placements[j].R.y = (vec){NAME(splat)(R0[1]), NAME(splat)(R0[4]), NAME(splat)(R0[7])};
        placements[j].R.z = (vec){NAME(splat)(R0[2]), NAME(splat)(R0[5]), NAME(splat)(R0[8])};
        placements[j].p = NAME(constant)(robot->translations + 3 * j);
    }
}

/* What does: x and y of R0 Rot_z(q), or p0 + R0 e_z q. */
static inline void NAME(place)(const chain *robot, Py_ssize_t j, lane q, placement *at)
{
    const double *R0 = robot->rotations + 9 * j;
    if (robot->revolute[j]) {
        vec x = {NAME(splat)(R0[0]), NAME(splat)(R0[3]), NAME(splat)(R0[6])};
        vec y = {NAME(splat)(R0[1]), NAME(splat)(R0[4]), NAME(splat)(R0[7])};
        lane s, c;
        NAME(sincos)(q, &s, &c);
        at->R.x = NAME(add)(NAME(scale)(x, c), NAME(scale)(y, s));
        at->R.y = NAME(sub)(NAME(scale)(y, c), NAME(scale)(x, s));
    } else {
        at->p = NAME(add)(NAME(constant)(robot->translations + 3 * j), NAME(scale)(at->R.z, q));
    }
}

/* In a loop of its own: sine and cosine of one joint do not wait for the recursion of another. */
static inline void NAME(place_all)(const chain *robot, const states *in, Py_ssize_t first, int count,
                                   placement *placements)
{
    for (Py_ssize_t j = 0; j < robot->dof; j++)
        NAME(place)(robot, j, NAME(load)(&in->q, first, count, j), &placements[j]);
}

static inline motion NAME(motion_of_base)(const chain *robot)
{
    vec zero = NAME(zero)();
    return (motion){zero, zero, NAME(sub)(zero, NAME(constant)(robot->gravity)), {zero, zero, zero}};
}

/* Newton-Euler, outwards: from the motion of link j-1 to that of link j. */
static inline void NAME(advance)(int revolute, const placement *at, lane qd, lane qdd, motion *m)
{
    vec w = NAME(unrotate)(&at->R, m->w), wd = NAME(unrotate)(&at->R, m->wd);
    vec a = NAME(unrotate)(&at->R, NAME(add)(m->a, NAME(rotate)(&m->U, at->p)));
    if (revolute) { /* w += z qd; wd += w x z qd + z qdd */
        wd.x += w.y * qd;
        wd.y -= w.x * qd;
        wd.z += qdd;
        w.z += qd;
    } else { /* a += 2 w x z qd + z qdd */
        a.x += 2.0 * w.y * qd;
        a.y -= 2.0 * w.x * qd;
        a.z += qdd;
    }
    m->w = w, m->wd = wd, m->a = a;
    lane xx = w.x * w.x, yy = w.y * w.y, zz = w.z * w.z;
    m->U.x = (vec){-yy - zz, w.x * w.y + wd.z, w.x * w.z - wd.y};
    m->U.y = (vec){w.x * w.y - wd.z, -xx - zz, w.y * w.z + wd.x};
    m->U.z = (vec){w.x * w.z + wd.y, w.y * w.z - wd.x, -xx - yy};
}

/* f = m a + U mc;  n = I wd + w x (I w) + mc x a */
static inline wrench NAME(body_wrench)(const double *inertial, const motion *m)
{
    sym I = {NAME(splat)(inertial[0]), NAME(splat)(inertial[1]), NAME(splat)(inertial[2]),
             NAME(splat)(inertial[3]), NAME(splat)(inertial[4]), NAME(splat)(inertial[5])};
    vec mc = NAME(constant)(inertial + 6);
    wrench result;
    result.f = NAME(add)(NAME(scale)(m->a, NAME(splat)(inertial[9])), NAME(rotate)(&m->U, mc));
    result.n = NAME(add)(NAME(add)(NAME(sym_times)(&I, m->wd), NAME(cross)(mc, m->a)),
                         NAME(cross)(m->w, NAME(sym_times)(&I, m->w)));
    return result;
}

/* The wrench of link j at the origin and in the axes of {j-1}. */
static inline wrench NAME(pass_inward)(const mat *R, vec p, wrench own)
{
    wrench result;
    result.f = NAME(rotate)(R, own.f);
    result.n = NAME(add)(NAME(rotate)(R, own.n), NAME(cross)(p, result.f));
    return result;
}

/* Outwards: the placement of every link and the wrench its body needs. */
static inline void NAME(outward)(const chain *robot, const states *in, Py_ssize_t first, int count,
                                 placement *placements, wrench *wrenches)
{
    motion m = NAME(motion_of_base)(robot);
    NAME(place_all)(robot, in, first, count, placements);
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        NAME(advance)(robot->revolute[j], &placements[j], NAME(load)(&in->qd, first, count, j),
                      NAME(load)(&in->qdd, first, count, j), &m);
        wrenches[j] = NAME(body_wrench)(robot->inertials + 10 * j, &m);
    }
}

static int NAME(inverse_dynamics)(const chain *robot, const states *in, const series *torque, void *memory)
{
    placement *placements = memory;
    wrench *wrenches = (wrench *)(placements + robot->dof);
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(outward)(robot, in, first, count, placements, wrenches);
        wrench carried = {NAME(zero)(), NAME(zero)()};
        for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
            carried.n = NAME(add)(carried.n, wrenches[j].n);
            carried.f = NAME(add)(carried.f, wrenches[j].f);
            lane tau = robot->revolute[j] ? carried.n.z : carried.f.z;
            tau += robot->rotors[j] * NAME(load)(&in->qdd, first, count, j);
            trace += tau - tau;
            NAME(store)(torque, first, count, j, tau);
            carried = NAME(pass_inward)(&placements[j].R, placements[j].p, carried);
        }
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
    vec c = NAME(add)(NAME(unrotate)(U, v), NAME(cross)(m->a, u));
    block[6] = c.x;
    block[7] = c.y;
    block[8] = c.z;
    block[9] = NAME(dot)(v, m->a);
}

/* Writes TILE samples of every structurally non-zero series, then moves the tile out in whole cache lines.
 * `places[10 (i n + j) + k]` is the index of the series of row i, parameter k of link j, or -1 for a zero. */
static int NAME(regressor)(const chain *robot, const states *in, const int32_t *places, Py_ssize_t count_series,
                            const series *out, void *memory)
{
    Py_ssize_t n = robot->dof;
    placement *placements = memory;
    vec *arms = (vec *)(placements + n); /* u, v of every joint before the current link */
    double *tile = (double *)(arms + 2 * n);
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t start = 0; start < in->samples; start += TILE) {
        Py_ssize_t length = in->samples - start < TILE ? in->samples - start : TILE;
        for (Py_ssize_t offset = 0; offset < length; offset += LANES) {
            int count = length - offset < LANES ? (int)(length - offset) : LANES;
            motion m = NAME(motion_of_base)(robot);
            NAME(place_all)(robot, in, start + offset, count, placements);
            for (Py_ssize_t j = 0; j < n; j++) {
                const placement *at = &placements[j];
                NAME(advance)(robot->revolute[j], at, NAME(load)(&in->qd, start + offset, count, j),
                              NAME(load)(&in->qdd, start + offset, count, j), &m);
                lane sum = NAME(dot)(m.w, m.w) + NAME(dot)(m.wd, m.a);
                vec zero = NAME(zero)(), z = {zero.x, zero.x, NAME(splat)(1.0)};
                arms[2 * j] = robot->revolute[j] ? z : zero;
                arms[2 * j + 1] = robot->revolute[j] ? zero : z;
                for (Py_ssize_t i = 0; i <= j; i++) {
                    vec u = arms[2 * i], v = arms[2 * i + 1];
                    if (i < j) {
                        v = arms[2 * i + 1] = NAME(unrotate)(&at->R, NAME(add)(v, NAME(cross)(u, at->p)));
                        u = arms[2 * i] = NAME(unrotate)(&at->R, u);
                    }
                    lane block[10];
                    NAME(regressor_block)(&m, u, v, block);
                    sum += block[6] + block[7] + (block[8] + block[9]);
                    const int32_t *place = places + 10 * (i * n + j);
                    for (int k = 0; k < 10; k++)
                        if (place[k] >= 0)
                            memcpy(tile + (Py_ssize_t)place[k] * TILE + offset, &block[k], sizeof(lane));
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
    placement *placements = memory;
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(place_all)(robot, in, first, count, placements);
        vec o = NAME(zero)();
        mat T = {o, o, o};
        T.x.x = T.y.y = T.z.z = NAME(splat)(1.0);
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            const mat *R = &placements[j].R;
            o = NAME(add)(o, NAME(rotate)(&T, placements[j].p));
            mat next = {NAME(rotate)(&T, R->x), NAME(rotate)(&T, R->y), NAME(rotate)(&T, R->z)};
            T = next;
            lane values[12] = {T.x.x, T.y.x, T.z.x, T.x.y, T.y.y, T.z.y, T.x.z, T.y.z, T.z.z, o.x, o.y, o.z};
            for (int k = 0; k < 12; k++)
                NAME(store)(out, first, count, 12 * j + k, values[k]);
            lane sum = NAME(dot)(T.x, o);
            trace += sum - sum;
        }
    }
    return NAME(all_zero)(&trace);
}

/* Composite rigid bodies: ten parameters of link j and all beyond it, in {j}. */
typedef struct { sym I; vec mc; lane m; } NAME(composite);
#undef composite
#define composite NAME(composite)

/* R S Rᵀ of a symmetric matrix. */
static inline sym NAME(sym_rotate)(const mat *R, const sym *S)
{
    vec rx = {R->x.x, R->y.x, R->z.x}, ry = {R->x.y, R->y.y, R->z.y}, rz = {R->x.z, R->y.z, R->z.z};
    vec sx = NAME(sym_times)(S, rx), sy = NAME(sym_times)(S, ry), sz = NAME(sym_times)(S, rz);
    return (sym){NAME(dot)(rx, sx), NAME(dot)(rx, sy), NAME(dot)(rx, sz),
                 NAME(dot)(ry, sy), NAME(dot)(ry, sz), NAME(dot)(rz, sz)};
}

/* The body seen from {j-1}: c' = R c + p and I' = R I Rᵀ + 2 (p·Rmc) E - p (Rmc)ᵀ - (Rmc) pᵀ + m (p² E - p pᵀ). */
static inline composite NAME(composite_inward)(const mat *R, vec p, const composite *own)
{
    composite up;
    vec h = NAME(rotate)(R, own->mc);
    up.I = NAME(sym_rotate)(R, &own->I);
    up.m = own->m;
    up.mc = NAME(add)(h, NAME(scale)(p, own->m));
    lane diagonal = 2.0 * NAME(dot)(p, h) + own->m * NAME(dot)(p, p);
    up.I.xx += diagonal - 2.0 * p.x * h.x - own->m * p.x * p.x;
    up.I.yy += diagonal - 2.0 * p.y * h.y - own->m * p.y * p.y;
    up.I.zz += diagonal - 2.0 * p.z * h.z - own->m * p.z * p.z;
    up.I.xy -= p.x * h.y + h.x * p.y + own->m * p.x * p.y;
    up.I.xz -= p.x * h.z + h.x * p.z + own->m * p.x * p.z;
    up.I.yz -= p.y * h.z + h.y * p.z + own->m * p.y * p.z;
    return up;
}

static int NAME(mass_matrix)(const chain *robot, const states *in, const series *out, void *memory)
{
    Py_ssize_t n = robot->dof;
    placement *placements = memory;
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(place_all)(robot, in, first, count, placements);
        vec zero = NAME(zero)();
        composite body = {{zero.x, zero.x, zero.x, zero.x, zero.x, zero.x}, zero, zero.x};
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            const double *own = robot->inertials + 10 * j;
            body.I.xx += own[0], body.I.xy += own[1], body.I.xz += own[2];
            body.I.yy += own[3], body.I.yz += own[4], body.I.zz += own[5];
            body.mc.x += own[6], body.mc.y += own[7], body.mc.z += own[8];
            body.m += own[9];
            wrench unit; /* momentum of the composite body under unit speed of joint j */
            if (robot->revolute[j]) {
                unit.n = (vec){body.I.xz, body.I.yz, body.I.zz};
                unit.f = (vec){-body.mc.y, body.mc.x, zero.x};
            } else {
                unit.n = (vec){body.mc.y, -body.mc.x, zero.x};
                unit.f = (vec){zero.x, zero.x, body.m};
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
                    unit = NAME(pass_inward)(&placements[i].R, placements[i].p, unit);
            }
            if (j > 0)
                body = NAME(composite_inward)(&placements[j].R, placements[j].p, &body);
        }
        trace += placements[0].R.x.x - placements[0].R.x.x + placements[0].p.z - placements[0].p.z;
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

static inline void NAME(articulated_add)(const double *own, const wrench *push, articulated *body)
{
    body->A.xx += own[0], body->A.xy += own[1], body->A.xz += own[2];
    body->A.yy += own[3], body->A.yz += own[4], body->A.zz += own[5];
    body->Bx.y -= own[8], body->Bx.z += own[7];
    body->By.x += own[8], body->By.z -= own[6];
    body->Bz.x -= own[7], body->Bz.y += own[6];
    body->M.xx += own[9], body->M.yy += own[9], body->M.zz += own[9];
    body->bias.n = NAME(add)(body->bias.n, push->n);
    body->bias.f = NAME(add)(body->bias.f, push->f);
}

static inline hinge NAME(hinge_of)(int revolute, double rotor, lane torque, const articulated *body)
{
    if (revolute)
        return (hinge){{body->A.xz, body->A.yz, body->A.zz}, body->Bz, 1.0 / (body->A.zz + rotor),
                       torque - body->bias.n.z};
    return (hinge){{body->Bx.z, body->By.z, body->Bz.z}, {body->M.xz, body->M.yz, body->M.zz},
                   1.0 / (body->M.zz + rotor), torque - body->bias.f.z};
}

/* The body freed along its joint's axis, seen from {j-1}. */
static inline void NAME(articulated_inward)(const placement *at, const hinge *joint, articulated *body)
{
    vec n = joint->n, f = joint->f, gn = NAME(scale)(n, joint->g), gf = NAME(scale)(f, joint->g);
    sym A = body->A, M = body->M;
    A.xx -= gn.x * n.x, A.xy -= gn.x * n.y, A.xz -= gn.x * n.z;
    A.yy -= gn.y * n.y, A.yz -= gn.y * n.z, A.zz -= gn.z * n.z;
    M.xx -= gf.x * f.x, M.xy -= gf.x * f.y, M.xz -= gf.x * f.z;
    M.yy -= gf.y * f.y, M.yz -= gf.y * f.z, M.zz -= gf.z * f.z;
    vec Bx = NAME(sub)(body->Bx, NAME(scale)(f, gn.x));
    vec By = NAME(sub)(body->By, NAME(scale)(f, gn.y));
    vec Bz = NAME(sub)(body->Bz, NAME(scale)(f, gn.z));
    const mat *R = &at->R;
    vec p = at->p;

    /* rotate: A' = R A Rᵀ, B' = R B Rᵀ (its rows are rb_x, rb_y, rb_z), M' = R M Rᵀ */
    sym Ar = NAME(sym_rotate)(R, &A), Mr = NAME(sym_rotate)(R, &M);
    vec bx = NAME(rotate)(R, Bx), by = NAME(rotate)(R, By), bz = NAME(rotate)(R, Bz);
    mat half = {bx, by, bz}; /* columns: (R Bᵀ) */
    vec rx = {R->x.x, R->y.x, R->z.x}, ry = {R->x.y, R->y.y, R->z.y}, rz = {R->x.z, R->y.z, R->z.z};
    vec rb_x = NAME(rotate)(&half, rx), rb_y = NAME(rotate)(&half, ry), rb_z = NAME(rotate)(&half, rz);

    /* shift: B'' = B' + [p] M', A'' = A' + [p] B'ᵀ - B'' [p] */
    vec mx = {Mr.xx, Mr.xy, Mr.xz}, my = {Mr.xy, Mr.yy, Mr.yz}, mz = {Mr.xz, Mr.yz, Mr.zz};
    vec cx = NAME(add)(rb_x, NAME(sub)(NAME(scale)(mz, p.y), NAME(scale)(my, p.z)));
    vec cy = NAME(add)(rb_y, NAME(sub)(NAME(scale)(mx, p.z), NAME(scale)(mz, p.x)));
    vec cz = NAME(add)(rb_z, NAME(sub)(NAME(scale)(my, p.x), NAME(scale)(mx, p.y)));
    vec px_rb = NAME(cross)(p, rb_x), py_rb = NAME(cross)(p, rb_y), pz_rb = NAME(cross)(p, rb_z); /* columns of [p] B'ᵀ */
    vec cx_p = NAME(cross)(cx, p), cy_p = NAME(cross)(cy, p), cz_p = NAME(cross)(cz, p);         /* rows of B'' [p] */
    body->A = (sym){Ar.xx + px_rb.x - cx_p.x, Ar.xy + py_rb.x - cx_p.y, Ar.xz + pz_rb.x - cx_p.z,
                    Ar.yy + py_rb.y - cy_p.y, Ar.yz + pz_rb.y - cy_p.z, Ar.zz + pz_rb.z - cz_p.z};
    body->Bx = cx, body->By = cy, body->Bz = cz;
    body->M = Mr;
    body->bias.n = NAME(add)(body->bias.n, NAME(scale)(gn, joint->u));
    body->bias.f = NAME(add)(body->bias.f, NAME(scale)(gf, joint->u));
    body->bias = NAME(pass_inward)(R, p, body->bias);
}

/* Articulated bodies. The outward pass with qdd = 0 gives every link its velocity-product and gravity acceleration;
 * the bias wrench is the body's wrench under it, and the recursion solves for the rest, which starts at 0. */
static int NAME(forward_dynamics)(const chain *robot, const states *in, const series *torque, const series *out,
                                   void *memory)
{
    Py_ssize_t n = robot->dof;
    placement *placements = memory;
    wrench *wrenches = (wrench *)(placements + n);
    hinge *hinges = (hinge *)(wrenches + n);
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(outward)(robot, in, first, count, placements, wrenches);
        articulated body = NAME(articulated_nothing)();
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            NAME(articulated_add)(robot->inertials + 10 * j, &wrenches[j], &body);
            lane applied = NAME(load)(torque, first, count, j);
            hinges[j] = NAME(hinge_of)(robot->revolute[j], robot->rotors[j], applied, &body);
            if (j > 0)
                NAME(articulated_inward)(&placements[j], &hinges[j], &body);
        }
        vec wd = NAME(zero)(), a = NAME(zero)();
        for (Py_ssize_t j = 0; j < n; j++) {
            const hinge *joint = &hinges[j];
            a = NAME(unrotate)(&placements[j].R, NAME(add)(a, NAME(cross)(wd, placements[j].p)));
            wd = NAME(unrotate)(&placements[j].R, wd);
            lane qdd = (joint->u - NAME(dot)(joint->n, wd) - NAME(dot)(joint->f, a)) * joint->g;
            if (robot->revolute[j])
                wd.z += qdd;
            else
                a.z += qdd;
            trace += qdd - qdd;
            NAME(store)(out, first, count, j, qdd);
        }
    }
    return NAME(all_zero)(&trace);
}

/* Energy per unit of each standard parameter: kinetic into columns 0 .. 10 n - 1 of `kinetic`, potential (zero at
 * the base origin) into those of `potential`. */
static int NAME(energy_regressors)(const chain *robot, const states *in, const series *kinetic,
                                    const series *potential, void *memory)
{
    placement *placements = memory;
    lane trace = {0};
    NAME(place_fixed)(robot, placements);
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(place_all)(robot, in, first, count, placements);
        vec w = NAME(zero)(), v = NAME(zero)(), g = NAME(constant)(robot->gravity);
        lane height = {0}; /* -g·o, o the origin of the frame */
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            const placement *at = &placements[j];
            lane qd = NAME(load)(&in->qd, first, count, j);
            height -= NAME(dot)(g, at->p);
            g = NAME(unrotate)(&at->R, g);
            v = NAME(unrotate)(&at->R, NAME(add)(v, NAME(cross)(w, at->p)));
            w = NAME(unrotate)(&at->R, w);
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
