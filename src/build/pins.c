/* What a route asks of one region: how wide its vectors are, which tactics stay out, which parameters are pinned. */
#include "build/build_int.h"

#include <stdlib.h>
#include <string.h>

static int64_t read_for(const hn_pin_reader *p, hn_knob k)
{
    return hn_knob_read_node(p->b->knobs, k, p->root->origin, p->root->n_origin);
}

/* ---- vectors ---- */
static int asked_bytes(int64_t v)
{
    static const int bytes[] = { 0, 16, 32, 64 }; /* auto, v128, v256, v512 */
    return v >= 0 && v < HN_COUNT(bytes) ? bytes[v] : 0;
}

/* The same machine with narrower vectors: AVX-512 has as many registers of every width. */
static const hn_target *narrowed(hn_job *b, int bytes)
{
    for (int i = 0; i < b->narrow.n; i++)
        if (b->narrow.at[i]->vec_bytes == bytes) return b->narrow.at[i];
    hn_target *t = HN_NEW(b->a, hn_target);
    if (!t) return b->t;
    *t = *b->t;
    t->vec_bytes = bytes;
    return hn_vec_push(b->a, &b->narrow, (const hn_target *)t) ? t : b->t;
}

const hn_target *hn_pin_target(const hn_pin_reader *p)
{
    enum { LEAST = 16 };
    if (p->b->t->vec_bytes <= LEAST) return p->b->t;
    const int bytes = asked_bytes(read_for(p, HN_KNOB_code_vectors));
    return bytes == 0 || bytes >= p->b->t->vec_bytes ? p->b->t : narrowed(p->b, bytes);
}

/* ---- sources ---- */
hn_fit hn_pin_source(const hn_pin_reader *p, const hn_tactic_def *td)
{
    if (td->source && !read_for(p, td->source)) return td->changes_numbers ? HN_FIT_NUMBERS : HN_FIT_KNOB;
    return td->source_too && !read_for(p, td->source_too) ? HN_FIT_KNOB : HN_FIT_YES;
}

/* ---- parameters ---- */
static bool get(void *user, hn_knob k, int64_t *ret)
{
    const hn_pin_reader *p = user;
    return hn_knob_pin(hn_knob_get(k), read_for(p, k), ret);
}

static void miss(void *user, hn_knob k, int64_t value)
{
    (void)value;
    hn_pin_reader *p = user;
    hn_str text = { 0 };
    const hn_knob_def *def = hn_knob_get(k);
    hn_str_addf(&text, "-%s=", def->name);
    hn_knob_print_value(def, read_for(p, k), &text);
    hn_str_add(&text, " does not apply: no legal point has it");
    p->missed = hn_arena_strdup(p->b->a, hn_str_get(&text));
    hn_str_done(&text);
}

hn_pins hn_pin_params(hn_pin_reader *p)
{
    p->missed = NULL;
    return (hn_pins){ .user = p, .get = get, .miss = miss };
}
