/* The terms of a joint (terms.h) during one step of the simulated robot.
 *
 * Over a step of h seconds the friction of a joint is f(D) = dry(D) + factor D / h + constant over its displacement D. Levels,
 * factor and constant are those in the middle of the step; dry(D) is the mean along the displacement of what slip terms carry:
 * their own forces and the levels that act in their direction. A level that acts in the direction of the speed is carried by
 * one slip element of SIGN_LIMIT, which sticks at rest, or by tanh. So friction is continuous at a reversal and passive: no
 * weight of a slip element and no viscous factor is below zero. Plain C without Python.
 */
#ifndef JOINTWISE_JOINT_TERMS_H
#define JOINTWISE_JOINT_TERMS_H

#include "compiler.h"
#include "term_reader.h"

#define MOST_CARRIERS 8
#define MOST_MEMORY 512 /* numbers that the terms of a joint remember */

/* Displacements (rad) below this count as none: their inverse would overflow. */
#define SHORTEST 1e-200

/* Deformation (rad) of the element that stands for the sign of the speed. */
#define SIGN_LIMIT 1e-5
static const double SIGN_ELEMENT[4] = {SIGN_LIMIT, 0.0, 1.0, 1.0 / SIGN_LIMIT};
static const jw_term SIGN_TERM = {.kind = JW_TERM_slip, .driver = JW_DRIVER_SPEED, .count = 1, .number = {1.0},
                                  .elements = SIGN_ELEMENT};

/* What carries dry friction: a slip term, or tanh of the speed over `width`, without a term. */
typedef struct {
    const jw_term *term;
    double width;
    int memory; /* where its numbers begin in the memory of the joint, which has no last positions */
} carrier;

typedef struct {
    const jw_term *term;
    int terms, carriers, memory, has_friction;
    int plain; /* whether one term of slip elements carries everything: the usual case, without loops and branches */
    carrier carried[MOST_CARRIERS];
    signed char carrier_of[MOST_TERMS]; /* of a level; -1 for none */
    signed char role[MOST_TERMS];
} joint_terms;

/* Whether viscous friction has a power below 1, which is a level. */
static inline int has_root(const jw_term *term)
{
    for (int i = 0; term->kind == JW_TERM_viscous && i < term->count; i++)
        if (term->elements[i] < 1.0)
            return 1;
    return 0;
}

/* The carrier of the levels of a term: of its driver, the nearest before it, or of the sign of the speed, which is added
 * where it is missing. -1: there is none. */
static inline int find_carrier(joint_terms *law, const jw_term *term)
{
    int by_speed = term->driver == JW_DRIVER_SPEED || term->kind == JW_TERM_viscous;
    for (int c = law->carriers - 1; c >= 0; c--) {
        const carrier *found = &law->carried[c];
        int same_sign = found->term == NULL ? term->width > 0.0 && found->width == term->width
                                            : found->term == &SIGN_TERM && term->width == 0.0;
        if (by_speed ? same_sign : found->term != NULL && found->term->driver == term->driver)
            return c;
    }
    if (!by_speed || law->carriers == MOST_CARRIERS)
        return -1;
    law->carried[law->carriers] = (carrier){term->width > 0.0 ? NULL : &SIGN_TERM, term->width, law->memory};
    law->memory += term->width > 0.0 ? 0 : 1;
    return law->carriers++;
}

/* The terms of a joint from its numbers; 0 if they are not well formed. */
static inline int read_joint_terms(reader *in, jw_term *terms, joint_terms *law)
{
    *law = (joint_terms){.term = terms, .terms = read_terms(in, terms)};
    for (int k = 0; k < law->terms && in->left >= 0; k++) {
        const jw_term *term = &terms[k];
        int role = jw_term_role(term);
        law->role[k] = (signed char)role;
        law->carrier_of[k] = -1;
        law->has_friction |= role == JW_ROLE_DRY || role == JW_ROLE_SLIP || role == JW_ROLE_SMOOTH;
        if (role == JW_ROLE_SLIP) {
            if (law->carriers == MOST_CARRIERS)
                return 0;
            law->carrier_of[k] = (signed char)law->carriers;
            law->carried[law->carriers++] = (carrier){term, 0.0, law->memory};
            law->memory += jw_term_memory(term) - 1;
        } else if (role == JW_ROLE_DRY || term->kind == JW_TERM_thermal || has_root(term)) {
            if ((law->carrier_of[k] = (signed char)find_carrier(law, term)) < 0)
                return 0;
        }
    }
    law->plain = law->carriers == 1 && law->carried[0].term != NULL && law->carried[0].term->kind == JW_TERM_slip;
    return in->left >= 0;
}

/* What friction is during one step. */
typedef struct {
    const joint_terms *law;
    const double *memory;
    double level[MOST_CARRIERS], h[MOST_CARRIERS], backlash[MOST_CARRIERS], per_backlash[MOST_CARRIERS];
    double most, least; /* bounds of the dry part, Nm */
    double factor, constant, period;
} step_friction;

/* The backlash of all slip terms where a step ends, at the position theta. */
INLINED void set_backlash(step_friction *f, double theta, int plain)
{
    for (int c = 0; c < (plain ? 1 : f->law->carriers); c++) {
        const jw_term *term = f->law->carried[c].term;
        f->backlash[c] = term == NULL ? 1.0 : jw_term_backlash(term, theta);
        f->per_backlash[c] = 1.0 / f->backlash[c];
    }
}

/* Bounds of the dry part over any displacement. */
static inline void bound_dry(step_friction *f)
{
    f->least = f->most = 0.0;
    for (int c = 0; c < f->law->carriers; c++) {
        const carrier *at = &f->law->carried[c];
        jw_range bounds = {-jw_positive(f->level[c]), jw_positive(f->level[c])};
        if (at->term != NULL)
            bounds = jw_slip_range(at->term, f->memory + at->memory, f->level[c], f->h[c]);
        f->least += bounds.least;
        f->most += bounds.most;
    }
}

/* Levels, factor and constant at a speed, load, temperature and position, over a step that ends at the position theta. `plain`
 * is that of the law, as a constant that the compiler sees. */
INLINED void begin_friction(const joint_terms *law, const double *memory, double period, jw_input *in, double theta, int plain,
                            step_friction *f)
{
    double factor = 0.0, constant = 0.0, level = 0.0;
    for (int c = 0; !plain && c < law->carriers; c++)
        f->level[c] = 0.0;
    for (int k = 0; k < law->terms; k++) {
        const jw_term *term = &law->term[k];
        int c = law->carrier_of[k], role = law->role[k];
        if (role == JW_ROLE_SLIP && !plain) {
            f->h[c] = term->kind == JW_TERM_slip ? 1.0 : jw_steady_level(term, in->speed);
        } else if (role == JW_ROLE_DRY || role == JW_ROLE_SMOOTH) {
            jw_part part = jw_term_part(term, in, NULL);
            factor += part.factor;
            constant += part.constant;
            if (plain)
                level += part.level; /* 0 where a term has none */
            else if (c >= 0)
                f->level[c] += part.level;
        }
    }
    f->law = law;
    f->memory = memory;
    f->period = period;
    f->factor = jw_positive(factor);
    f->constant = constant;
    if (plain) {
        f->level[0] = level;
        jw_range bounds = jw_range_slip(law->carried[0].term, memory, level, 1.0);
        f->least = bounds.least;
        f->most = bounds.most;
    } else {
        bound_dry(f);
    }
    set_backlash(f, theta, plain);
}

/* Mean of the dry part along a displacement, and its derivative with respect to it. */
INLINED jw_path_mean dry_mean(const step_friction *f, double move, int plain)
{
    jw_path_mean sum = {0.0, 0.0};
    move = fabs(move) < SHORTEST ? 0.0 : move;
    if (plain)
        return jw_along_slip(f->law->carried[0].term, f->memory, f->level[0], 1.0, f->backlash[0], f->per_backlash[0], move);
    for (int c = 0; c < f->law->carriers; c++) {
        const carrier *at = &f->law->carried[c];
        jw_path_mean mean;
        if (at->term == NULL) {
            double level = jw_positive(f->level[c]), per_speed = 1.0 / (f->period * at->width), side = tanh(move * per_speed);
            mean = (jw_path_mean){level * side, level * (1.0 - side * side) * per_speed};
        } else {
            mean = jw_slip_along(at->term, f->memory + at->memory, f->level[c], f->h[c], f->backlash[c], f->per_backlash[c],
                                 move);
        }
        sum.mean += mean.mean;
        sum.slope += mean.slope;
    }
    return sum;
}

/* Friction at the instant where the elements are, at the speed w. */
INLINED double friction_now(const step_friction *f, double w)
{
    double torque = f->factor * w + f->constant;
    for (int c = 0; c < f->law->carriers; c++) {
        const carrier *at = &f->law->carried[c];
        if (at->term == NULL) {
            torque += jw_positive(f->level[c]) * tanh(w / at->width);
        } else {
            jw_term term = *at->term;
            if (term.kind == JW_TERM_slip)
                term.number[0] = 1.0; /* no time passes: nothing relaxes */
            torque += jw_slip_along(&term, f->memory + at->memory, f->level[c], f->h[c], f->backlash[c],
                                    f->per_backlash[c], 0.0).mean;
        }
    }
    return torque;
}

/* The energy (J) that the elements hold. */
INLINED double dry_energy(const step_friction *f)
{
    double energy = 0.0;
    for (int c = 0; c < f->law->carriers; c++) {
        const carrier *at = &f->law->carried[c];
        if (at->term != NULL)
            energy += jw_slip_energy(at->term, f->memory + at->memory, f->level[c], f->backlash[c]);
    }
    return energy;
}

/* The elements take a displacement that ends where the backlash is as set, at the speed of the step. */
INLINED void deform(const step_friction *f, double speed, double move, double *memory)
{
    double H;
    if (f->law->plain) {
        jw_step_slip(f->law->carried[0].term, speed, move, f->backlash[0], memory, &H);
        return;
    }
    for (int c = 0; c < f->law->carriers; c++) {
        const carrier *at = &f->law->carried[c];
        if (at->term != NULL)
            jw_slip_step(at->term, speed, move, f->backlash[c], memory + at->memory, &H);
    }
}

/* Solves D (1 + c v) + c h (dry(D) + constant) = free for the displacement D, c = h G / 2, v the factor, G the inverse
 * inertia, and returns the mean friction torque. Newton's method from the slipping side, kept in its bracket by bisection; the
 * left side only grows with D. */
INLINED double solve_friction(const step_friction *f, double free, double G, int plain)
{
    double h = f->period, c = 0.5 * h * G, straight = 1.0 + c * f->factor, dry = c * h;
    free -= dry * f->constant;
    if (dry == 0.0 || f->most == f->least)
        return f->factor * free / straight / h + f->constant;
    double low = (free - dry * f->most) / straight, high = (free - dry * f->least) / straight;
    double move = low > 0.0 ? low : (high < 0.0 ? high : 0.0), size = straight * (high - low);
    jw_path_mean H = dry_mean(f, move, plain);
    for (int k = 0; k < 60; k++) {
        double rest = straight * move + dry * H.mean - free;
        if (fabs(rest) <= 4e-16 * (fabs(free) + size))
            break;
        if (rest > 0.0)
            high = move;
        else
            low = move;
        double next = move - rest / (straight + dry * H.slope);
        if (!(next >= low && next <= high))
            next = 0.5 * (low + high);
        if (next == move)
            break;
        move = next;
        H = dry_mean(f, move, plain);
    }
    return H.mean + f->factor * move / h + f->constant;
}

#endif
