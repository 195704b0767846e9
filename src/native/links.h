/* Articulated bodies of a serial chain for one sample: a vector's x, y, z lie side by side (its fourth number is 0), where
 * the batched kernels put samples side by side. A rotation is then three multiply-adds instead of nine.
 *
 * Frame {j} sits on joint axis j, z along it; vectors of link j are in {j}. Included once per instruction set by plant.c,
 * which defines NAME(x), x with the set's suffix, and VECTORS_OF_FOUR where processor and compiler have them.
 */

#undef vec4
#undef mat3
#undef joint_inertia
#undef links
#define vec4 NAME(vec4)
#define mat3 NAME(mat3)
#define joint_inertia NAME(joint_inertia)
#define links NAME(links)

#if VECTORS_OF_FOUR
typedef double vec4 __attribute__((vector_size(4 * sizeof(double))));
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int64_t NAME(places) __attribute__((vector_size(4 * sizeof(int64_t))));
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (NAME(places)){i, j, k, l})
#endif
static inline vec4 NAME(vector)(double x, double y, double z) { return (vec4){x, y, z, 0.0}; }
static inline vec4 NAME(add)(vec4 a, vec4 b) { return a + b; }
static inline vec4 NAME(sub)(vec4 a, vec4 b) { return a - b; }
static inline vec4 NAME(mul)(vec4 a, vec4 b) { return a * b; }
static inline double NAME(entry)(vec4 a, int k) { return a[k]; }
#else
typedef struct { double at[4]; } vec4;
static inline vec4 NAME(shuffle)(vec4 a, vec4 b, int i, int j, int k, int l)
{
    return (vec4){{i < 4 ? a.at[i] : b.at[i - 4], j < 4 ? a.at[j] : b.at[j - 4], k < 4 ? a.at[k] : b.at[k - 4],
                   l < 4 ? a.at[l] : b.at[l - 4]}};
}
#define SHUFFLE(a, b, i, j, k, l) NAME(shuffle)(a, b, i, j, k, l)
static inline vec4 NAME(vector)(double x, double y, double z) { return (vec4){{x, y, z, 0.0}}; }
static inline vec4 NAME(add)(vec4 a, vec4 b)
{
    return (vec4){{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2], a.at[3] + b.at[3]}};
}
static inline vec4 NAME(sub)(vec4 a, vec4 b)
{
    return (vec4){{a.at[0] - b.at[0], a.at[1] - b.at[1], a.at[2] - b.at[2], a.at[3] - b.at[3]}};
}
static inline vec4 NAME(mul)(vec4 a, vec4 b)
{
    return (vec4){{a.at[0] * b.at[0], a.at[1] * b.at[1], a.at[2] * b.at[2], a.at[3] * b.at[3]}};
}
static inline double NAME(entry)(vec4 a, int k) { return a.at[k]; }
#endif

typedef struct { vec4 x, y, z; } mat3; /* columns */

static inline vec4 NAME(broadcast)(double s)
{
    vec4 a = NAME(vector)(s, s, s);
    return SHUFFLE(a, a, 0, 0, 0, 0);
}
static inline vec4 NAME(load)(const double *from)
{
    vec4 a;
    memcpy(&a, from, sizeof(vec4));
    return a;
}
static inline void NAME(store)(vec4 a, double *into) { memcpy(into, &a, sizeof(vec4)); }

/* Sines and cosines of four angles below SINCOS_LIMIT. */
#if VECTORS_OF_FOUR
typedef int64_t NAME(bits) __attribute__((vector_size(4 * sizeof(int64_t))));
static inline void NAME(vec4_sines)(vec4 x, vec4 *sine, vec4 *cosine)
{
    vec4 shifted = x * PER_QUARTER_TURN + ROUNDING_SHIFT, turns = shifted - ROUNDING_SHIFT;
    vec4 r = REDUCED(x, turns), z = r * r, s = SINE_POLYNOMIAL(r, z), c = COSINE_POLYNOMIAL(z);
    NAME(bits) quadrant = (NAME(bits))shifted, odd = -(quadrant & 1), S = (NAME(bits))s, C = (NAME(bits))c;
    *sine = (vec4)(((S & ~odd) | (C & odd)) ^ ((quadrant & 2) << 62));
    *cosine = (vec4)(((C & ~odd) | (S & odd)) ^ (((quadrant + 1) & 2) << 62));
}
#else
static inline void NAME(vec4_sines)(vec4 x, vec4 *sine, vec4 *cosine)
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
            vec4 s, c;
            NAME(vec4_sines)(NAME(load)(angle + j), &s, &c);
            NAME(store)(s, sine + j);
            NAME(store)(c, cosine + j);
        }
        return;
    }
    for (Py_ssize_t j = 0; j < n; j++)
        sine[j] = sin(angle[j]), cosine[j] = cos(angle[j]);
}

static inline vec4 NAME(scale)(vec4 a, double s) { return NAME(mul)(a, NAME(broadcast)(s)); }
static inline double NAME(sum)(vec4 a) { return NAME(entry)(a, 0) + NAME(entry)(a, 1) + NAME(entry)(a, 2); }
static inline double NAME(dot)(vec4 a, vec4 b) { return NAME(sum)(NAME(mul)(a, b)); }
static inline vec4 NAME(roll)(vec4 a) { return SHUFFLE(a, a, 1, 2, 0, 3); } /* y, z, x */
/* a x b before its last roll, so that a sum of products rolls once */
static inline vec4 NAME(cross_rolled)(vec4 a, vec4 b)
{
    return NAME(sub)(NAME(mul)(a, NAME(roll)(b)), NAME(mul)(NAME(roll)(a), b));
}
static inline vec4 NAME(cross)(vec4 a, vec4 b) { return NAME(roll)(NAME(cross_rolled)(a, b)); } /* a x b */
/* a x b + c x d */
static inline vec4 NAME(cross_sum)(vec4 a, vec4 b, vec4 c, vec4 d)
{
    return NAME(roll)(NAME(add)(NAME(cross_rolled)(a, b), NAME(cross_rolled)(c, d)));
}
static inline vec4 NAME(matvec)(const mat3 *M, vec4 v)
{
    vec4 sum = NAME(mul)(M->x, SHUFFLE(v, v, 0, 0, 0, 0));
    sum = NAME(add)(sum, NAME(mul)(M->y, SHUFFLE(v, v, 1, 1, 1, 1)));
    return NAME(add)(sum, NAME(mul)(M->z, SHUFFLE(v, v, 2, 2, 2, 2)));
}
static inline mat3 NAME(transpose)(mat3 M) /* Mᵀ */
{
    vec4 low = SHUFFLE(M.x, M.y, 0, 4, 2, 6), high = SHUFFLE(M.x, M.y, 1, 5, 3, 7);
    return (mat3){SHUFFLE(low, M.z, 0, 1, 4, 7), SHUFFLE(high, M.z, 0, 1, 5, 7), SHUFFLE(low, M.z, 2, 3, 6, 7)};
}
static inline mat3 NAME(mat_sub)(mat3 A, mat3 B)
{
    return (mat3){NAME(sub)(A.x, B.x), NAME(sub)(A.y, B.y), NAME(sub)(A.z, B.z)};
}
static inline mat3 NAME(mat_add)(mat3 A, mat3 B)
{
    return (mat3){NAME(add)(A.x, B.x), NAME(add)(A.y, B.y), NAME(add)(A.z, B.z)};
}
/* a bᵀ */
static inline mat3 NAME(dyad)(vec4 a, vec4 b)
{
    return (mat3){NAME(mul)(a, SHUFFLE(b, b, 0, 0, 0, 0)), NAME(mul)(a, SHUFFLE(b, b, 1, 1, 1, 1)),
                   NAME(mul)(a, SHUFFLE(b, b, 2, 2, 2, 2))};
}
/* [p], so that [p] v = p x v */
static inline mat3 NAME(cross_matrix)(vec4 p)
{
    double x = NAME(entry)(p, 0), y = NAME(entry)(p, 1), z = NAME(entry)(p, 2);
    return (mat3){NAME(vector)(0.0, z, -y), NAME(vector)(-z, 0.0, x), NAME(vector)(y, -x, 0.0)};
}
static inline mat3 NAME(matmul)(const mat3 *A, const mat3 *B)
{
    return (mat3){NAME(matvec)(A, B->x), NAME(matvec)(A, B->y), NAME(matvec)(A, B->z)};
}
/* A [p] */
static inline mat3 NAME(matmul_cross)(mat3 A, const vec4 *p)
{
    double x = NAME(entry)(*p, 0), y = NAME(entry)(*p, 1), z = NAME(entry)(*p, 2);
    return (mat3){NAME(sub)(NAME(scale)(A.y, z), NAME(scale)(A.z, y)), NAME(sub)(NAME(scale)(A.z, x), NAME(scale)(A.x, z)),
                   NAME(sub)(NAME(scale)(A.x, y), NAME(scale)(A.y, x))};
}
/* R Aᵀ Rᵀ from Rᵀ alone, whose entries then come from memory one by one: cheaper than from vectors */
static inline mat3 NAME(rotated)(mat3 A, const mat3 *back)
{
    mat3 RA = NAME(transpose)(NAME(matmul)(&A, back));
    return NAME(matmul)(&RA, back);
}

/* Articulated inertia of a joint: times its axis (moment n, force f), the same over its entry at the axis and in {j-1}, one
 * over that entry g, and the torque u beyond that of the bias wrenches. */
typedef struct { vec4 n, f, up_n, up_f; double g, u; } joint_inertia;

typedef struct {
    mat3 *fixed;      /* R of every joint at q = 0 */
    mat3 *R, *back;   /* R and Rᵀ: {j} in {j-1} */
    vec4 *fixed_p, *p; /* origin of {j} in {j-1} at q = 0, and now */
    mat3 *arm, *arm_back; /* [p] R: moment of a force in {j}, and its transpose */
    mat3 *fixed_arm;  /* [p] R at q = 0 */
    mat3 *inertia;    /* of the link, less the spin inertia of the rotor that it carries, about its origin */
    vec4 *moment;      /* m c */
    double *mass;
    double *angle, *sine, *cosine; /* padded to a multiple of four */
    vec4 *n, *f;        /* bias wrench of the link: without joint accelerations */
    vec4 *turning;      /* its angular acceleration, at first without joint accelerations */
    joint_inertia *joints;
    vec4 tool;          /* m, in the last frame */
    vec4 force, torque; /* on the tool, base axes, N and Nm */
    int pushed;         /* is there a wrench */
    int spins;          /* do rotors act on the links that carry them */
} links;

/* Assigns the arrays of `arm` to memory that is aligned to a `vec4`; returns the rest of it. At most 138 doubles a joint and
 * 12 more are used. */
static char *NAME(assign_links)(links *arm, Py_ssize_t n, char *memory)
{
    mat3 **matrices[7] = {&arm->fixed, &arm->R,        &arm->back,   &arm->fixed_arm,
                           &arm->arm,   &arm->arm_back, &arm->inertia};
    double **rows[4] = {&arm->mass, &arm->angle, &arm->sine, &arm->cosine};
    vec4 **vectors[6] = {&arm->fixed_p, &arm->p, &arm->moment, &arm->n, &arm->f, &arm->turning};
    for (int k = 0; k < 7; k++, memory += (size_t)n * sizeof(mat3))
        *matrices[k] = (mat3 *)memory;
    for (int k = 0; k < 6; k++, memory += (size_t)n * sizeof(vec4))
        *vectors[k] = (vec4 *)memory;
    arm->joints = (joint_inertia *)memory, memory += (size_t)n * sizeof(joint_inertia);
    for (int k = 0; k < 4; k++, memory += ((size_t)n + 3) / 4 * sizeof(vec4)) /* stays aligned */
        *rows[k] = (double *)memory;
    return memory;
}

/* The link that carries the rotor of joint j + 1 keeps its inertia less s² / B z zᵀ: the rotor spins freely in it. */
static mat3 NAME(bare_inertia)(const chain *robot, const law *laws, Py_ssize_t j)
{
    const double *inertial = robot->inertials + 10 * j;
    mat3 I = {NAME(vector)(inertial[0], inertial[1], inertial[2]), NAME(vector)(inertial[1], inertial[3], inertial[4]),
               NAME(vector)(inertial[2], inertial[4], inertial[5])};
    if (laws == NULL || j + 1 == robot->dof || laws[j + 1].spin == 0.0)
        return I;
    const double *R0 = robot->rotations + 9 * (j + 1);
    vec4 z = NAME(vector)(R0[2], R0[5], R0[8]);
    return NAME(mat_sub)(I, NAME(dyad)(NAME(scale)(z, laws[j + 1].spin * laws[j + 1].spin / laws[j + 1].inertia), z));
}

/* [p] R */
static inline mat3 NAME(lever_matrix)(vec4 p, const mat3 *R)
{
    return (mat3){NAME(cross)(p, R->x), NAME(cross)(p, R->y), NAME(cross)(p, R->z)};
}

/* What does not depend on q; `laws` NULL: rotors do not spin. */
static void NAME(set_links)(links *arm, const chain *robot, const law *laws, const double *tool)
{
    for (Py_ssize_t j = 0; j < robot->dof; j++) {
        const double *R0 = robot->rotations + 9 * j, *p = robot->translations + 3 * j, *inertial = robot->inertials + 10 * j;
        arm->fixed[j] = (mat3){NAME(vector)(R0[0], R0[3], R0[6]), NAME(vector)(R0[1], R0[4], R0[7]),
                                NAME(vector)(R0[2], R0[5], R0[8])};
        arm->fixed_p[j] = NAME(vector)(p[0], p[1], p[2]);
        arm->fixed_arm[j] = NAME(lever_matrix)(arm->fixed_p[j], &arm->fixed[j]);
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
static inline void NAME(turn_about_z)(const mat3 *fixed, double s, double c, mat3 *M)
{
    M->x = NAME(add)(NAME(scale)(fixed->x, c), NAME(scale)(fixed->y, s));
    M->y = NAME(sub)(NAME(scale)(fixed->y, c), NAME(scale)(fixed->x, s));
}

/* R0 Rot_z(q), or p0 + R0 e_z q. */
static inline void NAME(place_link)(links *arm, Py_ssize_t j, int revolute, double q)
{
    if (revolute) {
        NAME(turn_about_z)(&arm->fixed[j], arm->sine[j], arm->cosine[j], &arm->R[j]);
        NAME(turn_about_z)(&arm->fixed_arm[j], arm->sine[j], arm->cosine[j], &arm->arm[j]);
    } else {
        arm->p[j] = NAME(add)(arm->fixed_p[j], NAME(scale)(arm->fixed[j].z, q));
        arm->arm[j] = NAME(lever_matrix)(arm->p[j], &arm->R[j]);
    }
    arm->back[j] = NAME(transpose)(arm->R[j]);
    arm->arm_back[j] = NAME(transpose)(arm->arm[j]);
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
typedef struct { mat3 A, B, M; } NAME(articulated);
#undef articulated
#define articulated NAME(articulated)

/* Articulated inertia of the bodies from link j on, expressed in {j-1}: rotated by R, then shifted:
 * B' = B + [p] M, A' = A - B' [p] - (B [p])ᵀ, where [p] M = -(M [p])ᵀ. */
static inline articulated NAME(shifted)(const mat3 *back, const vec4 *p, const articulated *body)
{
    articulated up;
    mat3 A = NAME(rotated)(body->A, back), B = NAME(rotated)(NAME(transpose)(body->B), back);
    up.M = NAME(rotated)(body->M, back);
    mat3 Mp = NAME(transpose)(NAME(matmul_cross)(up.M, p)), Bp = NAME(matmul_cross)(B, p);
    up.B = NAME(mat_sub)(B, Mp);
    up.A = NAME(mat_add)(NAME(mat_sub)(A, NAME(mat_add)(Bp, NAME(transpose)(Bp))), NAME(matmul_cross)(Mp, p));
    return up;
}

/* Removes the inertia along a joint's axis, in {j-1}: less u uᵀ / entry. */
static inline void NAME(remove_axis)(vec4 n, vec4 f, vec4 up_n, vec4 up_f, articulated *body)
{
    body->A = NAME(mat_sub)(body->A, NAME(dyad)(up_n, n));
    body->B = NAME(mat_sub)(body->B, NAME(dyad)(up_n, f));
    body->M = NAME(mat_sub)(body->M, NAME(dyad)(up_f, f));
}

/* Articulated inertia of the bodies from its link on, times the axis of a joint; returns the entry at its axis. */
static inline double NAME(axis_inertia)(const articulated *body, int revolute, joint_inertia *joint)
{
    joint->n = revolute ? body->A.z : body->B.z;
    joint->f = revolute ? NAME(transpose)(body->B).z : body->M.z;
    return NAME(entry)(revolute ? body->A.z : body->M.z, 2);
}

/* Articulated inertias, from the tip to the base, projected on every joint axis. They depend on q alone. */
static void NAME(articulate)(const chain *robot, links *arm)
{
    vec4 o = NAME(broadcast)(0.0);
    mat3 none = {o, o, o};
    articulated body = {none, none, none};
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        double m = arm->mass[j];
        joint_inertia *joint = &arm->joints[j];
        body.A = NAME(mat_add)(body.A, arm->inertia[j]);
        body.B = NAME(mat_add)(body.B, NAME(cross_matrix)(arm->moment[j]));
        body.M = NAME(mat_add)(body.M, (mat3){NAME(vector)(m, 0.0, 0.0), NAME(vector)(0.0, m, 0.0),
                                            NAME(vector)(0.0, 0.0, m)});
        joint->g = 1.0 / (NAME(axis_inertia)(&body, robot->revolute[j], joint) + robot->rotors[j]);
        vec4 f = NAME(matvec)(&arm->R[j], joint->f);
        vec4 n = NAME(add)(NAME(matvec)(&arm->R[j], joint->n), NAME(matvec)(&arm->arm[j], joint->f));
        joint->up_n = NAME(scale)(n, joint->g);
        joint->up_f = NAME(scale)(f, joint->g);
        if (j == 0)
            break;
        body = NAME(shifted)(&arm->back[j], &arm->p[j], &body);
        NAME(remove_axis)(n, f, joint->up_n, joint->up_f, &body);
    }
}

/* Moment on link j-1 from the rotor of joint j (axis z, spin momentum s w, net torque u), besides the reduced inertia:
 * z s u / B + ω x z (s w + s² / B z·ω). */
static inline vec4 NAME(rotor_moment)(const law *joint, vec4 z, vec4 turn, double w, double u)
{
    double s = joint->spin, c = s * s / joint->inertia;
    vec4 moment = NAME(scale)(NAME(cross)(turn, z), s * w + c * NAME(dot)(z, turn));
    return NAME(add)(moment, NAME(scale)(z, s * u / joint->inertia));
}

/* From base to tip without joint accelerations: bias wrenches of the bodies; returns the power of the wrench at the tool. */
static double NAME(forward_pass)(const chain *robot, const law *laws, links *arm, const double *qd, const double *spin,
                                  const double *u)
{
    Py_ssize_t n = robot->dof;
    vec4 w = NAME(broadcast)(0.0), wd = w, v = w, force = arm->force, torque = arm->torque;
    vec4 a = NAME(vector)(-robot->gravity[0], -robot->gravity[1], -robot->gravity[2]);
    for (Py_ssize_t j = 0; j < n; j++) {
        const mat3 *back = &arm->back[j];
        vec4 p = arm->p[j], c = arm->moment[j], wp = NAME(cross)(w, p);
        a = NAME(matvec)(back, NAME(add)(a, NAME(cross_sum)(wd, p, w, wp)));
        if (arm->pushed) {
            v = NAME(matvec)(back, NAME(add)(v, wp));
            force = NAME(matvec)(back, force);
            torque = NAME(matvec)(back, torque);
        }
        w = NAME(matvec)(back, w);
        wd = NAME(matvec)(back, wd);
        vec4 swept = NAME(mul)(SHUFFLE(w, w, 1, 0, 3, 3), NAME(vector)(qd[j], -qd[j], 0.0)); /* w x z qd */
        vec4 along = NAME(vector)(0.0, 0.0, qd[j]);
        if (robot->revolute[j]) {
            wd = NAME(add)(wd, swept);
            w = NAME(add)(w, along);
        } else {
            a = NAME(add)(a, NAME(add)(swept, swept));
            v = NAME(add)(v, along);
        }
        /* f = m a + wd x mc + w x (w x mc);  n = I wd + w x (I w) + mc x a */
        arm->f[j] = NAME(add)(NAME(scale)(a, arm->mass[j]), NAME(cross_sum)(wd, c, w, NAME(cross)(w, c)));
        arm->n[j] = NAME(add)(NAME(matvec)(&arm->inertia[j], wd),
                               NAME(cross_sum)(w, NAME(matvec)(&arm->inertia[j], w), c, a));
        if (!arm->spins)
            continue;
        arm->turning[j] = wd;
        if (j + 1 < n && laws[j + 1].spin != 0.0)
            arm->n[j] = NAME(add)(arm->n[j], NAME(rotor_moment)(&laws[j + 1], arm->fixed[j + 1].z, w, spin[j + 1],
                                                                 u[j + 1]));
    }
    if (!arm->pushed)
        return 0.0;
    arm->f[n - 1] = NAME(sub)(arm->f[n - 1], force);
    arm->n[n - 1] = NAME(sub)(arm->n[n - 1], NAME(add)(torque, NAME(cross)(arm->tool, force)));
    return NAME(dot)(force, NAME(add)(v, NAME(cross)(w, arm->tool))) + NAME(dot)(torque, w);
}

/* Joint accelerations under joint torques and the bias wrenches of the links, with the inertias of `articulate`. */
static void NAME(solve_links)(const chain *robot, links *arm, const double *torque, double *qdd)
{
    Py_ssize_t n = robot->dof;
    vec4 moment = NAME(broadcast)(0.0), force = moment;
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        joint_inertia *joint = &arm->joints[j];
        moment = NAME(add)(moment, arm->n[j]);
        force = NAME(add)(force, arm->f[j]);
        joint->u = torque[j] - NAME(entry)(robot->revolute[j] ? moment : force, 2);
        moment = NAME(add)(NAME(matvec)(&arm->R[j], moment), NAME(matvec)(&arm->arm[j], force));
        moment = NAME(add)(moment, NAME(scale)(joint->up_n, joint->u));
        force = NAME(add)(NAME(matvec)(&arm->R[j], force), NAME(scale)(joint->up_f, joint->u));
    }
    vec4 wd = NAME(broadcast)(0.0), a = wd;
    for (Py_ssize_t j = 0; j < n; j++) {
        const joint_inertia *joint = &arm->joints[j];
        qdd[j] = joint->g * joint->u - NAME(sum)(NAME(add)(NAME(mul)(joint->up_n, wd), NAME(mul)(joint->up_f, a)));
        a = NAME(add)(NAME(matvec)(&arm->back[j], a), NAME(matvec)(&arm->arm_back[j], wd));
        wd = NAME(matvec)(&arm->back[j], wd);
        vec4 along = NAME(vector)(0.0, 0.0, qdd[j]);
        if (robot->revolute[j])
            wd = NAME(add)(wd, along);
        else
            a = NAME(add)(a, along);
        if (arm->spins)
            arm->turning[j] = NAME(add)(arm->turning[j], wd);
    }
}

/* M⁻¹ (n, n), column by column: what a unit torque does to arm and rotors without weight and speed. */
static void NAME(inverse_mass)(const chain *robot, links *arm, const double *q, double *unit, double *inverse)
{
    Py_ssize_t n = robot->dof;
    NAME(place_links)(robot, arm, q);
    NAME(articulate)(robot, arm);
    for (Py_ssize_t j = 0; j < n; j++) {
        arm->n[j] = arm->f[j] = NAME(broadcast)(0.0);
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
    NAME(forward_pass)(robot, NULL, arm, still, NULL, NULL);
    vec4 moment = NAME(broadcast)(0.0), force = moment;
    for (Py_ssize_t j = robot->dof - 1; j >= 0; j--) {
        moment = NAME(add)(moment, arm->n[j]);
        force = NAME(add)(force, arm->f[j]);
        torque[j] = NAME(entry)(robot->revolute[j] ? moment : force, 2);
        moment = NAME(add)(NAME(matvec)(&arm->R[j], moment), NAME(matvec)(&arm->arm[j], force));
        force = NAME(matvec)(&arm->R[j], force);
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
    double power = NAME(forward_pass)(robot, laws, arm, qd, spin, u);
    NAME(solve_links)(robot, arm, torque, qdd);
    return power;
}
