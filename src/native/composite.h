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

#undef ring
#undef body
#undef solid
#undef lump
#undef compound
#define ring NAME(ring)
#define body NAME(body)
#define solid NAME(solid)
#define lump NAME(lump)
#define compound NAME(compound)

/* A vector and its rolls. */
typedef struct { four as, once, twice; } ring;

/* Mass, moment m c and inertia about the origin of some frame. */
typedef struct { three inertia; four moment; double mass; } lump;

/* What link j keeps, {j} turned: I = x uᵀ + u xᵀ + z sᵀ + s zᵀ with u = u_x x + u_y y, s = s_x x + s_y y + s_z z. */
typedef struct {
    four p; /* origin of {j} in {j-1} at q = 0 */
    double u_x, u_y, s_x, s_y, s_z;
    double h_x, h_y, h_z, mass; /* h_z and mass are 0 where the joint turns */
} solid;

/* Inertia (xx, yy, zz)'', and (xy, yz, zx) once and twice rolled: (I a)'' = diagonal a'' + twice a + once a'. */
typedef struct { four diagonal, once, twice; } NAME(heft);
#undef heft
#define heft NAME(heft)

typedef struct {
    heft inertia;     /* of what the link keeps, about the base origin */
    ring moment;      /* m c, about it */
    ring turn, slide; /* joint axis */
    double mass;
} body;

typedef struct {
    Py_ssize_t n, width; /* joints, and the next multiple of four: of the arrays below */
    int turns;          /* all joints turn */
    three base, tip;    /* axes before the first joint, and of the last link */
    four p, gravity;    /* origin of the last link; -g'' */
    solid *solids;
    body *bodies;           /* the last ones, past n, zero */
    double *offset, *share; /* joint angles are offset + share q, rad */
    double *cosine, *sine;  /* of the turns about x */
    double *turned[6];      /* c, -s, s cosine, s sine, c cosine, c sine of the turns about z */
    double *M, *per;        /* (n, width): below the diagonal L, 1 / D */
    four *moments, *forces; /* that the links need, twice rolled */
} compound;

static inline Py_ssize_t NAME(fours)(Py_ssize_t n) { return (n + 3) / 4 * 4; }

/* Cuts the arrays out of memory that is aligned to a `four` and zero; returns what is left. */
static char *NAME(cut_compound)(compound *arm, Py_ssize_t n, char *memory)
{
    Py_ssize_t width = arm->width = NAME(fours)(n);
    arm->n = n;
    arm->bodies = (body *)memory, memory += (size_t)width * sizeof(body);
    arm->solids = (solid *)memory, memory += (size_t)n * sizeof(solid);
    arm->moments = (four *)memory, memory += (size_t)width * sizeof(four);
    arm->forces = (four *)memory, memory += (size_t)width * sizeof(four);
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
static three NAME(about_z)(double angle)
{
    double s = sin(angle), c = cos(angle);
    return (three){NAME(vector)(c, s, 0.0), NAME(vector)(-s, c, 0.0), NAME(vector)(0.0, 0.0, 1.0)};
}

/* The same seen from axes R at p. */
static lump NAME(seen_from)(three R, four p, lump part)
{
    three RI = NAME(product)(&R, &part.inertia), back = NAME(turned)(R);
    four h = NAME(apply)(&R, part.moment), k = NAME(plus)(h, NAME(by)(p, part.mass));
    three away = NAME(more)(NAME(dyad)(p, h), NAME(dyad)(k, p));
    double far = NAME(inner)(p, NAME(plus)(h, k));
    three I = NAME(less)(NAME(product)(&RI, &back), away);
    I = NAME(more)(I, (three){NAME(vector)(far, 0.0, 0.0), NAME(vector)(0.0, far, 0.0), NAME(vector)(0.0, 0.0, far)});
    return (lump){I, k, part.mass};
}

/* Keeps what joint j has to move of a link and returns what the link before may carry as well. */
static lump NAME(shared)(int revolute, lump link, solid *kept)
{
    three I = link.inertia;
    four none = NAME(all)(0.0);
    kept->h_x = NAME(part)(link.moment, 0), kept->h_y = NAME(part)(link.moment, 1);
    if (!revolute) {
        kept->h_z = NAME(part)(link.moment, 2), kept->mass = link.mass;
        return (lump){I, none, 0.0};
    }
    double round = NAME(part)(I.y, 1);
    kept->u_x = 0.5 * (NAME(part)(I.x, 0) - round), kept->u_y = NAME(part)(I.x, 1);
    kept->s_x = NAME(part)(I.x, 2), kept->s_y = NAME(part)(I.y, 2), kept->s_z = 0.5 * NAME(part)(I.z, 2);
    three cylinder = {NAME(vector)(round, 0.0, 0.0), NAME(vector)(0.0, round, 0.0), none};
    return (lump){cylinder, NAME(vector)(0.0, 0.0, NAME(part)(link.moment, 2)), link.mass};
}

/* R = Rot_z(φ) Rot_x(α) Rot_z(θ): gives cos α, sin α and θ (`late`), returns φ. */
static double NAME(three_turns)(const three *R, double *cosine, double *sine, double *late)
{
    double x = NAME(part)(R->z, 0), y = NAME(part)(R->z, 1), first = x == 0.0 && y == 0.0 ? 0.0 : atan2(x, -y);
    double size = hypot(hypot(x, y), NAME(part)(R->z, 2));
    *sine = hypot(x, y) / size, *cosine = NAME(part)(R->z, 2) / size;
    three back = NAME(about_z)(-first);
    four rest = NAME(apply)(&back, R->x); /* its x, y, z: cos θ, cos α sin θ, sin α sin θ */
    *late = atan2(*cosine * NAME(part)(rest, 1) + *sine * NAME(part)(rest, 2), NAME(part)(rest, 0));
    return first;
}

/* What does not depend on q, from the links of `arm`. */
static void NAME(set_compound)(compound *whole, const chain *robot, const links *arm)
{
    four none = NAME(all)(0.0);
    lump given = {{none, none, none}, none, 0.0};
    double next = 0.0; /* how far {j} is turned, for the sake of {j+1} */
    whole->turns = 1;
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        solid *kept = &whole->solids[j];
        lump link = {NAME(more)(arm->inertia[j], given.inertia), NAME(plus)(arm->moment[j], given.moment),
                     arm->mass[j] + given.mass};
        given = NAME(shared)(robot->revolute[j], NAME(seen_from)(NAME(about_z)(-next), none, link), kept);
        three R = arm->fixed[j], turned_by = NAME(about_z)(next), turned = NAME(product)(&R, &turned_by);
        given = NAME(seen_from)(turned, arm->fixed_p[j], given);
        double late, first = NAME(three_turns)(&R, &whole->cosine[j], &whole->sine[j], &late);
        whole->offset[j] = late + next;
        whole->share[j] = robot->revolute[j] ? 1.0 : 0.0;
        three back = NAME(about_z)(-first);
        kept->p = NAME(apply)(&back, arm->fixed_p[j]);
        whole->turns &= robot->revolute[j] != 0;
        next = first;
    }
    whole->base = NAME(about_z)(next);
    whole->gravity = NAME(vector)(-robot->gravity[2], -robot->gravity[0], -robot->gravity[1]);
}

/* -- at a pose -- */

static inline four NAME(roll_back)(four a) { return PICK(a, a, 2, 0, 1, 3); } /* z, x, y */
static inline ring NAME(ring_of)(four twice) { return (ring){NAME(roll)(twice), NAME(roll_back)(twice), twice}; }
/* a + b s */
static inline four NAME(further)(four a, four b, double s) { return NAME(plus)(a, NAME(by)(b, s)); }
/* sum + a b */
static inline four NAME(add_times)(four sum, four a, four b) { return NAME(plus)(sum, NAME(times)(a, b)); }
/* sum + (a x b)'' */
static inline four NAME(add_outer)(four sum, ring a, ring b)
{
    return NAME(minus)(NAME(plus)(sum, NAME(times)(a.as, b.once)), NAME(times)(a.once, b.as));
}
/* sum + (I a)'' */
static inline four NAME(add_heft)(four sum, heft I, ring a)
{
    return NAME(add_times)(NAME(add_times)(NAME(add_times)(sum, I.diagonal, a.twice), I.twice, a.as), I.once, a.once);
}

/* Sines and cosines of the joints and their products with those of the turns about x. Behind q lie other numbers, which are
 * read with it and not used; angles that are too large for `four_sines` end the simulation anyway. */
INLINED void NAME(turn_joints)(Py_ssize_t n, compound *arm, const double *q)
{
    four none = NAME(all)(0.0);
    UNROLLED
    for (Py_ssize_t j = 0; j < n; j += 4) {
        four s, c, x = NAME(load)(arm->cosine + j), y = NAME(load)(arm->sine + j);
        four angle = NAME(add_times)(NAME(load)(arm->offset + j), NAME(load)(arm->share + j), NAME(load)(q + j));
        NAME(four_sines)(angle, &s, &c);
        four products[6] = {c, NAME(minus)(none, s), NAME(times)(s, x), NAME(times)(s, y), NAME(times)(c, x),
                            NAME(times)(c, y)};
        for (int k = 0; k < 6; k++)
            NAME(keep)(products[k], arm->turned[k] + j);
    }
}

/* What link j keeps about the base origin: x uᵀ + z sᵀ - p hᵀ + p·h 1 and its transpose, h that of a link without mass, or
 * with half of m p. */
static inline heft NAME(heft_of)(four x, four u, four z, four z_once, four s, four p, four p_once, four h, four h_once)
{
    four inside = NAME(times)(p, h), rolled = NAME(roll_back)(NAME(add_times)(NAME(times)(x, u), z, s));
    four D = NAME(plus)(rolled, NAME(plus)(inside, NAME(roll)(inside)));
    four E = NAME(add_times)(NAME(times)(x, NAME(roll)(u)), NAME(roll)(x), u);
    E = NAME(add_times)(NAME(add_times)(E, z, NAME(roll)(s)), z_once, s);
    E = NAME(minus)(NAME(minus)(E, NAME(times)(p, h_once)), NAME(times)(p_once, h));
    return (heft){NAME(plus)(D, D), NAME(roll)(E), NAME(roll_back)(E)};
}

/* Axis of joint j and what its link keeps. */
INLINED void NAME(weigh_body)(const solid *kept, int revolute, three R, four p, body *body_j)
{
    four none = NAME(all)(0.0), z_once = NAME(roll)(R.z), p_once = NAME(roll)(p);
    four h = NAME(further)(NAME(by)(R.x, kept->h_x), R.y, kept->h_y), half = h;
    four u = NAME(further)(NAME(by)(R.x, kept->u_x), R.y, kept->u_y);
    four s = NAME(further)(NAME(further)(NAME(by)(R.x, kept->s_x), R.y, kept->s_y), R.z, kept->s_z);
    ring z = {R.z, z_once, NAME(roll_back)(R.z)}, still = {none, none, none};
    if (!revolute) {
        half = NAME(further)(NAME(further)(h, R.z, kept->h_z), p, 0.5 * kept->mass);
        h = NAME(further)(half, p, 0.5 * kept->mass);
    }
    body_j->moment.as = h, body_j->moment.once = NAME(roll)(h);
    body_j->inertia = NAME(heft_of)(R.x, u, R.z, z_once, s, p, p_once, half, revolute ? body_j->moment.once : NAME(roll)(half));
    body_j->mass = kept->mass;
    body_j->turn = revolute ? z : still;
    body_j->slide = revolute ? NAME(ring_of)(NAME(add_outer)(none, (ring){p, p_once, p}, z)) : z;
}

/* Frames outwards, and the bodies in them. */
INLINED void NAME(place_bodies)(Py_ssize_t n, int turns, const chain *robot, compound *arm, const double *q)
{
    three R = arm->base;
    four p = NAME(all)(0.0);
    NAME(turn_joints)(n, arm, q);
    double *const *by = arm->turned;
    for (Py_ssize_t j = 0; j < n; j++) {
        const solid *kept = &arm->solids[j];
        const double *at = (const double *)&kept->p;
        int revolute = turns || robot->revolute[j];
        four x = R.x, y = R.y, z = R.z;
        p = NAME(further)(NAME(further)(NAME(further)(p, x, at[0]), y, at[1]), z, at[2]);
        R.x = NAME(further)(NAME(further)(NAME(by)(x, by[0][j]), y, by[2][j]), z, by[3][j]);
        R.y = NAME(further)(NAME(further)(NAME(by)(x, by[1][j]), y, by[4][j]), z, by[5][j]);
        R.z = NAME(minus)(NAME(by)(z, arm->cosine[j]), NAME(by)(y, arm->sine[j]));
        if (!revolute)
            p = NAME(further)(p, R.z, q[j]);
        NAME(weigh_body)(kept, revolute, R, p, &arm->bodies[j]);
    }
    arm->tip = R, arm->p = p;
}

/* The sums of four vectors. */
static inline four NAME(sums)(four a, four b, four c, four d)
{
    four xz = PICK(a, b, 0, 4, 2, 6), y = PICK(a, b, 1, 5, 3, 7);
    four next_xz = PICK(c, d, 0, 4, 2, 6), next_y = PICK(c, d, 1, 5, 3, 7);
    four sum = NAME(plus)(PICK(xz, next_xz, 0, 1, 4, 5), PICK(y, next_y, 0, 1, 4, 5));
    return NAME(plus)(sum, PICK(xz, next_xz, 2, 3, 6, 7));
}

/* A wrench, twice rolled, along the axis of a joint, entry by entry. */
static inline four NAME(along)(const body *link, four moment, four force)
{
    return NAME(add_times)(NAME(times)(link->turn.twice, moment), link->slide.twice, force);
}

/* Lower triangle of M(q) of the links, row by row from the tip. */
INLINED void NAME(mass_of)(Py_ssize_t n, int turns, compound *arm)
{
    four o = NAME(all)(0.0);
    ring k = {o, o, o};
    heft I = {o, o, o};
    double m = 0.0;
    UNROLLED
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        const body *link = &arm->bodies[j], *to = arm->bodies;
        double *row = arm->M + j * NAME(fours)(n);
        I = (heft){NAME(plus)(I.diagonal, link->inertia.diagonal), NAME(plus)(I.once, link->inertia.once),
                   NAME(plus)(I.twice, link->inertia.twice)};
        k.as = NAME(plus)(k.as, link->moment.as), k.once = NAME(plus)(k.once, link->moment.once);
        four moment = NAME(add_outer)(NAME(add_heft)(o, I, link->turn), k, link->slide);
        four force = NAME(add_outer)(o, link->turn, k);
        if (!turns) {
            m += link->mass;
            force = NAME(further)(force, link->slide.twice, m);
        }
        UNROLLED
        for (Py_ssize_t i = 0; i <= j; i += 4, to += 4)
            NAME(keep)(NAME(sums)(NAME(along)(to, moment, force), NAME(along)(to + 1, moment, force),
                                  NAME(along)(to + 2, moment, force), NAME(along)(to + 3, moment, force)), row + i);
    }
}

/* M and the rotors on its diagonal = Lᵀ D L in place: L below the diagonal, 1 / D in `per`. */
INLINED void NAME(factor)(Py_ssize_t n, const double *rotors, double *M, double *per)
{
    Py_ssize_t width = NAME(fours)(n);
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
    Py_ssize_t width = NAME(fours)(n);
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

/* Wrenches that the links need without joint accelerations, each about the base origin; returns the power of the wrench
 * at the tool. With the acceleration b = a + w x v of the point at the origin
 * n = I wd + w x (I w) + k x b, f = m b + wd x k + w x (w x k). */
INLINED double NAME(move_bodies)(Py_ssize_t n, int turns, const links *load, compound *arm, const double *qd)
{
    four o = NAME(all)(0.0), a = arm->gravity, turning = o;
    ring w = {o, o, o}, v = w;
    for (Py_ssize_t j = 0; j < n; j++) {
        const body *link = &arm->bodies[j];
        ring z = link->turn, slide = link->slide, k = link->moment;
        a = NAME(further)(a, NAME(add_outer)(NAME(add_outer)(o, w, slide), v, z), qd[j]);
        turning = NAME(further)(turning, NAME(add_outer)(o, w, z), qd[j]);
        w = (ring){NAME(further)(w.as, z.as, qd[j]), NAME(further)(w.once, z.once, qd[j]),
                   NAME(further)(w.twice, z.twice, qd[j])};
        v.as = NAME(further)(v.as, slide.as, qd[j]), v.once = NAME(further)(v.once, slide.once, qd[j]);
        ring wd = NAME(ring_of)(turning), b = NAME(ring_of)(NAME(add_outer)(a, w, v));
        ring spin = NAME(ring_of)(NAME(add_heft)(o, link->inertia, w)), swept = NAME(ring_of)(NAME(add_outer)(o, w, k));
        four force = NAME(add_outer)(NAME(add_outer)(o, wd, k), w, swept);
        arm->forces[j] = turns ? force : NAME(further)(force, b.twice, link->mass);
        arm->moments[j] = NAME(add_outer)(NAME(add_outer)(NAME(add_heft)(o, link->inertia, wd), w, spin), k, b);
    }
    if (!load->pushed)
        return 0.0;
    four at = NAME(plus)(arm->p, NAME(apply)(&arm->tip, load->tool));
    four moment = NAME(plus)(load->torque, NAME(outer)(at, load->force));
    arm->forces[n - 1] = NAME(minus)(arm->forces[n - 1], NAME(roll_back)(load->force));
    arm->moments[n - 1] = NAME(minus)(arm->moments[n - 1], NAME(roll_back)(moment));
    return NAME(inner)(load->force, NAME(plus)(v.as, NAME(outer)(w.as, at))) + NAME(inner)(load->torque, w.as);
}

/* Joint accelerations under joint torques, as `accelerate` of links.h for rotors that do not spin. */
INLINED double NAME(fall_of)(Py_ssize_t n, int turns, const chain *robot, const links *load, compound *arm, int fresh,
                             const double *q, const double *qd, const double *torque, double *qdd)
{
    if (fresh) {
        NAME(place_bodies)(n, turns, robot, arm, q);
        NAME(mass_of)(n, turns, arm);
        NAME(factor)(n, robot->rotors, arm->M, arm->per);
    }
    double power = NAME(move_bodies)(n, turns, load, arm, qd);
    four moment = NAME(all)(0.0), force = moment;
    UNROLLED
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        const body *link = &arm->bodies[j];
        moment = NAME(plus)(moment, arm->moments[j]);
        force = NAME(plus)(force, arm->forces[j]);
        qdd[j] = torque[j] - NAME(sum)(NAME(along)(link, moment, force));
    }
    NAME(solve)(n, arm->M, arm->per, qdd);
    return power;
}

/* The same, its loops of known length for the usual arms. */
static double NAME(fall)(const chain *robot, const links *load, compound *arm, int fresh, const double *q,
                         const double *qd, const double *torque, double *qdd)
{
    if (arm->n == 6 && arm->turns)
        return NAME(fall_of)(6, 1, robot, load, arm, fresh, q, qd, torque, qdd);
    if (arm->n == 7 && arm->turns)
        return NAME(fall_of)(7, 1, robot, load, arm, fresh, q, qd, torque, qdd);
    return NAME(fall_of)(arm->n, 0, robot, load, arm, fresh, q, qd, torque, qdd);
}
#undef PICK
