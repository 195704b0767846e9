/* Articulated bodies of a serial chain for one sample: a vector's x, y, z lie side by side (its fourth number is 0), where
 * the batched kernels put samples side by side. A rotation is then three multiply-adds instead of nine.
 *
 * Frame {j} sits on joint axis j, z along it; vectors of link j are in {j}. Included once per instruction set by plant.c,
 * which defines NAME(x), x with the set's suffix, and VECTORS_OF_FOUR where processor and compiler have them.
 */

#undef four
#undef three
#undef axis_pull
#undef links
#define four NAME(four)
#define three NAME(three)
#define axis_pull NAME(axis_pull)
#define links NAME(links)

#if VECTORS_OF_FOUR
typedef double four __attribute__((vector_size(4 * sizeof(double))));
#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int64_t NAME(places) __attribute__((vector_size(4 * sizeof(int64_t))));
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (NAME(places)){i, j, k, l})
#endif
static inline four NAME(vector)(double x, double y, double z) { return (four){x, y, z, 0.0}; }
static inline four NAME(plus)(four a, four b) { return a + b; }
static inline four NAME(minus)(four a, four b) { return a - b; }
static inline four NAME(times)(four a, four b) { return a * b; }
static inline double NAME(part)(four a, int k) { return a[k]; }
#else
typedef struct { double at[4]; } four;
static inline four NAME(pick)(four a, four b, int i, int j, int k, int l)
{
    return (four){{i < 4 ? a.at[i] : b.at[i - 4], j < 4 ? a.at[j] : b.at[j - 4], k < 4 ? a.at[k] : b.at[k - 4],
                   l < 4 ? a.at[l] : b.at[l - 4]}};
}
#define PICK(a, b, i, j, k, l) NAME(pick)(a, b, i, j, k, l)
static inline four NAME(vector)(double x, double y, double z) { return (four){{x, y, z, 0.0}}; }
static inline four NAME(plus)(four a, four b)
{
    return (four){{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2], a.at[3] + b.at[3]}};
}
static inline four NAME(minus)(four a, four b)
{
    return (four){{a.at[0] - b.at[0], a.at[1] - b.at[1], a.at[2] - b.at[2], a.at[3] - b.at[3]}};
}
static inline four NAME(times)(four a, four b)
{
    return (four){{a.at[0] * b.at[0], a.at[1] * b.at[1], a.at[2] * b.at[2], a.at[3] * b.at[3]}};
}
static inline double NAME(part)(four a, int k) { return a.at[k]; }
#endif

typedef struct { four x, y, z; } three; /* columns */

static inline four NAME(all)(double s)
{
    four a = NAME(vector)(s, s, s);
    return PICK(a, a, 0, 0, 0, 0);
}
static inline four NAME(load)(const double *from)
{
    four a;
    memcpy(&a, from, sizeof(four));
    return a;
}
static inline void NAME(keep)(four a, double *into) { memcpy(into, &a, sizeof(four)); }

/* Sines and cosines of four angles below SINCOS_LIMIT. */
#if VECTORS_OF_FOUR
typedef int64_t NAME(bits) __attribute__((vector_size(4 * sizeof(int64_t))));
static inline void NAME(four_sines)(four x, four *sine, four *cosine)
{
    four shifted = x * PER_QUARTER_TURN + ROUNDING_SHIFT, turns = shifted - ROUNDING_SHIFT;
    four r = REDUCED(x, turns), z = r * r, s = SINE_POLYNOMIAL(r, z), c = COSINE_POLYNOMIAL(z);
    NAME(bits) quadrant = (NAME(bits))shifted, odd = -(quadrant & 1), S = (NAME(bits))s, C = (NAME(bits))c;
    *sine = (four)(((S & ~odd) | (C & odd)) ^ ((quadrant & 2) << 62));
    *cosine = (four)(((C & ~odd) | (S & odd)) ^ (((quadrant + 1) & 2) << 62));
}
#else
static inline void NAME(four_sines)(four x, four *sine, four *cosine)
{
    for (int k = 0; k < 4; k++)
        small_sine_cosine(x.at[k], &sine->at[k], &cosine->at[k]);
}
#endif

/* Of n angles in arrays padded to a multiple of four: four at a time. */
INLINED void NAME(sines_cosines)(Py_ssize_t n, const double *angle, double *sine, double *cosine)
{
    int small = 1;
    for (Py_ssize_t j = 0; j < n; j++)
        small &= fabs(angle[j]) < SINCOS_LIMIT;
    if (small) {
        for (Py_ssize_t j = 0; j < n; j += 4) {
            four s, c;
            NAME(four_sines)(NAME(load)(angle + j), &s, &c);
            NAME(keep)(s, sine + j);
            NAME(keep)(c, cosine + j);
        }
        return;
    }
    for (Py_ssize_t j = 0; j < n; j++)
        sine[j] = sin(angle[j]), cosine[j] = cos(angle[j]);
}

static inline four NAME(by)(four a, double s) { return NAME(times)(a, NAME(all)(s)); }
static inline double NAME(sum)(four a) { return NAME(part)(a, 0) + NAME(part)(a, 1) + NAME(part)(a, 2); }
static inline double NAME(inner)(four a, four b) { return NAME(sum)(NAME(times)(a, b)); }
static inline four NAME(roll)(four a) { return PICK(a, a, 1, 2, 0, 3); } /* y, z, x */
/* a x b before its last roll, so that a sum of products rolls once */
static inline four NAME(half_outer)(four a, four b)
{
    return NAME(minus)(NAME(times)(a, NAME(roll)(b)), NAME(times)(NAME(roll)(a), b));
}
static inline four NAME(outer)(four a, four b) { return NAME(roll)(NAME(half_outer)(a, b)); } /* a x b */
/* a x b + c x d */
static inline four NAME(outers)(four a, four b, four c, four d)
{
    return NAME(roll)(NAME(plus)(NAME(half_outer)(a, b), NAME(half_outer)(c, d)));
}
static inline four NAME(apply)(const three *M, four v)
{
    four sum = NAME(times)(M->x, PICK(v, v, 0, 0, 0, 0));
    sum = NAME(plus)(sum, NAME(times)(M->y, PICK(v, v, 1, 1, 1, 1)));
    return NAME(plus)(sum, NAME(times)(M->z, PICK(v, v, 2, 2, 2, 2)));
}
static inline three NAME(turned)(three M) /* Mᵀ */
{
    four low = PICK(M.x, M.y, 0, 4, 2, 6), high = PICK(M.x, M.y, 1, 5, 3, 7);
    return (three){PICK(low, M.z, 0, 1, 4, 7), PICK(high, M.z, 0, 1, 5, 7), PICK(low, M.z, 2, 3, 6, 7)};
}
static inline three NAME(less)(three A, three B)
{
    return (three){NAME(minus)(A.x, B.x), NAME(minus)(A.y, B.y), NAME(minus)(A.z, B.z)};
}
static inline three NAME(more)(three A, three B)
{
    return (three){NAME(plus)(A.x, B.x), NAME(plus)(A.y, B.y), NAME(plus)(A.z, B.z)};
}
/* a bᵀ */
static inline three NAME(dyad)(four a, four b)
{
    return (three){NAME(times)(a, PICK(b, b, 0, 0, 0, 0)), NAME(times)(a, PICK(b, b, 1, 1, 1, 1)),
                   NAME(times)(a, PICK(b, b, 2, 2, 2, 2))};
}
/* [p], so that [p] v = p x v */
static inline three NAME(crossing)(four p)
{
    double x = NAME(part)(p, 0), y = NAME(part)(p, 1), z = NAME(part)(p, 2);
    return (three){NAME(vector)(0.0, z, -y), NAME(vector)(-z, 0.0, x), NAME(vector)(y, -x, 0.0)};
}
static inline three NAME(product)(const three *A, const three *B)
{
    return (three){NAME(apply)(A, B->x), NAME(apply)(A, B->y), NAME(apply)(A, B->z)};
}
/* A [p] */
static inline three NAME(crossed)(three A, const four *p)
{
    double x = NAME(part)(*p, 0), y = NAME(part)(*p, 1), z = NAME(part)(*p, 2);
    return (three){NAME(minus)(NAME(by)(A.y, z), NAME(by)(A.z, y)), NAME(minus)(NAME(by)(A.z, x), NAME(by)(A.x, z)),
                   NAME(minus)(NAME(by)(A.x, y), NAME(by)(A.y, x))};
}
/* R Aᵀ Rᵀ from Rᵀ alone, whose entries then come from memory one by one: cheaper than from vectors */
static inline three NAME(rotated)(three A, const three *back)
{
    three RA = NAME(turned)(NAME(product)(&A, back));
    return NAME(product)(&RA, back);
}

/* What a joint keeps: articulated inertia times its axis (moment n, force f), the same over its entry at the axis and seen
 * from {j-1}, one over that entry, torque that is left. */
typedef struct { four n, f, up_n, up_f; double g, u; } axis_pull;

typedef struct {
    three *fixed;      /* R of every joint at q = 0 */
    three *R, *back;   /* R and Rᵀ: {j} in {j-1} */
    four *fixed_p, *p; /* origin of {j} in {j-1} at q = 0, and now */
    three *arm, *arm_back; /* [p] R: moment of a force in {j}, and its transpose */
    three *fixed_arm;  /* [p] R at q = 0 */
    three *inertia;    /* of the link, less the spin inertia of the rotor that it carries, about its origin */
    four *moment;      /* m c */
    double *mass;
    double *angle, *sine, *cosine; /* padded to a multiple of four */
    four *n, *f;        /* wrench that the link needs, without joint accelerations */
    four *turning;      /* its angular acceleration, at first without joint accelerations */
    axis_pull *joints;
    four tool;          /* m, in the last frame */
    four force, torque; /* on the tool, base axes, N and Nm */
    int pushed;         /* is there a wrench */
    int spins;          /* do rotors act on the links that carry them */
} links;

/* Cuts the arrays out of memory that is aligned to a `four`; returns what is left: at most 138 doubles a joint and 12 more are used. */
static char *NAME(cut_links)(links *arm, Py_ssize_t n, char *memory)
{
    three **matrices[7] = {&arm->fixed, &arm->R,        &arm->back,   &arm->fixed_arm,
                           &arm->arm,   &arm->arm_back, &arm->inertia};
    double **rows[4] = {&arm->mass, &arm->angle, &arm->sine, &arm->cosine};
    four **vectors[6] = {&arm->fixed_p, &arm->p, &arm->moment, &arm->n, &arm->f, &arm->turning};
    for (int k = 0; k < 7; k++, memory += (size_t)n * sizeof(three))
        *matrices[k] = (three *)memory;
    for (int k = 0; k < 6; k++, memory += (size_t)n * sizeof(four))
        *vectors[k] = (four *)memory;
    arm->joints = (axis_pull *)memory, memory += (size_t)n * sizeof(axis_pull);
    for (int k = 0; k < 4; k++, memory += ((size_t)n + 3) / 4 * sizeof(four)) /* stays aligned */
        *rows[k] = (double *)memory;
    return memory;
}

/* The link that carries the rotor of joint j + 1 keeps its inertia less s² / B z zᵀ: the rotor spins freely in it. */
static three NAME(bare_inertia)(const chain *robot, const law *laws, Py_ssize_t j)
{
    const double *inertial = robot->inertials + 10 * j;
    three I = {NAME(vector)(inertial[0], inertial[1], inertial[2]), NAME(vector)(inertial[1], inertial[3], inertial[4]),
               NAME(vector)(inertial[2], inertial[4], inertial[5])};
    if (laws == NULL || j + 1 == robot->dof || laws[j + 1].spin == 0.0)
        return I;
    const double *R0 = robot->rotations + 9 * (j + 1);
    four z = NAME(vector)(R0[2], R0[5], R0[8]);
    return NAME(less)(I, NAME(dyad)(NAME(by)(z, laws[j + 1].spin * laws[j + 1].spin / laws[j + 1].inertia), z));
}

/* [p] R */
static inline three NAME(arm_of)(four p, const three *R)
{
    return (three){NAME(outer)(p, R->x), NAME(outer)(p, R->y), NAME(outer)(p, R->z)};
}

/* What does not depend on q; `laws` NULL: rotors do not spin. */
static void NAME(set_links)(links *arm, const chain *robot, const law *laws, const double *tool)
{
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        const double *R0 = robot->rotations + 9 * j, *p = robot->translations + 3 * j, *inertial = robot->inertials + 10 * j;
        arm->fixed[j] = (three){NAME(vector)(R0[0], R0[3], R0[6]), NAME(vector)(R0[1], R0[4], R0[7]),
                                NAME(vector)(R0[2], R0[5], R0[8])};
        arm->fixed_p[j] = NAME(vector)(p[0], p[1], p[2]);
        arm->fixed_arm[j] = NAME(arm_of)(arm->fixed_p[j], &arm->fixed[j]);
        arm->R[j] = arm->fixed[j], arm->arm[j] = arm->fixed_arm[j], arm->p[j] = arm->fixed_p[j];
        arm->inertia[j] = NAME(bare_inertia)(robot, laws, j);
        arm->moment[j] = NAME(vector)(inertial[6], inertial[7], inertial[8]);
        arm->mass[j] = inertial[9];
        arm->spins |= laws != NULL && laws[j].spin != 0.0;
    }
    arm->tool = NAME(vector)(tool[0], tool[1], tool[2]);
    arm->pushed = 0;
}

/* The x and y axes of a frame turned about its z. */
static inline void NAME(turn_about_z)(const three *fixed, double s, double c, three *M)
{
    M->x = NAME(plus)(NAME(by)(fixed->x, c), NAME(by)(fixed->y, s));
    M->y = NAME(minus)(NAME(by)(fixed->y, c), NAME(by)(fixed->x, s));
}

/* R0 Rot_z(q), or p0 + R0 e_z q. */
static inline void NAME(place_link)(links *arm, Py_ssize_t j, int revolute, double q)
{
    if (revolute) {
        NAME(turn_about_z)(&arm->fixed[j], arm->sine[j], arm->cosine[j], &arm->R[j]);
        NAME(turn_about_z)(&arm->fixed_arm[j], arm->sine[j], arm->cosine[j], &arm->arm[j]);
    } else {
        arm->p[j] = NAME(plus)(arm->fixed_p[j], NAME(by)(arm->fixed[j].z, q));
        arm->arm[j] = NAME(arm_of)(arm->p[j], &arm->R[j]);
    }
    arm->back[j] = NAME(turned)(arm->R[j]);
    arm->arm_back[j] = NAME(turned)(arm->arm[j]);
}

static void NAME(place_links)(const chain *robot, links *arm, const double *q)
{
    Py_ssize_t n = robot->dof;
    memcpy(arm->angle, q, (size_t)n * sizeof(double));
    NAME(sines_cosines)(n, arm->angle, arm->sine, arm->cosine);
    for (Py_ssize_t j = 0; j < n; j++)
        NAME(place_link)(arm, j, robot->revolute[j], q[j]);
}

/* Articulated inertia [[A, B], [Bᵀ, M]] on (angular; linear). */
typedef struct { three A, B, M; } NAME(bundle);
#undef bundle
#define bundle NAME(bundle)

/* The bodies from link j on, seen from {j-1}: rotated by R, then shifted:
 * B' = B + [p] M, A' = A - B' [p] - (B [p])ᵀ, where [p] M = -(M [p])ᵀ. */
static inline bundle NAME(carried)(const three *back, const four *p, const bundle *body)
{
    bundle up;
    three A = NAME(rotated)(body->A, back), B = NAME(rotated)(NAME(turned)(body->B), back);
    up.M = NAME(rotated)(body->M, back);
    three Mp = NAME(turned)(NAME(crossed)(up.M, p)), Bp = NAME(crossed)(B, p);
    up.B = NAME(less)(B, Mp);
    up.A = NAME(more)(NAME(less)(A, NAME(more)(Bp, NAME(turned)(Bp))), NAME(crossed)(Mp, p));
    return up;
}

/* Frees the bodies, seen from {j-1}, along a joint's axis: less u uᵀ / entry. */
static inline void NAME(release)(four n, four f, four up_n, four up_f, bundle *body)
{
    body->A = NAME(less)(body->A, NAME(dyad)(up_n, n));
    body->B = NAME(less)(body->B, NAME(dyad)(up_n, f));
    body->M = NAME(less)(body->M, NAME(dyad)(up_f, f));
}

/* What a joint keeps of the bodies from its link on; returns the entry at its axis. */
static inline double NAME(pull_of)(const bundle *body, int revolute, axis_pull *joint)
{
    joint->n = revolute ? body->A.z : body->B.z;
    joint->f = revolute ? NAME(turned)(body->B).z : body->M.z;
    return NAME(part)(revolute ? body->A.z : body->M.z, 2);
}

/* Articulated inertias, inwards: what every joint keeps of them. They depend on q alone. */
static void NAME(articulate)(const chain *robot, links *arm)
{
    four o = NAME(all)(0.0);
    three none = {o, o, o};
    bundle body = {none, none, none};
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        double m = arm->mass[j];
        axis_pull *joint = &arm->joints[j];
        body.A = NAME(more)(body.A, arm->inertia[j]);
        body.B = NAME(more)(body.B, NAME(crossing)(arm->moment[j]));
        body.M = NAME(more)(body.M, (three){NAME(vector)(m, 0.0, 0.0), NAME(vector)(0.0, m, 0.0),
                                            NAME(vector)(0.0, 0.0, m)});
        joint->g = 1.0 / (NAME(pull_of)(&body, robot->revolute[j], joint) + robot->rotors[j]);
        four f = NAME(apply)(&arm->R[j], joint->f);
        four n = NAME(plus)(NAME(apply)(&arm->R[j], joint->n), NAME(apply)(&arm->arm[j], joint->f));
        joint->up_n = NAME(by)(n, joint->g);
        joint->up_f = NAME(by)(f, joint->g);
        if (j == 0)
            break;
        body = NAME(carried)(&arm->back[j], &arm->p[j], &body);
        NAME(release)(n, f, joint->up_n, joint->up_f, &body);
    }
}

/* Moment on link j-1 from the rotor of joint j (axis z, spin momentum s w, net torque u), besides the reduced inertia:
 * z s u / B + ω x z (s w + s² / B z·ω). */
static inline four NAME(rotor_moment)(const law *joint, four z, four turn, double w, double u)
{
    double s = joint->spin, c = s * s / joint->inertia;
    four moment = NAME(by)(NAME(outer)(turn, z), s * w + c * NAME(inner)(z, turn));
    return NAME(plus)(moment, NAME(by)(z, s * u / joint->inertia));
}

/* Outwards without joint accelerations: wrenches that the bodies need; returns the power of the wrench at the tool. */
static double NAME(outward_links)(const chain *robot, const law *laws, links *arm, const double *qd, const double *spin,
                                  const double *u)
{
    Py_ssize_t n = robot->dof;
    four w = NAME(all)(0.0), wd = w, v = w, force = arm->force, torque = arm->torque;
    four a = NAME(vector)(-robot->gravity[0], -robot->gravity[1], -robot->gravity[2]);
    for (Py_ssize_t j = 0; j < n; j++) {
        const three *back = &arm->back[j];
        four p = arm->p[j], c = arm->moment[j], wp = NAME(outer)(w, p);
        a = NAME(apply)(back, NAME(plus)(a, NAME(outers)(wd, p, w, wp)));
        if (arm->pushed) {
            v = NAME(apply)(back, NAME(plus)(v, wp));
            force = NAME(apply)(back, force);
            torque = NAME(apply)(back, torque);
        }
        w = NAME(apply)(back, w);
        wd = NAME(apply)(back, wd);
        four swept = NAME(times)(PICK(w, w, 1, 0, 3, 3), NAME(vector)(qd[j], -qd[j], 0.0)); /* w x z qd */
        four along = NAME(vector)(0.0, 0.0, qd[j]);
        if (robot->revolute[j]) {
            wd = NAME(plus)(wd, swept);
            w = NAME(plus)(w, along);
        } else {
            a = NAME(plus)(a, NAME(plus)(swept, swept));
            v = NAME(plus)(v, along);
        }
        /* f = m a + wd x mc + w x (w x mc);  n = I wd + w x (I w) + mc x a */
        arm->f[j] = NAME(plus)(NAME(by)(a, arm->mass[j]), NAME(outers)(wd, c, w, NAME(outer)(w, c)));
        arm->n[j] = NAME(plus)(NAME(apply)(&arm->inertia[j], wd),
                               NAME(outers)(w, NAME(apply)(&arm->inertia[j], w), c, a));
        if (!arm->spins)
            continue;
        arm->turning[j] = wd;
        if (j + 1 < n && laws[j + 1].spin != 0.0)
            arm->n[j] = NAME(plus)(arm->n[j], NAME(rotor_moment)(&laws[j + 1], arm->fixed[j + 1].z, w, spin[j + 1],
                                                                 u[j + 1]));
    }
    if (!arm->pushed)
        return 0.0;
    arm->f[n - 1] = NAME(minus)(arm->f[n - 1], force);
    arm->n[n - 1] = NAME(minus)(arm->n[n - 1], NAME(plus)(torque, NAME(outer)(arm->tool, force)));
    return NAME(inner)(force, NAME(plus)(v, NAME(outer)(w, arm->tool))) + NAME(inner)(torque, w);
}

/* Joint accelerations under joint torques and the wrenches that the links need, with the inertias of `articulate`. */
static void NAME(solve_links)(const chain *robot, links *arm, const double *torque, double *qdd)
{
    Py_ssize_t n = robot->dof;
    four moment = NAME(all)(0.0), force = moment;
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        axis_pull *joint = &arm->joints[j];
        moment = NAME(plus)(moment, arm->n[j]);
        force = NAME(plus)(force, arm->f[j]);
        joint->u = torque[j] - NAME(part)(robot->revolute[j] ? moment : force, 2);
        moment = NAME(plus)(NAME(apply)(&arm->R[j], moment), NAME(apply)(&arm->arm[j], force));
        moment = NAME(plus)(moment, NAME(by)(joint->up_n, joint->u));
        force = NAME(plus)(NAME(apply)(&arm->R[j], force), NAME(by)(joint->up_f, joint->u));
    }
    four wd = NAME(all)(0.0), a = wd;
    for (Py_ssize_t j = 0; j < n; j++) {
        const axis_pull *joint = &arm->joints[j];
        qdd[j] = joint->g * joint->u - NAME(sum)(NAME(plus)(NAME(times)(joint->up_n, wd), NAME(times)(joint->up_f, a)));
        a = NAME(plus)(NAME(apply)(&arm->back[j], a), NAME(apply)(&arm->arm_back[j], wd));
        wd = NAME(apply)(&arm->back[j], wd);
        four along = NAME(vector)(0.0, 0.0, qdd[j]);
        if (robot->revolute[j])
            wd = NAME(plus)(wd, along);
        else
            a = NAME(plus)(a, along);
        if (arm->spins)
            arm->turning[j] = NAME(plus)(arm->turning[j], wd);
    }
}

/* M⁻¹ (n, n), column by column: what a unit torque does to arm and rotors without weight and speed. */
static void NAME(inverse_mass)(const chain *robot, links *arm, const double *q, double *unit, double *inverse)
{
    Py_ssize_t n = robot->dof;
    NAME(place_links)(robot, arm, q);
    NAME(articulate)(robot, arm);
    for (Py_ssize_t j = 0; j < n; j++) {
        arm->n[j] = arm->f[j] = NAME(all)(0.0);
        unit[j] = 0.0;
    }
    for (Py_ssize_t j = 0; j < n; j++) {
        unit[j] = 1.0;
        NAME(solve_links)(robot, arm, unit, inverse + j * n);
        unit[j] = 0.0;
    }
}

/* g(q), Nm; `still` are n zeros. */
static void NAME(gravity_torque)(const chain *robot, links *arm, const double *q, const double *still, double *torque)
{
    NAME(place_links)(robot, arm, q);
    NAME(outward_links)(robot, NULL, arm, still, NULL, NULL);
    four moment = NAME(all)(0.0), force = moment;
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        moment = NAME(plus)(moment, arm->n[j]);
        force = NAME(plus)(force, arm->f[j]);
        torque[j] = NAME(part)(robot->revolute[j] ? moment : force, 2);
        moment = NAME(plus)(NAME(apply)(&arm->R[j], moment), NAME(apply)(&arm->arm[j], force));
        force = NAME(apply)(&arm->R[j], force);
    }
}

/* Joint accelerations under joint torques; the rotors of elastic joints have net torque u and speed `spin`. `fresh`: q is
 * not that of the call before. Returns the power of the wrench at the tool, W. */
static double NAME(accelerate)(const chain *robot, const law *laws, links *arm, int fresh, const double *q,
                               const double *qd, const double *spin, const double *u, const double *torque, double *qdd)
{
    if (fresh) {
        NAME(place_links)(robot, arm, q);
        NAME(articulate)(robot, arm);
    }
    double power = NAME(outward_links)(robot, laws, arm, qd, spin, u);
    NAME(solve_links)(robot, arm, torque, qdd);
    return power;
}
