/* A lane is LANES samples side by side; code on lanes reads like code on scalars.
 *
 * Included once per instruction set by module.c, which defines before:
 *   LANES          samples in a lane (a power of two)
 *   NAME(x)        x with the instruction set's suffix
 * GCC and Clang lower the vector type to whatever the target has; other compilers get one sample a lane.
 */

#undef lane
#undef lane_bits
#define lane NAME(lane)
#define lane_bits NAME(lane_bits)

#if LANES > 1
typedef double lane __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lane_bits __attribute__((vector_size(LANES * sizeof(double))));
#else
typedef double lane;
typedef int64_t lane_bits;
#endif

static inline lane NAME(splat)(double x)
{
#if LANES > 1
    return x - (lane){0};
#else
    return x;
#endif
}

static inline double NAME(lane_get)(const lane *x, int k)
{
    return ((const double *)x)[k];
}

static inline void NAME(lane_set)(lane *x, int k, double value)
{
    ((double *)x)[k] = value;
}

/* Reads the samples first .. first+count-1 of one joint; the places past count repeat the last one. */
static inline lane NAME(load)(const series *s, Py_ssize_t first, int count, Py_ssize_t joint)
{
    lane x = {0};
    if (s->data == NULL)
        return x;
    const double *base = s->data + first * s->sample_stride + joint * s->joint_stride;
    if (count == LANES && s->sample_stride == 1)
        memcpy(&x, base, sizeof(x));
    else if (count == LANES)
        for (int k = 0; k < LANES; k++)
            NAME(lane_set)(&x, k, base[k * s->sample_stride]);
    else
        for (int k = 0; k < LANES; k++)
            NAME(lane_set)(&x, k, base[(k < count ? k : count - 1) * s->sample_stride]);
    return x;
}

static inline void NAME(store)(const series *s, Py_ssize_t first, int count, Py_ssize_t joint, lane x)
{
    double *base = s->data + first * s->sample_stride + joint * s->joint_stride;
    if (count == LANES && s->sample_stride == 1)
        memcpy(base, &x, sizeof(x));
    else if (count == LANES)
        for (int k = 0; k < LANES; k++)
            base[k * s->sample_stride] = NAME(lane_get)(&x, k);
    else
        for (int k = 0; k < count; k++)
            base[k * s->sample_stride] = NAME(lane_get)(&x, k);
}

/* Sine and cosine by Cody-Waite reduction to [-pi/4, pi/4] and minimax polynomials, below 2 units in the last
 * place while |x| < REDUCTION_LIMIT; larger angles go to libm, sample by sample. */
#define REDUCTION_LIMIT 1.0e5

/* |x| < limit in every sample; false for a NaN. */
static inline int NAME(all_within)(lane x, double limit)
{
#if LANES > 1
    lane_bits within = (x < limit) & (x > -limit);
    int64_t all = -1;
    for (int k = 0; k < LANES; k++)
        all &= within[k];
    return all != 0;
#else
    return x < limit && x > -limit;
#endif
}

static inline void NAME(sincos)(lane x, lane *sine, lane *cosine)
{
    if (!NAME(all_within)(x, REDUCTION_LIMIT)) {
        for (int k = 0; k < LANES; k++) {
            NAME(lane_set)(sine, k, sin(NAME(lane_get)(&x, k)));
            NAME(lane_set)(cosine, k, cos(NAME(lane_get)(&x, k)));
        }
        return;
    }
    const double to_nearest = 6755399441055744.0; /* 1.5 * 2^52: adding it leaves the integer in the low bits */
    lane shifted = x * 0.63661977236758134308 + to_nearest;
    lane turns = shifted - to_nearest;
    lane r = x - turns * 1.57079632673412561417e+00;
    r = r - turns * 6.07710050630396597660e-11;
    r = r - turns * 2.02226624879595063154e-21;

    lane z = r * r;
    lane s = r + r * z *
        (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 +
         z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    lane c = 1.0 - 0.5 * z + z * z *
        (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 +
         z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));

    lane_bits quadrant, s_bits, c_bits;
    memcpy(&quadrant, &shifted, sizeof(quadrant));
    memcpy(&s_bits, &s, sizeof(s_bits));
    memcpy(&c_bits, &c, sizeof(c_bits));
    lane_bits swap = -(quadrant & 1);
    lane_bits exchange = (s_bits ^ c_bits) & swap;
    lane_bits sine_bits = s_bits ^ exchange ^ ((quadrant & 2) << 62);
    lane_bits cosine_bits = c_bits ^ exchange ^ (((quadrant + 1) & 2) << 62);
    memcpy(sine, &sine_bits, sizeof(*sine));
    memcpy(cosine, &cosine_bits, sizeof(*cosine));
}

typedef struct { lane x, y, z; } NAME(vec);
typedef struct { NAME(vec) x, y, z; } NAME(mat); /* columns */
#undef vec
#undef mat
#define vec NAME(vec)
#define mat NAME(mat)

static inline vec NAME(zero)(void) { return (vec){NAME(splat)(0.0), NAME(splat)(0.0), NAME(splat)(0.0)}; }
static inline vec NAME(add)(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vec NAME(sub)(vec a, vec b) { return (vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline vec NAME(scale)(vec a, lane s) { return (vec){a.x * s, a.y * s, a.z * s}; }
static inline lane NAME(dot)(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline vec NAME(cross)(vec a, vec b)
{
    return (vec){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static inline vec NAME(constant)(const double *v)
{
    return (vec){NAME(splat)(v[0]), NAME(splat)(v[1]), NAME(splat)(v[2])};
}
/* R v: from the moved frame to the one before it. */
static inline vec NAME(rotate)(const mat *R, vec v)
{
    return NAME(add)(NAME(add)(NAME(scale)(R->x, v.x), NAME(scale)(R->y, v.y)), NAME(scale)(R->z, v.z));
}
/* Rᵀ v: from the frame before to the moved one. */
static inline vec NAME(unrotate)(const mat *R, vec v)
{
    return (vec){NAME(dot)(R->x, v), NAME(dot)(R->y, v), NAME(dot)(R->z, v)};
}
