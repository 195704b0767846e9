/* The terms of joints from the flat arrays of Python: `CoreTerm.packed` of model/terms/term.py. */
#ifndef JOINTWISE_TERM_READER_H
#define JOINTWISE_TERM_READER_H

#include "reader.h"
#include "terms.h"

#define MOST_TERMS 32
#define MOST_POINTS 100000

static inline void read_term(reader *in, jw_term *term)
{
    term->kind = read_count(in, JW_TERM_KINDS - 1);
    term->load = read_count(in, JW_LOAD_MIXED);
    term->driver = read_count(in, jw_term_role(term) == JW_ROLE_SLIP ? JW_DRIVER_ROTOR : JW_DRIVER_SPEED);
    term->count = read_count(in, JW_MOST_ELEMENTS);
    term->points = read_count(in, MOST_POINTS);
    term->width = read_number(in);
    read_numbers(in, term->number, JW_NUMBERS);
    term->elements = read_span(in, (Py_ssize_t)jw_term_columns(term) * term->count);
    term->backlash = read_span(in, term->points);
}

/* The number of the terms of a joint, at most MOST_TERMS. */
static inline int read_terms(reader *in, jw_term *terms)
{
    int count = read_count(in, MOST_TERMS);
    for (int k = 0; k < count && in->left >= 0; k++)
        read_term(in, &terms[k]);
    return count;
}

#endif
