/* Which composites stay as they are: those that a tactic takes whole. */
#include "build/build_int.h"

#include <math.h>

/* A library may fit by all that is stated of it and have no algorithm all the same. What it said once stands for builds that cannot
 * ask it: a composite that is kept for its sake must be chosen, or there is no engine. */
static hn_digest answer_key(const hn_job *b, const hn_libcall *c)
{
    const hn_digest fp = hn_target_fingerprint(b->t);
    hn_hasher h;

    hn_hasher_init(&h);
    hn_hasher_str(&h, "library takes");
    hn_hasher_bytes(&h, c, sizeof *c);
    hn_hasher_bytes(&h, &fp, sizeof fp);
    return hn_hasher_end(&h);
}

static bool has_algorithm(hn_job *b, const hn_kcall *k)
{
    const hn_digest key = answer_key(b, k->call);
    const hn_code *code;
    hn_diag why = { 0 };
    double ns = HUGE_VAL;

    if (hn_timing_get(b->timing, key, &ns) || b->o->frozen) return isfinite(ns);
    const hone_status s = hn_code_get(b, k, &code, &why);
    if (s == HONE_OK || s == HONE_E_UNSUPPORTED) hn_timing_put(b->timing, key, s == HONE_OK ? 1 : HUGE_VAL, "library takes");
    else hn_log(HN_LOG_WARN, "a composite is spelt out: %s", why.message);
    return s == HONE_OK;
}

static bool library_takes(hn_job *b, const hn_tactic_def *td, const hn_region *r, hn_arena *a)
{
    int64_t p[1][HN_MAX_PARAM];
    hn_emission e = { .arena = a };
    double ns;

    if (hn_library_missing(b, td->library)) return false;
    if (hn_tactic_points(td, r, b->t, /* pins= */ NULL, 1, p, &ns) == 0) return false;
    if (hn_tactic_emit(td, r, b->t, p[0], &e, NULL) != HONE_OK) return false;
    for (int i = 0; i < e.launches.n; i++)
        if (e.launches.at[i].call && !has_algorithm(b, &e.launches.at[i])) return false;
    return true;
}

static bool is_open_to(const hn_pin_reader *pin, const hn_tactic_def *td, const hn_region *r)
{
    const hn_target *t = pin->b->t;
    return hn_tactic_serves(td, t) && td->fits(r, t) == HN_FIT_YES && hn_pin_source(pin, td) == HN_FIT_YES;
}

/* Libraries are asked last: an answer may take a part of a second. */
static bool any_takes(hn_job *b, const hn_node *n, const hn_region *r, hn_arena *a)
{
    const hn_pin_reader pin = { .b = b, .root = n };

    for (int libraries = 0; libraries < 2; libraries++)
        for (int i = 0; i < hn_tactic_count(); i++) {
            const hn_tactic_def *td = hn_tactic_at(i);
            if ((td->library != HN_LIB_NONE) != libraries || !is_open_to(&pin, td, r)) continue;
            if (!libraries || library_takes(b, td, r, a)) return true;
        }
    return false;
}

bool hn_takes_whole(hn_job *b, const hn_node *n)
{
    hn_arena *a = hn_arena_create();
    hn_node *one = (hn_node *)(uintptr_t)n;
    hn_value **in = NULL;
    bool takes = false;
    hn_graph *g = a ? hn_extract(a, &one, 1, n->out, n->n_out, &in) : NULL;
    hn_data **data = g ? HN_NEW_N(a, hn_data *, g->n_in + 1) : NULL;

    if (data) {
        hn_region r;
        for (int i = 0; i < g->n_in; i++) data[i] = in[i]->data;
        hn_region_init(&r, g, g->first, data, n->name);
        takes = any_takes(b, n, &r, a);
    }
    hn_arena_destroy(a);
    return takes;
}
