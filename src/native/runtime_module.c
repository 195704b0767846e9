/* The runtime core for Python: a model as a capsule, steps of a stream, and motions of a torque. */
#include "arguments.h"
#include "runtime.h"
#include "term_reader.h"

#define CAPSULE "jointwise.runtime"

/* -- a model from a flat array -- */

typedef struct {
    jw_model model;
    jw_joint joints[JW_MOST_JOINTS];
    jw_term terms[JW_MOST_JOINTS][MOST_TERMS];
    double *numbers;
} held_model;

static void read_joint(reader *in, jw_joint *joint, jw_term *terms)
{
    joint->revolute = read_count(in, 1);
    read_numbers(in, joint->rotation, 9);
    read_numbers(in, joint->translation, 3);
    read_numbers(in, joint->inertial, 10);
    joint->rotor = read_number(in);
    read_numbers(in, joint->load_inertial, 10);
    joint->load_rotor = read_number(in);
    joint->gain = read_number(in);
    joint->reference = read_number(in);
    joint->terms = read_terms(in, terms);
    joint->term = terms;
}

static int read_model(reader *in, held_model *held)
{
    jw_model *model = &held->model;
    model->joints = read_count(in, JW_MOST_JOINTS);
    model->other_load = read_count(in, 1);
    model->period = read_number(in);
    model->track = read_number(in);
    read_numbers(in, model->gravity, 3);
    if (read_count(in, 1)) {
        model->coupling = read_span(in, (Py_ssize_t)model->joints * model->joints);
        model->decoupling = read_span(in, (Py_ssize_t)model->joints * model->joints);
    }
    model->joint = held->joints;
    for (int j = 0; j < model->joints && in->left >= 0; j++)
        read_joint(in, &held->joints[j], held->terms[j]);
    return in->left == 0 && model->joints > 0 && jw_memory(model) > 0;
}

static void drop_model(held_model *held)
{
    PyMem_Free(held->numbers);
    PyMem_Free(held);
}

static void drop_capsule(PyObject *capsule) { drop_model(PyCapsule_GetPointer(capsule, CAPSULE)); }

/* runtime_open(numbers) -> capsule; the order of the numbers is that of jointwise/runtime/packing.py. */
static PyObject *runtime_open(PyObject *self, PyObject *numbers_object)
{
    (void)self;
    lent borrowed = {.count = 0};
    const double *source;
    Py_ssize_t size;
    if (!any_numbers(numbers_object, "numbers", 0, &borrowed, &source, &size)) {
        give_back(&borrowed);
        return NULL;
    }
    held_model *held = PyMem_Calloc(1, sizeof(held_model));
    if (held != NULL && (held->numbers = PyMem_Malloc((size_t)(size > 0 ? size : 1) * sizeof(double))) != NULL)
        memcpy(held->numbers, source, (size_t)size * sizeof(double));
    give_back(&borrowed);
    if (held == NULL || held->numbers == NULL) {
        PyMem_Free(held);
        return PyErr_NoMemory();
    }
    reader in = {held->numbers, size};
    PyObject *capsule = NULL;
    if (read_model(&in, held))
        capsule = PyCapsule_New(held, CAPSULE, drop_capsule);
    else
        PyErr_SetString(PyExc_ValueError, "numbers are not those of a model, or of one that is too large");
    if (capsule == NULL)
        drop_model(held);
    return capsule;
}

/* The model of a capsule, for monitor_module.c too; NULL with an error set if it is none. */
const jw_model *model_of(PyObject *capsule)
{
    held_model *held = PyCapsule_GetPointer(capsule, CAPSULE);
    return held == NULL ? NULL : &held->model;
}

/* -- calls -- */

/* runtime_init(model, q, rotor | None, state) */
static PyObject *runtime_init(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[4], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &o[0], &o[1], &o[2], &o[3]))
        return NULL;
    const jw_model *model = model_of(o[0]);
    if (model == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *q, *rotor;
    double *state;
    if (numbers(o[1], "q", model->joints, 0, &held, &q) && numbers(o[2], "rotor", model->joints, 1, &held, &rotor) &&
        outputs(o[3], "state", JW_MOST_MEMORY, 0, &held, &state)) {
        jw_init(model, q, rotor, (jw_state *)state);
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* runtime_steps(model, state, samples, q, qd, qdd, speed | None, rotor | None, temperature | None, torque): arrays of
 * (samples, joints) numbers; the state is updated. */
static PyObject *runtime_steps(PyObject *self, PyObject *args)
{
    (void)self;
    static const char *const names[6] = {"q", "qd", "qdd", "speed", "rotor", "temperature"};
    PyObject *o[9], *result = NULL;
    Py_ssize_t samples;
    if (!PyArg_ParseTuple(args, "OOnOOOOOOO", &o[0], &o[1], &samples, &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8]))
        return NULL;
    const jw_model *model = model_of(o[0]);
    if (model == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *in[6];
    double *state, *torque;
    Py_ssize_t n = model->joints, size = times(samples, n);
    int ready = outputs(o[1], "state", JW_MOST_MEMORY, 0, &held, &state) &&
                outputs(o[8], "torque", size, 0, &held, &torque);
    for (int k = 0; k < 6 && ready; k++)
        ready = numbers(o[2 + k], names[k], size, k > 2, &held, &in[k]);
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < samples; k++) {
            Py_ssize_t at = k * n;
            jw_sample sample = {in[0] + at, in[1] + at, in[2] + at, in[3] ? in[3] + at : NULL,
                                in[4] ? in[4] + at : NULL, in[5] ? in[5] + at : NULL};
            jw_step(model, (jw_state *)state, &sample, torque + at);
        }
        Py_END_ALLOW_THREADS
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

/* runtime_move(model, state, steps, torque, temperature | None, q, qd) -> whether the mass matrix was positive definite;
 * the same torque acts over all steps; state, q and qd are updated. */
static PyObject *runtime_move(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    Py_ssize_t steps;
    if (!PyArg_ParseTuple(args, "OOnOOOO", &o[0], &o[1], &steps, &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    const jw_model *model = model_of(o[0]);
    if (model == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *torque, *temperature;
    double *state, *q, *qd;
    Py_ssize_t n = model->joints;
    if (outputs(o[1], "state", JW_MOST_MEMORY, 0, &held, &state) && numbers(o[2], "torque", n, 0, &held, &torque) &&
        numbers(o[3], "temperature", n, 1, &held, &temperature) && outputs(o[4], "q", n, 0, &held, &q) &&
        outputs(o[5], "qd", n, 0, &held, &qd)) {
        int fine = 1;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < steps && fine; k++)
            fine = jw_move(model, (jw_state *)state, torque, temperature, q, qd) == 0;
        Py_END_ALLOW_THREADS
        result = PyBool_FromLong(fine);
    }
    give_back(&held);
    return result;
}

/* runtime_bodies(model, q, qd, qdd, torque, M): torque of the bodies and mass matrix, for tests. */
static PyObject *runtime_bodies(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *o[6], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    const jw_model *model = model_of(o[0]);
    if (model == NULL)
        return NULL;
    lent held = {.count = 0};
    const double *q, *qd, *qdd;
    double *torque, *M;
    Py_ssize_t n = model->joints;
    if (numbers(o[1], "q", n, 0, &held, &q) && numbers(o[2], "qd", n, 0, &held, &qd) &&
        numbers(o[3], "qdd", n, 0, &held, &qdd) && outputs(o[4], "torque", n, 0, &held, &torque) &&
        outputs(o[5], "M", n * n, 0, &held, &M)) {
        jw_body_torque(model, q, qd, qdd, torque);
        jw_mass_matrix(model, q, M);
        result = Py_NewRef(Py_None);
    }
    give_back(&held);
    return result;
}

static PyObject *runtime_state_size(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return PyLong_FromLong(JW_MOST_MEMORY);
}

/* term_laws() -> names of the laws in terms.h, in the order of their kinds, separated by spaces */
static PyObject *term_laws(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
#define LAW_NAME(law, role, columns, memory) " " #law
    return PyUnicode_FromString(&(JW_TERM_LIST(LAW_NAME))[1]);
#undef LAW_NAME
}

PyMethodDef RUNTIME_METHODS[] = {
    {"term_laws", term_laws, METH_NOARGS, "() -> names of the laws of terms, in order, separated by spaces"},
    {"runtime_open", runtime_open, METH_O, "(numbers) -> model"},
    {"runtime_init", runtime_init, METH_VARARGS, "(model, q, rotor, state)"},
    {"runtime_steps", runtime_steps, METH_VARARGS, "(model, state, samples, q, qd, qdd, speed, rotor, temperature, torque)"},
    {"runtime_move", runtime_move, METH_VARARGS, "(model, state, steps, torque, temperature, q, qd) -> positive definite"},
    {"runtime_bodies", runtime_bodies, METH_VARARGS, "(model, q, qd, qdd, torque, M)"},
    {"runtime_state_size", runtime_state_size, METH_NOARGS, "numbers of a state"},
    {NULL, NULL, 0, NULL},
};
