/* Forward dynamics by composite bodies: M(q) q̈ = τ - bias, everything in base axes about the base origin.
 *
 * There bodies are simply added up, without the rotations from link to link whose latency the articulated bodies of
 * links.h wait for: for a handful of joints M and its factors Lᵀ D L cost less than they do. Spatial quantities are pairs
 * (about the origin): an axis (turn, slide), a velocity (w, v of the point at the origin), a force (moment, force).
 *
 * Two changes of what does not depend on q make the rest shorter and leave the motion as it is:
 *   - the frames are turned about their joints' axes so that {j} follows from {j-1} by a turn about x, then one about z;
 *   - what turning about its joint's axis does not change of a link is given to the link before: all of its mass, the
 *     moment along the axis and a cylinder's inertia. A sliding link gives all its inertia about its origin.
 *
 * A vector a goes with its rolls a' = (y, z, x) and a'' = (z, x, y). Then (a x b)'' = a b' - a' b, entry by entry, so sums
 * of cross products are kept as '', where nothing has to be moved between entries.
 *
 * Included once per instruction set by plant.c, after links.h.
 */

#undef rolled_vec
#undef body
#undef kept_link
#undef inertia_set
#undef composite
#define rolled_vec NAME(rolled_vec)
#define body NAME(body)
#define kept_link NAME(kept_link)
#define inertia_set NAME(inertia_set)
#define composite NAME(composite)

/* A vector and its rolls. */
typedef struct { vec4 as, once, twice; } rolled_vec;

/* Mass, moment m c and inertia about the origin of some frame. */
typedef struct { mat3 inertia; vec4 moment; double mass; } inertia_set;

/* Inertia that remains with link j, {j} rotated about its axis: I = x uᵀ + u xᵀ + z sᵀ + s zᵀ with u = u_x x + u_y y, s = s_x x + s_y y + s_z z. */
typedef struct {
    vec4 p; /* origin of {j} in {j-1} at q = 0 */
    double u_x, u_y, s_x, s_y, s_z;
    double h_x, h_y, h_z, mass; /* h_z and mass are 0 where the joint turns */
} kept_link;

/* Inertia (xx, yy, zz)'', and (xy, yz, zx) once and twice rolled: (I a)'' = diagonal a'' + twice a + once a'. */
typedef struct { vec4 diagonal, once, twice; } NAME(rolled_inertia);
#undef rolled_inertia
#define rolled_inertia NAME(rolled_inertia)

typedef struct {
    rolled_inertia inertia; /* that remains with the link, about the base origin */
    rolled_vec moment;      /* m c, about it */
    rolled_vec turn, slide; /* joint axis */
    double mass;
} body;

typedef struct {
    Py_ssize_t n, width; /* joints, and the next multiple of four: of the arrays below */
    int turns;          /* all joints turn */
    mat3 base, tip;    /* axes before the first joint, and of the last link */
    vec4 p, gravity;    /* origin of the last link; -g'' */
    kept_link *solids;
    body *bodies;           /* the last ones, past n, zero */
    double *offset, *share; /* joint angles are offset + share q, rad */
    double *cosine, *sine;  /* of the turns about x */
    double *turned[6];      /* c, -s, s cosine, s sine, c cosine, c sine of the turns about z */
    double *M, *per;        /* (n, width): below the diagonal L, 1 / D */
    vec4 *moments, *forces; /* bias wrenches of the links, twice rolled */
} composite;

static inline Py_ssize_t NAME(padded)(Py_ssize_t n) { return (n + 3) / 4 * 4; }

/* Assigns the arrays of `arm` to memory that is aligned to a `vec4` and zero; returns the rest of it. */
static char *NAME(assign_composite)(composite *arm, Py_ssize_t n, char *memory)
{
    Py_ssize_t width = arm->width = NAME(padded)(n);
    arm->n = n;
    arm->bodies = (body *)memory, memory += (size_t)width * sizeof(body);
    arm->solids = (kept_link *)memory, memory += (size_t)n * sizeof(kept_link);
    arm->moments = (vec4 *)memory, memory += (size_t)width * sizeof(vec4);
    arm->forces = (vec4 *)memory, memory += (size_t)width * sizeof(vec4);
    double *next = (double *)memory, **rows[5] = {&arm->offset, &arm->share, &arm->cosine, &arm->sine, &arm->per};
    for (int k = 0; k < 5; k++, next += width)
        *rows[k] = next;
    for (int k = 0; k < 6; k++, next += width)
        arm->turned[k] = next;
    arm->M = next;
    return (char *)(next + n * width);
}

/* -- once -- */

/* Axes turned about z: x cos + y sin, y cos - x sin, z. */
static mat3 NAME(about_z)(double angle)
{
    double s = sin(angle), c = cos(angle);
    return (mat3){NAME(vector)(c, s, 0.0), NAME(vector)(-s, c, 0.0), NAME(vector)(0.0, 0.0, 1.0)};
}

/* The same expressed in axes R at p. */
static inertia_set NAME(in_frame)(mat3 R, vec4 p, inertia_set part)
{
    mat3 RI = NAME(matmul)(&R, &part.inertia), back = NAME(transpose)(R);
    vec4 h = NAME(matvec)(&R, part.moment), k = NAME(add)(h, NAME(scale)(p, part.mass));
    mat3 away = NAME(mat_add)(NAME(dyad)(p, h), NAME(dyad)(k, p));
    double far = NAME(dot)(p, NAME(add)(h, k));
    mat3 I = NAME(mat_sub)(NAME(matmul)(&RI, &back), away);
    I = NAME(mat_add)(I, (mat3){NAME(vector)(far, 0.0, 0.0), NAME(vector)(0.0, far, 0.0), NAME(vector)(0.0, 0.0, far)});
    return (inertia_set){I, k, part.mass};
}

/* Splits the inertia of a link: `kept` depends on q_j; what does not is returned and added to the link before. */
static inertia_set NAME(split_inertia)(int revolute, inertia_set link, kept_link *kept)
{
    mat3 I = link.inertia;
    vec4 none = NAME(broadcast)(0.0);
    kept->h_x = NAME(entry)(link.moment, 0), kept->h_y = NAME(entry)(link.moment, 1);
    if (!revolute) {
        kept->h_z = NAME(entry)(link.moment, 2), kept->mass = link.mass;
        return (inertia_set){I, none, 0.0};
    }
    double round = NAME(entry)(I.y, 1);
    kept->u_x = 0.5 * (NAME(entry)(I.x, 0) - round), kept->u_y = NAME(entry)(I.x, 1);
    kept->s_x = NAME(entry)(I.x, 2), kept->s_y = NAME(entry)(I.y, 2), kept->s_z = 0.5 * NAME(entry)(I.z, 2);
    mat3 cylinder = {NAME(vector)(round, 0.0, 0.0), NAME(vector)(0.0, round, 0.0), none};
    return (inertia_set){cylinder, NAME(vector)(0.0, 0.0, NAME(entry)(link.moment, 2)), link.mass};
}

/* R = Rot_z(φ) Rot_x(α) Rot_z(θ): gives cos α, sin α and θ (`late`), returns φ. */
static double NAME(euler_angles)(const mat3 *R, double *cosine, double *sine, double *late)
{
    double x = NAME(entry)(R->z, 0), y = NAME(entry)(R->z, 1), first = x == 0.0 && y == 0.0 ? 0.0 : atan2(x, -y);
    double size = hypot(hypot(x, y), NAME(entry)(R->z, 2));
    *sine = hypot(x, y) / size, *cosine = NAME(entry)(R->z, 2) / size;
    mat3 back = NAME(about_z)(-first);
    vec4 rest = NAME(matvec)(&back, R->x); /* its x, y, z: cos θ, cos α sin θ, sin α sin θ */
    *late = atan2(*cosine * NAME(entry)(rest, 1) + *sine * NAME(entry)(rest, 2), NAME(entry)(rest, 0));
    return first;
}

/* What does not depend on q, from the links of `arm`. */
static void NAME(set_composite)(composite *whole, const chain *robot, const links *arm)
{
    vec4 none = NAME(broadcast)(0.0);
    inertia_set given = {{none, none, none}, none, 0.0};
    double next = 0.0; /* how far {j} is turned, for the sake of {j+1} */
    whole->turns = 1;
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        kept_link *kept = &whole->solids[j];
        inertia_set link = {NAME(mat_add)(arm->inertia[j], given.inertia), NAME(add)(arm->moment[j], given.moment),
                     arm->mass[j] + given.mass};
        given = NAME(split_inertia)(robot->revolute[j], NAME(in_frame)(NAME(about_z)(-next), none, link), kept);
        mat3 R = arm->fixed[j], turned_by = NAME(about_z)(next), turned = NAME(matmul)(&R, &turned_by);
        given = NAME(in_frame)(turned, arm->fixed_p[j], given);
        double late, first = NAME(euler_angles)(&R, &whole->cosine[j], &whole->sine[j], &late);
        whole->offset[j] = late + next;
        whole->share[j] = robot->revolute[j] ? 1.0 : 0.0;
        mat3 back = NAME(about_z)(-first);
        kept->p = NAME(matvec)(&back, arm->fixed_p[j]);
        whole->turns &= robot->revolute[j] != 0;
        next = first;
    }
    whole->base = NAME(about_z)(next);
    whole->gravity = NAME(vector)(-robot->gravity[2], -robot->gravity[0], -robot->gravity[1]);
}

/* -- at a pose -- */

static inline vec4 NAME(roll_back)(vec4 a) { return SHUFFLE(a, a, 2, 0, 1, 3); } /* z, x, y */
static inline rolled_vec NAME(roll_all)(vec4 twice)
{
    return (rolled_vec){NAME(roll)(twice), NAME(roll_back)(twice), twice};
}
/* a + b s */
static inline vec4 NAME(add_scaled)(vec4 a, vec4 b, double s) { return NAME(add)(a, NAME(scale)(b, s)); }
/* sum + a b */
static inline vec4 NAME(mul_add)(vec4 sum, vec4 a, vec4 b) { return NAME(add)(sum, NAME(mul)(a, b)); }
/* sum + (a x b)'' */
static inline vec4 NAME(add_cross)(vec4 sum, rolled_vec a, rolled_vec b)
{
    return NAME(sub)(NAME(add)(sum, NAME(mul)(a.as, b.once)), NAME(mul)(a.once, b.as));
}
/* sum + (I a)'' */
static inline vec4 NAME(add_inertia)(vec4 sum, rolled_inertia I, rolled_vec a)
{
    return NAME(mul_add)(NAME(mul_add)(NAME(mul_add)(sum, I.diagonal, a.twice), I.twice, a.as), I.once, a.once);
}

/* Sines and cosines of the joints and their products with those of the turns about x. Behind q lie other numbers, which are
 * read with it and not used; angles that are too large for `vec4_sines` end the simulation anyway. */
INLINED void NAME(joint_sines)(Py_ssize_t n, composite *arm, const double *q)
{
    vec4 none = NAME(broadcast)(0.0);
    UNROLLED
    for (Py_ssize_t j = 0; j < n; j += 4) {
        vec4 s, c, x = NAME(load)(arm->cosine + j), y = NAME(load)(arm->sine + j);
        vec4 angle = NAME(mul_add)(NAME(load)(arm->offset + j), NAME(load)(arm->share + j), NAME(load)(q + j));
        NAME(vec4_sines)(angle, &s, &c);
        vec4 products[6] = {c, NAME(sub)(none, s), NAME(mul)(s, x), NAME(mul)(s, y), NAME(mul)(c, x),
                            NAME(mul)(c, y)};
        for (int k = 0; k < 6; k++)
            NAME(store)(products[k], arm->turned[k] + j);
    }
}

/* Inertia that remains with link j, about the base origin: x uᵀ + z sᵀ - p hᵀ + p·h 1 and its transpose, h that of a link without mass, or
 * with half of m p. */
static inline rolled_inertia NAME(link_inertia)(vec4 x, vec4 u, vec4 z, vec4 z_once, vec4 s, vec4 p, vec4 p_once, vec4 h,
                                                vec4 h_once)
{
    vec4 inside = NAME(mul)(p, h), diagonal = NAME(roll_back)(NAME(mul_add)(NAME(mul)(x, u), z, s));
    vec4 D = NAME(add)(diagonal, NAME(add)(inside, NAME(roll)(inside)));
    vec4 E = NAME(mul_add)(NAME(mul)(x, NAME(roll)(u)), NAME(roll)(x), u);
    E = NAME(mul_add)(NAME(mul_add)(E, z, NAME(roll)(s)), z_once, s);
    E = NAME(sub)(NAME(sub)(E, NAME(mul)(p, h_once)), NAME(mul)(p_once, h));
    return (rolled_inertia){NAME(add)(D, D), NAME(roll)(E), NAME(roll_back)(E)};
}

/* Axis of joint j and the inertia that remains with its link. */
INLINED void NAME(set_body)(const kept_link *kept, int revolute, mat3 R, vec4 p, body *body_j)
{
    vec4 none = NAME(broadcast)(0.0), z_once = NAME(roll)(R.z), p_once = NAME(roll)(p);
    vec4 h = NAME(add_scaled)(NAME(scale)(R.x, kept->h_x), R.y, kept->h_y), half = h;
    vec4 u = NAME(add_scaled)(NAME(scale)(R.x, kept->u_x), R.y, kept->u_y);
    vec4 s = NAME(add_scaled)(NAME(add_scaled)(NAME(scale)(R.x, kept->s_x), R.y, kept->s_y), R.z, kept->s_z);
    rolled_vec z = {R.z, z_once, NAME(roll_back)(R.z)}, still = {none, none, none};
    if (!revolute) {
        half = NAME(add_scaled)(NAME(add_scaled)(h, R.z, kept->h_z), p, 0.5 * kept->mass);
        h = NAME(add_scaled)(half, p, 0.5 * kept->mass);
    }
    body_j->moment.as = h, body_j->moment.once = NAME(roll)(h);
    vec4 half_once = revolute ? body_j->moment.once : NAME(roll)(half);
    body_j->inertia = NAME(link_inertia)(R.x, u, R.z, z_once, s, p, p_once, half, half_once);
    body_j->mass = kept->mass;
    body_j->turn = revolute ? z : still;
    body_j->slide = revolute ? NAME(roll_all)(NAME(add_cross)(none, (rolled_vec){p, p_once, p}, z)) : z;
}

/* Frames outwards, and the bodies in them. */
INLINED void NAME(place_bodies)(Py_ssize_t n, int turns, const chain *robot, composite *arm, const double *q)
{
    mat3 R = arm->base;
    vec4 p = NAME(broadcast)(0.0);
    NAME(joint_sines)(n, arm, q);
    double *const *by = arm->turned;
    for (Py_ssize_t j = 0; j < n; j++) {
        const kept_link *kept = &arm->solids[j];
        const double *at = (const double *)&kept->p;
        int revolute = turns || robot->revolute[j];
        vec4 x = R.x, y = R.y, z = R.z;
        p = NAME(add_scaled)(NAME(add_scaled)(NAME(add_scaled)(p, x, at[0]), y, at[1]), z, at[2]);
        R.x = NAME(add_scaled)(NAME(add_scaled)(NAME(scale)(x, by[0][j]), y, by[2][j]), z, by[3][j]);
        R.y = NAME(add_scaled)(NAME(add_scaled)(NAME(scale)(x, by[1][j]), y, by[4][j]), z, by[5][j]);
        R.z = NAME(sub)(NAME(scale)(z, arm->cosine[j]), NAME(scale)(y, arm->sine[j]));
        if (!revolute)
            p = NAME(add_scaled)(p, R.z, q[j]);
        NAME(set_body)(kept, revolute, R, p, &arm->bodies[j]);
    }
    arm->tip = R, arm->p = p;
}

/* The sums of four vectors. */
static inline vec4 NAME(sums)(vec4 a, vec4 b, vec4 c, vec4 d)
{
    vec4 xz = SHUFFLE(a, b, 0, 4, 2, 6), y = SHUFFLE(a, b, 1, 5, 3, 7);
    vec4 next_xz = SHUFFLE(c, d, 0, 4, 2, 6), next_y = SHUFFLE(c, d, 1, 5, 3, 7);
    vec4 sum = NAME(add)(SHUFFLE(xz, next_xz, 0, 1, 4, 5), SHUFFLE(y, next_y, 0, 1, 4, 5));
    return NAME(add)(sum, SHUFFLE(xz, next_xz, 2, 3, 6, 7));
}

/* A wrench, twice rolled, along the axis of a joint, entry by entry. */
static inline vec4 NAME(along)(const body *link, vec4 moment, vec4 force)
{
    return NAME(mul_add)(NAME(mul)(link->turn.twice, moment), link->slide.twice, force);
}

/* Lower triangle of M(q) of the links, row by row from the tip. */
INLINED void NAME(mass_matrix)(Py_ssize_t n, int turns, composite *arm)
{
    vec4 o = NAME(broadcast)(0.0);
    rolled_vec k = {o, o, o};
    rolled_inertia I = {o, o, o};
    double m = 0.0;
    UNROLLED
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        const body *link = &arm->bodies[j], *to = arm->bodies;
        double *row = arm->M + j * NAME(padded)(n);
        I = (rolled_inertia){NAME(add)(I.diagonal, link->inertia.diagonal), NAME(add)(I.once, link->inertia.once),
                   NAME(add)(I.twice, link->inertia.twice)};
        k.as = NAME(add)(k.as, link->moment.as), k.once = NAME(add)(k.once, link->moment.once);
        vec4 moment = NAME(add_cross)(NAME(add_inertia)(o, I, link->turn), k, link->slide);
        vec4 force = NAME(add_cross)(o, link->turn, k);
        if (!turns) {
            m += link->mass;
            force = NAME(add_scaled)(force, link->slide.twice, m);
        }
        UNROLLED
        for (Py_ssize_t i = 0; i <= j; i += 4, to += 4)
            NAME(store)(NAME(sums)(NAME(along)(to, moment, force), NAME(along)(to + 1, moment, force),
                                  NAME(along)(to + 2, moment, force), NAME(along)(to + 3, moment, force)), row + i);
    }
}

/* M and the rotors on its diagonal = Lᵀ D L in place: L below the diagonal, 1 / D in `per`. */
INLINED void NAME(factor)(Py_ssize_t n, const double *rotors, double *M, double *per)
{
    Py_ssize_t width = NAME(padded)(n);
    UNROLLED
    for (Py_ssize_t k = n - 1; k >= 0; k--) {
        double *row = M + k * width;
        per[k] = 1.0 / (row[k] + rotors[k]);
        UNROLLED
        for (Py_ssize_t i = k - 1; i >= 0; i--) {
            double l = row[i] * per[k];
            UNROLLED
            for (Py_ssize_t j = 0; j <= i; j++)
                M[i * width + j] -= l * row[j];
            row[i] = l;
        }
    }
}

/* x <- M⁻¹ x */
INLINED void NAME(solve)(Py_ssize_t n, const double *L, const double *per, double *x)
{
    Py_ssize_t width = NAME(padded)(n);
    UNROLLED
    for (Py_ssize_t k = n - 1; k >= 0; k--)
        UNROLLED
        for (Py_ssize_t i = 0; i < k; i++)
            x[i] -= L[k * width + i] * x[k];
    UNROLLED
    for (Py_ssize_t i = 0; i < n; i++) {
        x[i] *= per[i];
        UNROLLED
        for (Py_ssize_t j = 0; j < i; j++)
            x[i] -= L[i * width + j] * x[j];
    }
}

/* -- at speeds -- */

/* Bias wrenches of the links (without joint accelerations), each about the base origin; returns the power of the wrench
 * at the tool. With the acceleration b = a + w x v of the point at the origin
 * n = I wd + w x (I w) + k x b, f = m b + wd x k + w x (w x k). */
INLINED double NAME(bias_wrenches)(Py_ssize_t n, int turns, const links *load, composite *arm, const double *qd)
{
    vec4 o = NAME(broadcast)(0.0), a = arm->gravity, turning = o;
    rolled_vec w = {o, o, o}, v = w;
    for (Py_ssize_t j = 0; j < n; j++) {
        const body *link = &arm->bodies[j];
        rolled_vec z = link->turn, slide = link->slide, k = link->moment;
        a = NAME(add_scaled)(a, NAME(add_cross)(NAME(add_cross)(o, w, slide), v, z), qd[j]);
        turning = NAME(add_scaled)(turning, NAME(add_cross)(o, w, z), qd[j]);
        w = (rolled_vec){NAME(add_scaled)(w.as, z.as, qd[j]), NAME(add_scaled)(w.once, z.once, qd[j]),
                   NAME(add_scaled)(w.twice, z.twice, qd[j])};
        v.as = NAME(add_scaled)(v.as, slide.as, qd[j]), v.once = NAME(add_scaled)(v.once, slide.once, qd[j]);
        rolled_vec wd = NAME(roll_all)(turning), b = NAME(roll_all)(NAME(add_cross)(a, w, v));
        rolled_vec spin = NAME(roll_all)(NAME(add_inertia)(o, link->inertia, w));
        rolled_vec swept = NAME(roll_all)(NAME(add_cross)(o, w, k));
        vec4 force = NAME(add_cross)(NAME(add_cross)(o, wd, k), w, swept);
        arm->forces[j] = turns ? force : NAME(add_scaled)(force, b.twice, link->mass);
        arm->moments[j] = NAME(add_cross)(NAME(add_cross)(NAME(add_inertia)(o, link->inertia, wd), w, spin), k, b);
    }
    if (!load->pushed)
        return 0.0;
    vec4 at = NAME(add)(arm->p, NAME(matvec)(&arm->tip, load->tool));
    vec4 moment = NAME(add)(load->torque, NAME(cross)(at, load->force));
    arm->forces[n - 1] = NAME(sub)(arm->forces[n - 1], NAME(roll_back)(load->force));
    arm->moments[n - 1] = NAME(sub)(arm->moments[n - 1], NAME(roll_back)(moment));
    return NAME(dot)(load->force, NAME(add)(v.as, NAME(cross)(w.as, at))) + NAME(dot)(load->torque, w.as);
}

/* Joint accelerations under joint torques, as `accelerate` of links.h for rotors that do not spin. */
INLINED double NAME(forward_dynamics_n)(Py_ssize_t n, int turns, const chain *robot, const links *load, composite *arm,
                                        int fresh, const double *q, const double *qd, const double *torque,
                                        double *qdd)
{
    if (fresh) {
        NAME(place_bodies)(n, turns, robot, arm, q);
        NAME(mass_matrix)(n, turns, arm);
        NAME(factor)(n, robot->rotors, arm->M, arm->per);
    }
    double power = NAME(bias_wrenches)(n, turns, load, arm, qd);
    vec4 moment = NAME(broadcast)(0.0), force = moment;
    UNROLLED
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        const body *link = &arm->bodies[j];
        moment = NAME(add)(moment, arm->moments[j]);
        force = NAME(add)(force, arm->forces[j]);
        qdd[j] = torque[j] - NAME(sum)(NAME(along)(link, moment, force));
    }
    NAME(solve)(n, arm->M, arm->per, qdd);
    return power;
}

/* The same, its loops of known length for the usual arms. */
static double NAME(forward_dynamics)(const chain *robot, const links *load, composite *arm, int fresh, const double *q,
                                     const double *qd, const double *torque, double *qdd)
{
    if (arm->n == 6 && arm->turns)
        return NAME(forward_dynamics_n)(6, 1, robot, load, arm, fresh, q, qd, torque, qdd);
    if (arm->n == 7 && arm->turns)
        return NAME(forward_dynamics_n)(7, 1, robot, load, arm, fresh, q, qd, torque, qdd);
    return NAME(forward_dynamics_n)(arm->n, 0, robot, load, arm, fresh, q, qd, torque, qdd);
}
#undef SHUFFLE
