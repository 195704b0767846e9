/* Rigid-body algorithms of a serial chain on one lane of samples; the NumPy twin is model/rigid/twin.py.
 *
 * Frame {j} sits on joint axis j, z along it. All vectors of link j are in {j}. Included once per instruction set.
 */

typedef struct {
    mat R;           /* {j} in {j-1} */
    vec p;           /* origin of {j} in {j-1}, m */
    vec w, wd, a;    /* angular velocity, its derivative, acceleration of the origin less gravity */
} NAME(link_state);
#undef link_state
#define link_state NAME(link_state)

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

/* R0 Rot_z(q) and p0, or R0 and p0 + R0 e_z q. */
static inline void NAME(place)(const chain *robot, Py_ssize_t j, lane q, mat *R, vec *p)
{
    const double *R0 = robot->rotations + 9 * j;
    vec x = {NAME(splat)(R0[0]), NAME(splat)(R0[3]), NAME(splat)(R0[6])};
    vec y = {NAME(splat)(R0[1]), NAME(splat)(R0[4]), NAME(splat)(R0[7])};
    R->z = (vec){NAME(splat)(R0[2]), NAME(splat)(R0[5]), NAME(splat)(R0[8])};
    *p = NAME(constant)(robot->translations + 3 * j);
    if (robot->revolute[j]) {
        lane s, c;
        NAME(sincos)(q, &s, &c);
        R->x = NAME(add)(NAME(scale)(x, c), NAME(scale)(y, s));
        R->y = NAME(sub)(NAME(scale)(y, c), NAME(scale)(x, s));
    } else {
        R->x = x;
        R->y = y;
        *p = NAME(add)(*p, NAME(scale)(R->z, q));
    }
}

/* Newton-Euler, outwards: motion of link j from that of link j-1. */
static inline void NAME(advance)(const chain *robot, Py_ssize_t j, const link_state *before, link_state *link,
                                 lane qd, lane qdd)
{
    vec wxp = NAME(cross)(before->w, link->p);
    vec a = NAME(add)(before->a, NAME(add)(NAME(cross)(before->wd, link->p), NAME(cross)(before->w, wxp)));
    vec w = NAME(unrotate)(&link->R, before->w);
    link->wd = NAME(unrotate)(&link->R, before->wd);
    link->a = NAME(unrotate)(&link->R, a);
    link->w = w;
    if (robot->revolute[j]) { /* w += z qd; wd += w x z qd + z qdd */
        link->wd.x += w.y * qd;
        link->wd.y -= w.x * qd;
        link->wd.z += qdd;
        link->w.z += qd;
    } else { /* a += 2 w x z qd + z qdd */
        link->a.x += 2.0 * w.y * qd;
        link->a.y -= 2.0 * w.x * qd;
        link->a.z += qdd;
    }
}

static inline void NAME(outward)(const chain *robot, const states *in, Py_ssize_t first, int count, link_state *links)
{
    link_state base;
    memset(&base, 0, sizeof(base));
    base.a = NAME(scale)(NAME(constant)(robot->gravity), NAME(splat)(-1.0));
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        NAME(place)(robot, j, NAME(load)(&in->q, first, count, j), &links[j].R, &links[j].p);
        NAME(advance)(robot, j, j ? &links[j - 1] : &base, &links[j],
                      NAME(load)(&in->qd, first, count, j), NAME(load)(&in->qdd, first, count, j));
    }
}

/* f = m a + wd x mc + w x (w x mc);  n = I wd + w x (I w) + mc x a */
static inline wrench NAME(body_wrench)(const double *inertial, const link_state *link)
{
    sym I = {NAME(splat)(inertial[0]), NAME(splat)(inertial[1]), NAME(splat)(inertial[2]),
             NAME(splat)(inertial[3]), NAME(splat)(inertial[4]), NAME(splat)(inertial[5])};
    vec mc = NAME(constant)(inertial + 6);
    wrench result;
    vec wxmc = NAME(cross)(link->w, mc);
    result.f = NAME(add)(NAME(scale)(link->a, NAME(splat)(inertial[9])),
                         NAME(add)(NAME(cross)(link->wd, mc), NAME(cross)(link->w, wxmc)));
    result.n = NAME(add)(NAME(add)(NAME(sym_times)(&I, link->wd), NAME(cross)(mc, link->a)),
                         NAME(cross)(link->w, NAME(sym_times)(&I, link->w)));
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

static int NAME(inverse_dynamics)(const chain *robot, const states *in, const series *torque, void *memory)
{
    link_state *links = memory;
    lane trace = {0};
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(outward)(robot, in, first, count, links);
        wrench carried;
        memset(&carried, 0, sizeof(carried));
        for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
            wrench own = NAME(body_wrench)(robot->inertials + 10 * j, &links[j]);
            carried.n = NAME(add)(carried.n, own.n);
            carried.f = NAME(add)(carried.f, own.f);
            lane tau = robot->revolute[j] ? carried.n.z : carried.f.z;
            tau += robot->rotors[j] * NAME(load)(&in->qdd, first, count, j);
            trace += tau - tau;
            NAME(store)(torque, first, count, j, tau);
            carried = NAME(pass_inward)(&links[j].R, links[j].p, carried);
        }
    }
    return NAME(all_zero)(&trace);
}

/* One row block of the regressor: u·n + v·f for each of the ten parameters of a link, u and v being the axis of
 * the joint and its moment arm (axis x (link origin - joint origin)) in the frame of the link. */
static inline void NAME(regressor_block)(const link_state *link, vec u, vec v, lane *block)
{
    vec w = link->w, wd = link->wd, a = link->a;
    vec k = NAME(cross)(u, w);
    block[0] = u.x * wd.x + k.x * w.x;
    block[1] = u.x * wd.y + u.y * wd.x + k.x * w.y + k.y * w.x;
    block[2] = u.x * wd.z + u.z * wd.x + k.x * w.z + k.z * w.x;
    block[3] = u.y * wd.y + k.y * w.y;
    block[4] = u.y * wd.z + u.z * wd.y + k.y * w.z + k.z * w.y;
    block[5] = u.z * wd.z + k.z * w.z;
    /* v·(wd x c + w x (w x c)) + u·(c x a) = c·(v x wd + w (w·v) - v w² + a x u) */
    vec first = NAME(add)(NAME(cross)(v, wd), NAME(cross)(a, u));
    lane wv = NAME(dot)(w, v), ww = NAME(dot)(w, w);
    block[6] = first.x + w.x * wv - v.x * ww;
    block[7] = first.y + w.y * wv - v.y * ww;
    block[8] = first.z + w.z * wv - v.z * ww;
    block[9] = NAME(dot)(v, a);
}

/* Writes TILE samples of every structurally non-zero series, then moves the tile out in whole cache lines.
 * `places[10 (i n + j) + k]` is the index of the series of row i, parameter k of link j, or -1 for a zero. */
static int NAME(regressor)(const chain *robot, const states *in, const int32_t *places, Py_ssize_t count_series,
                            const series *out, void *memory)
{
    Py_ssize_t n = robot->dof;
    link_state *links = memory;
    vec *arms = (vec *)(links + n); /* u, v of every joint before the current link */
    double *tile = (double *)(arms + 2 * n);
    lane trace = {0};
    for (Py_ssize_t start = 0; start < in->samples; start += TILE) {
        Py_ssize_t length = in->samples - start < TILE ? in->samples - start : TILE;
        for (Py_ssize_t offset = 0; offset < length; offset += LANES) {
            int count = length - offset < LANES ? (int)(length - offset) : LANES;
            NAME(outward)(robot, in, start + offset, count, links);
            for (Py_ssize_t j = 0; j < n; j++) {
                for (Py_ssize_t i = 0; i < j; i++) {
                    vec u = arms[2 * i], v = arms[2 * i + 1];
                    arms[2 * i] = NAME(unrotate)(&links[j].R, u);
                    arms[2 * i + 1] = NAME(unrotate)(&links[j].R, NAME(add)(v, NAME(cross)(u, links[j].p)));
                }
                vec zero = {{0}}, z = {{0}};
                lane sum = NAME(dot)(links[j].w, links[j].w) + NAME(dot)(links[j].wd, links[j].a);
                z.z = NAME(splat)(1.0);
                arms[2 * j] = robot->revolute[j] ? z : zero;
                arms[2 * j + 1] = robot->revolute[j] ? zero : z;
                for (Py_ssize_t i = 0; i <= j; i++) {
                    lane block[10];
                    NAME(regressor_block)(&links[j], arms[2 * i], arms[2 * i + 1], block);
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
    (void)memory;
    lane trace = {0};
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        mat T;
        memset(&T, 0, sizeof(T));
        T.x.x = T.y.y = T.z.z = NAME(splat)(1.0);
        vec o;
        memset(&o, 0, sizeof(o));
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            mat R;
            vec p;
            NAME(place)(robot, j, NAME(load)(&in->q, first, count, j), &R, &p);
            o = NAME(add)(o, NAME(rotate)(&T, p));
            mat next = {NAME(rotate)(&T, R.x), NAME(rotate)(&T, R.y), NAME(rotate)(&T, R.z)};
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
    link_state *links = memory;
    lane trace = {0};
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        for (Py_ssize_t j = 0; j < n; j++)
            NAME(place)(robot, j, NAME(load)(&in->q, first, count, j), &links[j].R, &links[j].p);
        composite body;
        memset(&body, 0, sizeof(body));
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            const double *own = robot->inertials + 10 * j;
            body.I.xx += own[0], body.I.xy += own[1], body.I.xz += own[2];
            body.I.yy += own[3], body.I.yz += own[4], body.I.zz += own[5];
            body.mc.x += own[6], body.mc.y += own[7], body.mc.z += own[8];
            body.m += own[9];
            wrench unit; /* momentum of the composite body under unit speed of joint j */
            vec zero = {{0}};
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
                unit = NAME(pass_inward)(&links[i].R, links[i].p, unit);
            }
            body = NAME(composite_inward)(&links[j].R, links[j].p, &body);
        }
        trace += links[0].R.x.x - links[0].R.x.x + links[0].p.z - links[0].p.z;
    }
    return NAME(all_zero)(&trace);
}

/* Articulated inertia [[A, B], [Bᵀ, M]] on (angular; linear) and the bias wrench. B by rows. */
typedef struct {
    sym A, M;
    vec Bx, By, Bz;
    wrench bias;
    vec Un, Uf;  /* inertia times the joint axis */
    lane D, u;
} NAME(articulated);
#undef articulated
#define articulated NAME(articulated)

static inline void NAME(articulated_start)(const double *own, articulated *body)
{
    memset(body, 0, sizeof(*body));
    body->A = (sym){NAME(splat)(own[0]), NAME(splat)(own[1]), NAME(splat)(own[2]),
                    NAME(splat)(own[3]), NAME(splat)(own[4]), NAME(splat)(own[5])};
    body->Bx.y = NAME(splat)(-own[8]), body->Bx.z = NAME(splat)(own[7]);
    body->By.x = NAME(splat)(own[8]), body->By.z = NAME(splat)(-own[6]);
    body->Bz.x = NAME(splat)(-own[7]), body->Bz.y = NAME(splat)(own[6]);
    body->M.xx = body->M.yy = body->M.zz = NAME(splat)(own[9]);
}

/* Adds the body of joint j, freed along its axis, to the body before it. */
static inline void NAME(articulated_inward)(const link_state *link, const articulated *own, articulated *before)
{
    lane g = 1.0 / own->D;
    vec n = own->Un, f = own->Uf;
    sym A = own->A, M = own->M;
    A.xx -= g * n.x * n.x, A.xy -= g * n.x * n.y, A.xz -= g * n.x * n.z;
    A.yy -= g * n.y * n.y, A.yz -= g * n.y * n.z, A.zz -= g * n.z * n.z;
    M.xx -= g * f.x * f.x, M.xy -= g * f.x * f.y, M.xz -= g * f.x * f.z;
    M.yy -= g * f.y * f.y, M.yz -= g * f.y * f.z, M.zz -= g * f.z * f.z;
    vec Bx = NAME(sub)(own->Bx, NAME(scale)(f, g * n.x));
    vec By = NAME(sub)(own->By, NAME(scale)(f, g * n.y));
    vec Bz = NAME(sub)(own->Bz, NAME(scale)(f, g * n.z));
    const mat *R = &link->R;
    vec p = link->p;

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
    before->A.xx += Ar.xx + px_rb.x - cx_p.x;
    before->A.xy += Ar.xy + py_rb.x - cx_p.y;
    before->A.xz += Ar.xz + pz_rb.x - cx_p.z;
    before->A.yy += Ar.yy + py_rb.y - cy_p.y;
    before->A.yz += Ar.yz + pz_rb.y - cy_p.z;
    before->A.zz += Ar.zz + pz_rb.z - cz_p.z;
    before->Bx = NAME(add)(before->Bx, cx);
    before->By = NAME(add)(before->By, cy);
    before->Bz = NAME(add)(before->Bz, cz);
    before->M.xx += Mr.xx, before->M.xy += Mr.xy, before->M.xz += Mr.xz;
    before->M.yy += Mr.yy, before->M.yz += Mr.yz, before->M.zz += Mr.zz;
    wrench pushed = own->bias;
    lane share = own->u * g;
    pushed.n = NAME(add)(pushed.n, NAME(scale)(n, share));
    pushed.f = NAME(add)(pushed.f, NAME(scale)(f, share));
    wrench moved = NAME(pass_inward)(R, p, pushed);
    before->bias.n = NAME(add)(before->bias.n, moved.n);
    before->bias.f = NAME(add)(before->bias.f, moved.f);
}

/* Articulated bodies. The outward pass with qdd = 0 gives every link its velocity-product and gravity acceleration;
 * the bias wrench is the body's wrench under it, and the recursion solves for the rest, which starts at 0. */
static int NAME(forward_dynamics)(const chain *robot, const states *in, const series *torque, const series *out,
                                   void *memory)
{
    Py_ssize_t n = robot->dof;
    link_state *links = memory;
    articulated *bodies = (articulated *)(links + n);
    lane trace = {0};
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        NAME(outward)(robot, in, first, count, links);
        for (Py_ssize_t j = 0; j < n; j++) {
            NAME(articulated_start)(robot->inertials + 10 * j, &bodies[j]);
            bodies[j].bias = NAME(body_wrench)(robot->inertials + 10 * j, &links[j]);
        }
        for (Py_ssize_t j = n - 1; j >= 0; j--) {
            articulated *body = &bodies[j];
            lane push;
            if (robot->revolute[j]) {
                body->Un = (vec){body->A.xz, body->A.yz, body->A.zz};
                body->Uf = body->Bz;
                body->D = body->A.zz + robot->rotors[j];
                push = body->bias.n.z;
            } else {
                body->Un = (vec){body->Bx.z, body->By.z, body->Bz.z};
                body->Uf = (vec){body->M.xz, body->M.yz, body->M.zz};
                body->D = body->M.zz + robot->rotors[j];
                push = body->bias.f.z;
            }
            body->u = NAME(load)(torque, first, count, j) - push;
            if (j > 0)
                NAME(articulated_inward)(&links[j], body, &bodies[j - 1]);
        }
        vec wd, a;
        memset(&wd, 0, sizeof(wd));
        memset(&a, 0, sizeof(a));
        for (Py_ssize_t j = 0; j < n; j++) {
            const articulated *body = &bodies[j];
            a = NAME(unrotate)(&links[j].R, NAME(add)(a, NAME(cross)(wd, links[j].p)));
            wd = NAME(unrotate)(&links[j].R, wd);
            lane qdd = (body->u - NAME(dot)(body->Un, wd) - NAME(dot)(body->Uf, a)) / body->D;
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
    (void)memory;
    lane trace = {0};
    for (Py_ssize_t first = 0; first < in->samples; first += LANES) {
        int count = in->samples - first < LANES ? (int)(in->samples - first) : LANES;
        vec w, v, g = NAME(constant)(robot->gravity);
        memset(&w, 0, sizeof(w));
        memset(&v, 0, sizeof(v));
        lane height;
        memset(&height, 0, sizeof(height)); /* -g·o, o the origin of the frame */
        for (Py_ssize_t j = 0; j < robot->dof; j++) {
            mat R;
            vec p;
            NAME(place)(robot, j, NAME(load)(&in->q, first, count, j), &R, &p);
            lane qd = NAME(load)(&in->qd, first, count, j);
            height -= NAME(dot)(g, p);
            g = NAME(unrotate)(&R, g);
            v = NAME(unrotate)(&R, NAME(add)(v, NAME(cross)(w, p)));
            w = NAME(unrotate)(&R, w);
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
