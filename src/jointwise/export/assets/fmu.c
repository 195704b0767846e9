/* Functional Mock-up Unit for co-simulation, FMI 2.0 and 3.0, around the runtime core.
 *
 * The same source serves the inverse model (q, qd, qdd -> torque, current) and the forward model (torque -> q, qd): the
 * instantiation token says which. Types and functions are declared as the FMI standard defines them.
 *
 * Variables, N joints each: inverse q 0.., qd N.., qdd 2N.., temperature 3N.., torque 4N.., output 5N..; forward
 * torque 0.., temperature N.., start position 2N.., start speed 3N.., q 4N.., qd 5N..; time 6N in FMI 3.0.
 */
#include "plant_model.h"
#include "robot_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#define N ROBOT_JOINTS
#define VARIABLES (6 * N)
#define FIRST_OUTPUT (4 * N)
#define PLANT_STEPS @{steps} /* steps of the forward model in a period */
#define NEAR_PERIOD 1e-6 /* part of a period by which a communication step may differ from a multiple of it */

enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING };

typedef void logger2(void *environment, const char *instance, int status, const char *category, const char *message, ...);
typedef void logger3(void *environment, int status, const char *category, const char *message);

typedef struct {
    int forward, started;
    jw_state state;
    double values[VARIABLES], time;
    logger2 *logger2;
    logger3 *logger3;
    void *environment;
    char name[64];
} unit;

/* -- the model -- */

static void complain(const unit *u, const char *message)
{
    if (u->logger2)
        u->logger2(u->environment, u->name, ERROR, "logStatusError", "%s", message);
    if (u->logger3)
        u->logger3(u->environment, ERROR, "logStatusError", message);
}

static void set_defaults(unit *u)
{
    memset(u->values, 0, sizeof(u->values));
    for (int j = 0; j < N; j++)
        u->values[(u->forward ? N : 3 * N) + j] = (double)robot_model.joint[j].reference;
    u->started = 0;
}

/* Outputs before the first step: the start of a motion; torques are zero until then. */
static void set_start(unit *u)
{
    if (u->forward)
        memcpy(u->values + 4 * N, u->values + 2 * N, 2 * N * sizeof(double));
}

static void narrow(const double *from, jw_real *to)
{
    for (int j = 0; j < N; j++)
        to[j] = (jw_real)from[j];
}

static void step_inverse(unit *u)
{
    jw_real q[N], qd[N], qdd[N], temperature[N], torque[N], output[N];
    narrow(u->values, q);
    narrow(u->values + N, qd);
    narrow(u->values + 2 * N, qdd);
    narrow(u->values + 3 * N, temperature);
    if (!u->started)
        jw_init(&robot_model, q, NULL, &u->state);
    jw_sample sample = {.q = q, .qd = qd, .qdd = qdd, .temperature = temperature};
    jw_step(&robot_model, &u->state, &sample, torque);
    jw_output(&robot_model, torque, output);
    for (int j = 0; j < N; j++) {
        u->values[4 * N + j] = (double)torque[j];
        u->values[5 * N + j] = (double)output[j];
    }
}

static int step_forward(unit *u, int steps)
{
    jw_real torque[N], temperature[N], q[N], qd[N];
    narrow(u->values, torque);
    narrow(u->values + N, temperature);
    narrow(u->values + 4 * N, q);
    narrow(u->values + 5 * N, qd);
    if (!u->started)
        jw_init(&plant_model, q, NULL, &u->state);
    for (int k = 0; k < steps * PLANT_STEPS; k++)
        if (jw_move(&plant_model, &u->state, torque, temperature, q, qd) != 0) {
            complain(u, "the mass matrix is not positive definite");
            return ERROR;
        }
    for (int j = 0; j < N; j++) {
        u->values[4 * N + j] = (double)q[j];
        u->values[5 * N + j] = (double)qd[j];
    }
    return OK;
}

static int step(unit *u, double size)
{
    double periods = size / (double)robot_model.period, whole = floor(periods + 0.5);
    if (!(fabs(periods - whole) <= NEAR_PERIOD * whole) || whole < 1.0 || (!u->forward && whole != 1.0) || whole > 1e6) {
        complain(u, u->forward ? "the communication step must be a multiple of the step size of the model description"
                               : "the communication step must be the step size of the model description");
        return ERROR;
    }
    int status = OK;
    if (u->forward)
        status = step_forward(u, (int)whole);
    else
        step_inverse(u);
    u->started = 1;
    return status;
}

static int get(const unit *u, const unsigned *references, size_t count, double *values)
{
    for (size_t k = 0; k < count; k++) {
        if (references[k] > VARIABLES) {
            complain(u, "no such value reference");
            return ERROR;
        }
        values[k] = references[k] == VARIABLES ? u->time : u->values[references[k]];
    }
    return OK;
}

static int set(unit *u, const unsigned *references, size_t count, const double *values)
{
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= FIRST_OUTPUT) {
            complain(u, "an output cannot be set");
            return ERROR;
        }
        u->values[references[k]] = values[k];
    }
    return OK;
}

static unit *make(const char *name, const char *token)
{
    int forward = token != NULL && strcmp(token, "@{forward}") == 0;
    if (!forward && (token == NULL || strcmp(token, "@{inverse}") != 0))
        return NULL;
    unit *u = calloc(1, sizeof(unit));
    if (u == NULL)
        return NULL;
    u->forward = forward;
    if (name != NULL)
        strncpy(u->name, name, sizeof(u->name) - 1);
    set_defaults(u);
    return u;
}

/* A copy of all that changes. */
static int save(const unit *u, void **state)
{
    if (*state == NULL && (*state = malloc(sizeof(unit))) == NULL)
        return ERROR;
    memcpy(*state, u, sizeof(unit));
    return OK;
}

static int restore(unit *u, const void *state)
{
    if (state == NULL)
        return ERROR;
    const unit *from = state;
    u->started = from->started;
    u->state = from->state;
    u->time = from->time;
    memcpy(u->values, from->values, sizeof(u->values));
    return OK;
}

static int drop(void **state)
{
    if (state != NULL) {
        free(*state);
        *state = NULL;
    }
    return OK;
}

/* -- FMI 2.0 -- */

typedef struct {
    logger2 *logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, int);
    void *environment;
} callbacks2;

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT int fmi2SetDebugLogging(void *c, int on, size_t count, const char *const categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
}
EXPORT void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources,
                             const callbacks2 *callbacks, int visible, int logging)
{
    (void)resources, (void)visible, (void)logging;
    unit *u = type == 1 ? make(name, guid) : NULL; /* 1: co-simulation */
    if (u != NULL && callbacks != NULL) {
        u->logger2 = callbacks->logger;
        u->environment = callbacks->environment;
    }
    return u;
}
EXPORT void fmi2FreeInstance(void *c) { free(c); }
EXPORT int fmi2SetupExperiment(void *c, int tolerant, double tolerance, double start, int stops, double stop)
{
    (void)c, (void)tolerant, (void)tolerance, (void)start, (void)stops, (void)stop;
    return OK;
}
EXPORT int fmi2EnterInitializationMode(void *c)
{
    (void)c;
    return OK;
}
EXPORT int fmi2ExitInitializationMode(void *c)
{
    set_start(c);
    return OK;
}
EXPORT int fmi2Terminate(void *c)
{
    (void)c;
    return OK;
}
EXPORT int fmi2Reset(void *c)
{
    set_defaults(c);
    return OK;
}
EXPORT int fmi2GetReal(void *c, const unsigned *vr, size_t count, double *values) { return get(c, vr, count, values); }
EXPORT int fmi2SetReal(void *c, const unsigned *vr, size_t count, const double *values)
{
    return set(c, vr, count, values);
}
/* There are no variables of other types. */
#define NO_VARIABLES2(name, type)                                                                                      \
    EXPORT int fmi2Get##name(void *c, const unsigned *vr, size_t count, type *values)                                  \
    {                                                                                                                  \
        (void)c, (void)vr, (void)values;                                                                               \
        return count == 0 ? OK : ERROR;                                                                                \
    }                                                                                                                  \
    EXPORT int fmi2Set##name(void *c, const unsigned *vr, size_t count, const type *values)                            \
    {                                                                                                                  \
        (void)c, (void)vr, (void)values;                                                                               \
        return count == 0 ? OK : ERROR;                                                                                \
    }
NO_VARIABLES2(Integer, int)
NO_VARIABLES2(Boolean, int)
NO_VARIABLES2(String, char *)
EXPORT int fmi2GetFMUstate(void *c, void **state) { return save(c, state); }
EXPORT int fmi2SetFMUstate(void *c, void *state) { return restore(c, state); }
EXPORT int fmi2FreeFMUstate(void *c, void **state)
{
    (void)c;
    return drop(state);
}
EXPORT int fmi2SerializedFMUstateSize(void *c, void *state, size_t *size)
{
    (void)c, (void)state, (void)size;
    return ERROR;
}
EXPORT int fmi2SerializeFMUstate(void *c, void *state, char *data, size_t size)
{
    (void)c, (void)state, (void)data, (void)size;
    return ERROR;
}
EXPORT int fmi2DeSerializeFMUstate(void *c, const char *data, size_t size, void **state)
{
    (void)c, (void)data, (void)size, (void)state;
    return ERROR;
}
EXPORT int fmi2GetDirectionalDerivative(void *c, const unsigned *unknowns, size_t n, const unsigned *knowns, size_t m,
                                        const double *dv, double *du)
{
    (void)c, (void)unknowns, (void)n, (void)knowns, (void)m, (void)dv, (void)du;
    return ERROR;
}
EXPORT int fmi2SetRealInputDerivatives(void *c, const unsigned *vr, size_t count, const int *order, const double *values)
{
    (void)c, (void)vr, (void)count, (void)order, (void)values;
    return ERROR;
}
EXPORT int fmi2GetRealOutputDerivatives(void *c, const unsigned *vr, size_t count, const int *order, double *values)
{
    (void)c, (void)vr, (void)count, (void)order, (void)values;
    return ERROR;
}
EXPORT int fmi2DoStep(void *c, double now, double size, int keep)
{
    (void)now, (void)keep;
    return step(c, size);
}
EXPORT int fmi2CancelStep(void *c)
{
    (void)c;
    return ERROR;
}
#define NO_STATUS2(name, type)                                                                                         \
    EXPORT int fmi2Get##name##Status(void *c, int kind, type *value)                                                   \
    {                                                                                                                  \
        (void)c, (void)kind, (void)value;                                                                              \
        return DISCARD;                                                                                                \
    }
EXPORT int fmi2GetStatus(void *c, int kind, int *value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}
NO_STATUS2(Real, double)
NO_STATUS2(Integer, int)
NO_STATUS2(Boolean, int)
NO_STATUS2(String, const char *)

/* -- FMI 3.0 -- */

typedef void update3(void *, double, bool, bool, bool, bool, bool, bool *, double *);

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(void *c, bool on, size_t count, const char *const categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
}
EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
                                         bool logging, bool events, bool early, const uint32_t *intermediate,
                                         size_t count, void *environment, logger3 *logger, update3 *update)
{
    (void)resources, (void)visible, (void)logging, (void)events, (void)early, (void)intermediate, (void)count, (void)update;
    unit *u = make(name, token);
    if (u != NULL) {
        u->logger3 = logger;
        u->environment = environment;
    }
    return u;
}
EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
                                          bool logging, void *environment, logger3 *logger)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)logger;
    return NULL;
}
EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, bool visible,
                                               bool logging, void *environment, logger3 *logger, void (*clock)(void *),
                                               void (*lock)(void), void (*unlock)(void))
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)logger, (void)clock;
    (void)lock, (void)unlock;
    return NULL;
}
EXPORT void fmi3FreeInstance(void *c) { free(c); }
EXPORT int fmi3EnterInitializationMode(void *c, bool tolerant, double tolerance, double start, bool stops, double stop)
{
    (void)tolerant, (void)tolerance, (void)stops, (void)stop;
    ((unit *)c)->time = start;
    return OK;
}
EXPORT int fmi3ExitInitializationMode(void *c)
{
    set_start(c);
    return OK;
}
EXPORT int fmi3Terminate(void *c)
{
    (void)c;
    return OK;
}
EXPORT int fmi3Reset(void *c)
{
    set_defaults(c);
    return OK;
}
EXPORT int fmi3GetFloat64(void *c, const uint32_t *vr, size_t count, double *values, size_t size)
{
    return size == count ? get(c, vr, count, values) : ERROR;
}
EXPORT int fmi3SetFloat64(void *c, const uint32_t *vr, size_t count, const double *values, size_t size)
{
    return size == count ? set(c, vr, count, values) : ERROR;
}
#define NO_VARIABLES3(name, type)                                                                                      \
    EXPORT int fmi3Get##name(void *c, const uint32_t *vr, size_t count, type *values, size_t size)                     \
    {                                                                                                                  \
        (void)c, (void)vr, (void)values, (void)size;                                                                   \
        return count == 0 ? OK : ERROR;                                                                                \
    }                                                                                                                  \
    EXPORT int fmi3Set##name(void *c, const uint32_t *vr, size_t count, const type *values, size_t size)               \
    {                                                                                                                  \
        (void)c, (void)vr, (void)values, (void)size;                                                                   \
        return count == 0 ? OK : ERROR;                                                                                \
    }
NO_VARIABLES3(Float32, float)
NO_VARIABLES3(Int8, int8_t)
NO_VARIABLES3(UInt8, uint8_t)
NO_VARIABLES3(Int16, int16_t)
NO_VARIABLES3(UInt16, uint16_t)
NO_VARIABLES3(Int32, int32_t)
NO_VARIABLES3(UInt32, uint32_t)
NO_VARIABLES3(Int64, int64_t)
NO_VARIABLES3(UInt64, uint64_t)
NO_VARIABLES3(Boolean, bool)
NO_VARIABLES3(String, char *)
EXPORT int fmi3GetBinary(void *c, const uint32_t *vr, size_t count, size_t *sizes, const uint8_t **values, size_t size)
{
    (void)c, (void)vr, (void)sizes, (void)values, (void)size;
    return count == 0 ? OK : ERROR;
}
EXPORT int fmi3SetBinary(void *c, const uint32_t *vr, size_t count, const size_t *sizes, const uint8_t *const *values,
                         size_t size)
{
    (void)c, (void)vr, (void)sizes, (void)values, (void)size;
    return count == 0 ? OK : ERROR;
}
EXPORT int fmi3GetClock(void *c, const uint32_t *vr, size_t count, bool *values)
{
    (void)c, (void)vr, (void)values;
    return count == 0 ? OK : ERROR;
}
EXPORT int fmi3SetClock(void *c, const uint32_t *vr, size_t count, const bool *values)
{
    (void)c, (void)vr, (void)values;
    return count == 0 ? OK : ERROR;
}
EXPORT int fmi3GetFMUState(void *c, void **state) { return save(c, state); }
EXPORT int fmi3SetFMUState(void *c, void *state) { return restore(c, state); }
EXPORT int fmi3FreeFMUState(void *c, void **state)
{
    (void)c;
    return drop(state);
}
EXPORT int fmi3DoStep(void *c, double now, double size, bool keep, bool *event, bool *terminate, bool *early, double *last)
{
    (void)keep;
    int status = step(c, size);
    *event = *terminate = *early = false;
    *last = ((unit *)c)->time = status == OK ? now + size : now;
    return status;
}
/* Functions of features that this unit does not have: they fail. */
#define ABSENT(name, parameters, unused)                                                                               \
    EXPORT int name parameters                                                                                         \
    {                                                                                                                  \
        unused;                                                                                                        \
        return ERROR;                                                                                                  \
    }
#define ABSENT3(name) ABSENT(fmi3##name, (void *c), (void)c)
#define ABSENT3_ARRAY(name, type)                                                                                      \
    ABSENT(fmi3##name, (void *c, type values, size_t count), ((void)c, (void)values, (void)count))
#define ABSENT3_COUNT(name) ABSENT(fmi3##name, (void *c, size_t *count), ((void)c, (void)count))
#define ABSENT3_CLOCK(name, type, other)                                                                               \
    ABSENT(fmi3##name, (void *c, const uint32_t *vr, size_t count, type a, other b),                                   \
           ((void)c, (void)vr, (void)count, (void)a, (void)b))
#define ABSENT3_DERIVATIVE(name)                                                                                       \
    ABSENT(fmi3##name,                                                                                                 \
           (void *c, const uint32_t *u, size_t nu, const uint32_t *k, size_t nk, const double *seed, size_t ns,        \
            double *s, size_t n),                                                                                      \
           ((void)c, (void)u, (void)nu, (void)k, (void)nk, (void)seed, (void)ns, (void)s, (void)n))
ABSENT3(EnterStepMode)
ABSENT3(EnterEventMode)
ABSENT3(EnterConfigurationMode)
ABSENT3(ExitConfigurationMode)
ABSENT3(EnterContinuousTimeMode)
ABSENT3(EvaluateDiscreteStates)
ABSENT3_ARRAY(GetContinuousStates, double *)
ABSENT3_ARRAY(GetContinuousStateDerivatives, double *)
ABSENT3_ARRAY(GetEventIndicators, double *)
ABSENT3_ARRAY(GetNominalsOfContinuousStates, double *)
ABSENT3_ARRAY(SetContinuousStates, const double *)
ABSENT3_COUNT(GetNumberOfContinuousStates)
ABSENT3_COUNT(GetNumberOfEventIndicators)
ABSENT3_DERIVATIVE(GetDirectionalDerivative)
ABSENT3_DERIVATIVE(GetAdjointDerivative)
ABSENT3_CLOCK(GetIntervalDecimal, double *, int *)
ABSENT3_CLOCK(GetShiftFraction, uint64_t *, uint64_t *)
ABSENT3_CLOCK(SetIntervalFraction, const uint64_t *, const uint64_t *)
ABSENT3_CLOCK(SetShiftFraction, const uint64_t *, const uint64_t *)
ABSENT(fmi3GetIntervalFraction, (void *c, const uint32_t *vr, size_t n, uint64_t *a, uint64_t *b, int *q),
       ((void)c, (void)vr, (void)n, (void)a, (void)b, (void)q))
ABSENT(fmi3GetShiftDecimal, (void *c, const uint32_t *vr, size_t n, double *a), ((void)c, (void)vr, (void)n, (void)a))
ABSENT(fmi3SetShiftDecimal, (void *c, const uint32_t *vr, size_t n, const double *a),
       ((void)c, (void)vr, (void)n, (void)a))
ABSENT(fmi3SetIntervalDecimal, (void *c, const uint32_t *vr, size_t n, const double *a),
       ((void)c, (void)vr, (void)n, (void)a))
ABSENT(fmi3SetTime, (void *c, double time), ((void)c, (void)time))
ABSENT(fmi3ActivateModelPartition, (void *c, uint32_t clock, double time), ((void)c, (void)clock, (void)time))
ABSENT(fmi3CompletedIntegratorStep, (void *c, bool keep, bool *event, bool *end),
       ((void)c, (void)keep, (void)event, (void)end))
ABSENT(fmi3UpdateDiscreteStates, (void *c, bool *a, bool *b, bool *d, bool *e, bool *f, double *time),
       ((void)c, (void)a, (void)b, (void)d, (void)e, (void)f, (void)time))
ABSENT(fmi3GetOutputDerivatives,
       (void *c, const uint32_t *vr, size_t n, const int32_t *orders, double *values, size_t size),
       ((void)c, (void)vr, (void)n, (void)orders, (void)values, (void)size))
ABSENT(fmi3SerializedFMUStateSize, (void *c, void *state, size_t *size), ((void)c, (void)state, (void)size))
ABSENT(fmi3SerializeFMUState, (void *c, void *state, uint8_t *data, size_t size),
       ((void)c, (void)state, (void)data, (void)size))
ABSENT(fmi3DeserializeFMUState, (void *c, const uint8_t *data, size_t size, void **state),
       ((void)c, (void)data, (void)size, (void)state))
ABSENT(fmi3GetNumberOfVariableDependencies, (void *c, uint32_t vr, size_t *n), ((void)c, (void)vr, (void)n))
ABSENT(fmi3GetVariableDependencies, (void *c, uint32_t vr, size_t *e, uint32_t *i, size_t *ei, int *kinds, size_t n),
       ((void)c, (void)vr, (void)e, (void)i, (void)ei, (void)kinds, (void)n))
