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

/* A lane anywhere among doubles. Not by memcpy, which GCC splits into halves that stall the next load. */
#undef lane_anywhere
#define lane_anywhere NAME(lane_anywhere)
#if LANES > 1
typedef double lane_anywhere __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));
#else
typedef double lane_anywhere;
#endif
static inline lane NAME(lane_at)(const double *from) { return *(const lane_anywhere *)from; }
static inline void NAME(put_lane)(double *to, lane x) { *(lane_anywhere *)to = x; }

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
        x = NAME(lane_at)(base);
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
        NAME(put_lane)(base, x);
    else if (count == LANES)
        for (int k = 0; k < LANES; k++)
            base[k * s->sample_stride] = NAME(lane_get)(&x, k);
    else
        for (int k = 0; k < count; k++)
            base[k * s->sample_stride] = NAME(lane_get)(&x, k);
}

#if LANES > 1
/* Step `s` of a transpose: the elements whose row and column differ in bit s change places. */
#define SWAP_LOW(k, s) ((k) & (s) ? LANES + (k) - (s) : (k))
#define SWAP_HIGH(k, s) ((k) & (s) ? LANES + (k) : (k) + (s))
#undef EACH_LANE
#if LANES == 2
#define EACH_LANE(f, s) f(0, s), f(1, s)
#elif LANES == 4
#define EACH_LANE(f, s) f(0, s), f(1, s), f(2, s), f(3, s)
#else
#define EACH_LANE(f, s) f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)
#endif
#define TRANSPOSE_STEP(rows, s)                                                                                        \
    for (int i = 0; i < LANES; i++)                                                                                    \
        if (!(i & (s))) {                                                                                              \
            lane low = rows[i], high = rows[i + (s)];                                                                  \
            rows[i] = SHUFFLE(lane_bits, low, high, EACH_LANE(SWAP_LOW, s));                                           \
            rows[i + (s)] = SHUFFLE(lane_bits, low, high, EACH_LANE(SWAP_HIGH, s));                                    \
        }
static inline void NAME(transpose)(lane *rows)
{
    TRANSPOSE_STEP(rows, 1)
#if LANES > 2
    TRANSPOSE_STEP(rows, 2)
#endif
#if LANES > 4
    TRANSPOSE_STEP(rows, 4)
#endif
}
#else
static inline void NAME(transpose)(lane *rows) { (void)rows; }
#endif

/* Whether whole rows of the array can be moved, LANES samples and LANES joints at a time. */
static inline int NAME(by_rows)(const series *s, int count, Py_ssize_t joints)
{
    return LANES > 1 && s->data != NULL && s->joint_stride == 1 && count == LANES && joints >= LANES;
}

/* Reads the samples of every joint; the last square of a row overlaps the one before. */
static inline void NAME(load_all)(const series *s, Py_ssize_t first, int count, Py_ssize_t joints, lane *out)
{
    if (!NAME(by_rows)(s, count, joints)) {
        for (Py_ssize_t j = 0; j < joints; j++)
            out[j] = NAME(load)(s, first, count, j);
        return;
    }
    const double *base = s->data + first * s->sample_stride;
    for (Py_ssize_t j = 0; j < joints; j += LANES) {
        Py_ssize_t column = j + LANES <= joints ? j : joints - LANES;
        lane rows[LANES];
        for (int k = 0; k < LANES; k++)
            rows[k] = NAME(lane_at)(base + k * s->sample_stride + column);
        NAME(transpose)(rows);
        for (int k = 0; k < LANES; k++)
            out[column + k] = rows[k];
    }
}

static inline void NAME(store_all)(const series *s, Py_ssize_t first, int count, Py_ssize_t joints, const lane *x)
{
    if (!NAME(by_rows)(s, count, joints)) {
        for (Py_ssize_t j = 0; j < joints; j++)
            NAME(store)(s, first, count, j, x[j]);
        return;
    }
    double *base = s->data + first * s->sample_stride;
    for (Py_ssize_t j = 0; j < joints; j += LANES) {
        Py_ssize_t column = j + LANES <= joints ? j : joints - LANES;
        lane rows[LANES];
        for (int k = 0; k < LANES; k++)
            rows[k] = x[column + k];
        NAME(transpose)(rows);
        for (int k = 0; k < LANES; k++)
            NAME(put_lane)(base + k * s->sample_stride + column, rows[k]);
    }
}

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

/* Sines and cosines of a lane; `near`: all angles are below SINCOS_LIMIT, else libm takes them one by one. */
static inline void NAME(sincos)(lane x, int near, lane *sine, lane *cosine)
{
    if (!near) {
        for (int k = 0; k < LANES; k++) {
            NAME(lane_set)(sine, k, sin(NAME(lane_get)(&x, k)));
            NAME(lane_set)(cosine, k, cos(NAME(lane_get)(&x, k)));
        }
        return;
    }
    lane shifted = x * PER_QUARTER_TURN + ROUNDING_SHIFT, turns = shifted - ROUNDING_SHIFT;
    lane r = REDUCED(x, turns), z = r * r, s = SINE_POLYNOMIAL(r, z), c = COSINE_POLYNOMIAL(z);
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
/* A v and Aᵀ v. */
static inline vec NAME(times)(const mat *A, vec v)
{
    return NAME(add)(NAME(add)(NAME(scale)(A->x, v.x), NAME(scale)(A->y, v.y)), NAME(scale)(A->z, v.z));
}
static inline vec NAME(transposed_times)(const mat *A, vec v)
{
    return (vec){NAME(dot)(A->x, v), NAME(dot)(A->y, v), NAME(dot)(A->z, v)};
}
static inline mat NAME(transposed)(const mat *A)
{
    return (mat){{A->x.x, A->y.x, A->z.x}, {A->x.y, A->y.y, A->z.y}, {A->x.z, A->y.z, A->z.z}};
}
