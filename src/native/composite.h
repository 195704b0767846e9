/* Forward dynamics by composite bodies: M(q) q̈ = τ - bias, everything in base axes about the base origin.
 *
 * There bodies are simply added up, without the rotations from link to link whose latency the articulated bodies of
 * links.h wait for: for a handful of joints M and its factors L D Lᵀ cost less than they do. Spatial quantities are pairs
 * (about the origin): an axis (turn, slide), a velocity (w, v of the point at the origin), a force (moment, force).
 *
 * Included once per instruction set by plant.c, after links.h.
 */

#undef body
#define body NAME(body)

typedef struct {
    three R;           /* {j} in base axes */
    four p;            /* its origin */
    three inertia;     /* of the link about the base origin */
    four moment;       /* m c, about it */
    four turn, slide;  /* joint axis */
    four n, f;         /* momentum of the bodies from j on at unit speed of the joint; then the wrench that link j needs */
} body;

/* M v, A B: entries of v and B from memory one by one, cheaper than out of vectors. */
static inline four NAME(apply_at)(const three *M, const four *v)
{
    four sum = NAME(by)(M->x, NAME(part)(*v, 0));
    sum = NAME(plus)(sum, NAME(by)(M->y, NAME(part)(*v, 1)));
    return NAME(plus)(sum, NAME(by)(M->z, NAME(part)(*v, 2)));
}
static inline three NAME(product_at)(const three *A, const three *B)
{
    return (three){NAME(apply_at)(A, &B->x), NAME(apply_at)(A, &B->y), NAME(apply_at)(A, &B->z)};
}
/* Column i of A Bᵀ */
static inline four NAME(column)(const three *A, const three *B, int i)
{
    four sum = NAME(by)(A->x, NAME(part)(B->x, i));
    sum = NAME(plus)(sum, NAME(by)(A->y, NAME(part)(B->y, i)));
    return NAME(plus)(sum, NAME(by)(A->z, NAME(part)(B->z, i)));
}

/* Frames outwards. */
INLINED void NAME(place_bodies)(Py_ssize_t n, const chain *robot, links *arm, body *bodies, const double *q)
{
    three R = {NAME(vector)(1.0, 0.0, 0.0), NAME(vector)(0.0, 1.0, 0.0), NAME(vector)(0.0, 0.0, 1.0)};
    four p = NAME(all)(0.0);
    memcpy(arm->angle, q, (size_t)n * sizeof(double));
    NAME(sines_cosines)(n, arm->angle, arm->sine, arm->cosine);
    for (Py_ssize_t j = 0; j < n; j++) {
        body *own = &bodies[j];
        p = NAME(plus)(p, NAME(apply_at)(&R, &arm->fixed_p[j]));
        own->R = arm->fixed[j];
        if (robot->revolute[j])
            NAME(turn_about_z)(&arm->fixed[j], arm->sine[j], arm->cosine[j], &own->R);
        own->R = R = NAME(product_at)(&R, &own->R);
        if (!robot->revolute[j])
            p = NAME(plus)(p, NAME(by)(R.z, q[j]));
        own->p = p;
    }
}

/* Axis of joint j and its link about the base origin: R I Rᵀ - p hᵀ - k pᵀ + p·(h + k) 1 with h = R mc, k = h + m p. */
static inline void NAME(weigh_body)(const links *arm, int revolute, Py_ssize_t j, body *own)
{
    three RI = NAME(product_at)(&own->R, &arm->inertia[j]);
    four p = own->p, h = NAME(apply_at)(&own->R, &arm->moment[j]), k = NAME(plus)(h, NAME(by)(p, arm->mass[j]));
    three away = NAME(more)(NAME(dyad)(p, h), NAME(dyad)(k, p));
    double far = NAME(inner)(p, NAME(plus)(h, k));
    own->moment = k;
    own->inertia.x = NAME(plus)(NAME(minus)(NAME(column)(&RI, &own->R, 0), away.x), NAME(vector)(far, 0.0, 0.0));
    own->inertia.y = NAME(plus)(NAME(minus)(NAME(column)(&RI, &own->R, 1), away.y), NAME(vector)(0.0, far, 0.0));
    own->inertia.z = NAME(plus)(NAME(minus)(NAME(column)(&RI, &own->R, 2), away.z), NAME(vector)(0.0, 0.0, far));
    own->turn = revolute ? own->R.z : NAME(all)(0.0);
    own->slide = revolute ? NAME(outer)(p, own->R.z) : own->R.z;
}

/* Lower triangle of M(q), rotors included, row by row from the tip. */
INLINED void NAME(mass_of)(Py_ssize_t n, const chain *robot, const links *arm, body *bodies, double *M)
{
    four o = NAME(all)(0.0), k = o;
    three I = {o, o, o};
    double m = 0.0;
    UNROLLED
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        body *own = &bodies[j];
        I = NAME(more)(I, own->inertia);
        k = NAME(plus)(k, own->moment);
        m += arm->mass[j];
        own->n = NAME(plus)(NAME(apply_at)(&I, &own->turn), NAME(outer)(k, own->slide));
        own->f = NAME(plus)(NAME(by)(own->slide, m), NAME(outer)(own->turn, k));
        UNROLLED
        for (Py_ssize_t i = 0; i <= j; i++)
            M[j * n + i] = NAME(sum)(NAME(plus)(NAME(times)(bodies[i].turn, own->n),
                                                NAME(times)(bodies[i].slide, own->f)));
        M[j * n + j] += robot->rotors[j];
    }
}

/* M = L D Lᵀ in place: L below the diagonal, 1 / D in `per`. */
INLINED void NAME(factor)(Py_ssize_t n, double *M, double *per)
{
    UNROLLED
    for (Py_ssize_t k = 0; k < n; k++) {
        per[k] = 1.0 / M[k * n + k];
        UNROLLED
        for (Py_ssize_t i = k + 1; i < n; i++) {
            double l = M[i * n + k] * per[k];
            UNROLLED
            for (Py_ssize_t j = k + 1; j <= i; j++)
                M[i * n + j] -= l * M[j * n + k];
        }
        UNROLLED
        for (Py_ssize_t i = k + 1; i < n; i++)
            M[i * n + k] *= per[k];
    }
}

/* x <- M⁻¹ x */
INLINED void NAME(solve)(Py_ssize_t n, const double *L, const double *per, double *x)
{
    UNROLLED
    for (Py_ssize_t i = 1; i < n; i++)
        UNROLLED
        for (Py_ssize_t j = 0; j < i; j++)
            x[i] -= L[i * n + j] * x[j];
    UNROLLED
    for (Py_ssize_t i = n - 1; i >= 0; i--) {
        x[i] *= per[i];
        UNROLLED
        for (Py_ssize_t j = i + 1; j < n; j++)
            x[i] -= L[j * n + i] * x[j];
    }
}

/* Wrenches that the links need without joint accelerations, each about the base origin; returns the power of the wrench
 * at the tool. n = I wd + k x a + w x (I w + k x v) + v x (m v + w x k), f = m a + wd x k + w x (m v + w x k). */
INLINED double NAME(move_bodies)(Py_ssize_t n, const chain *robot, const links *arm, body *bodies, const double *qd)
{
    four w = NAME(all)(0.0), v = w, wd = w;
    four a = NAME(vector)(-robot->gravity[0], -robot->gravity[1], -robot->gravity[2]);
    for (Py_ssize_t j = 0; j < n; j++) {
        body *own = &bodies[j];
        four turn = NAME(by)(own->turn, qd[j]), slide = NAME(by)(own->slide, qd[j]), k = own->moment;
        double m = arm->mass[j];
        a = NAME(plus)(a, NAME(outers)(w, slide, v, turn));
        wd = NAME(plus)(wd, NAME(outer)(w, turn));
        w = NAME(plus)(w, turn);
        v = NAME(plus)(v, slide);
        four spin = NAME(plus)(NAME(apply)(&own->inertia, w), NAME(outer)(k, v));
        four push = NAME(plus)(NAME(by)(v, m), NAME(outer)(w, k));
        own->f = NAME(plus)(NAME(by)(a, m), NAME(outers)(wd, k, w, push));
        four swept = NAME(plus)(NAME(half_outer)(w, spin), NAME(half_outer)(v, push));
        own->n = NAME(plus)(NAME(apply)(&own->inertia, wd), NAME(roll)(NAME(plus)(NAME(half_outer)(k, a), swept)));
    }
    if (!arm->pushed)
        return 0.0;
    body *tip = &bodies[n - 1];
    four at = NAME(plus)(tip->p, NAME(apply)(&tip->R, arm->tool));
    tip->f = NAME(minus)(tip->f, arm->force);
    tip->n = NAME(minus)(tip->n, NAME(plus)(arm->torque, NAME(outer)(at, arm->force)));
    return NAME(inner)(arm->force, NAME(plus)(v, NAME(outer)(w, at))) + NAME(inner)(arm->torque, w);
}

/* Joint accelerations under joint torques, as `accelerate` of links.h for rotors that do not spin. */
INLINED double NAME(fall_of)(Py_ssize_t n, const chain *robot, links *arm, body *bodies, double *M, double *per,
                                   int fresh, const double *q, const double *qd, const double *torque, double *qdd)
{
    if (fresh) {
        NAME(place_bodies)(n, robot, arm, bodies, q);
        for (Py_ssize_t j = 0; j < n; j++)
            NAME(weigh_body)(arm, robot->revolute[j], j, &bodies[j]);
        NAME(mass_of)(n, robot, arm, bodies, M);
        NAME(factor)(n, M, per);
    }
    double power = NAME(move_bodies)(n, robot, arm, bodies, qd);
    four moment = NAME(all)(0.0), force = moment;
    for (Py_ssize_t j = n - 1; j >= 0; j--) {
        moment = NAME(plus)(moment, bodies[j].n);
        force = NAME(plus)(force, bodies[j].f);
        qdd[j] = torque[j] - NAME(sum)(NAME(plus)(NAME(times)(bodies[j].turn, moment),
                                                  NAME(times)(bodies[j].slide, force)));
    }
    NAME(solve)(n, M, per, qdd);
    return power;
}

/* The same, its loops of known length for the usual arms. */
static double NAME(fall)(const chain *robot, links *arm, body *bodies, double *M, double *per, int fresh,
                         const double *q, const double *qd, const double *torque, double *qdd)
{
    if (robot->dof == 6)
        return NAME(fall_of)(6, robot, arm, bodies, M, per, fresh, q, qd, torque, qdd);
    if (robot->dof == 7)
        return NAME(fall_of)(7, robot, arm, bodies, M, per, fresh, q, qd, torque, qdd);
    return NAME(fall_of)(robot->dof, robot, arm, bodies, M, per, fresh, q, qd, torque, qdd);
}
