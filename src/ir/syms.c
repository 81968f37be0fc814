/* Walking the symbols of dims, and moving dims between tables. */
#include "ir/ir_int.h"

#include <stdlib.h>
#include <string.h>

enum { SEEN_WORDS = 64 }; /* on the stack: handles down to -4096, which nearly every graph stays above */

typedef struct sym_walk {
    const hn_symtab *t;
    bool (*fn)(void *user, hn_dim sym);
    void *user;
    uint64_t *seen; /* by -handle: expressions share parts, so paths are many more than nodes */
} sym_walk;

static bool each_sym(sym_walk *w, hn_dim d)
{
    hn_dim x[3] = {0};
    int64_t known;
    if (hn_dim_known(w->t, d, &known)) return true;
    uint64_t *word = &w->seen[-d / 64];
    const uint64_t bit = (uint64_t)1 << (-d % 64);
    if (*word & bit) return true;
    *word |= bit;
    if (hn_dim_expr(w->t, d, x) == HN_EX_SYM) return w->fn(w->user, d);
    for (int i = 0; i < 3; i++)
        if (!each_sym(w, x[i])) return false;
    return true;
}

bool hn_dim_each_sym(const hn_symtab *t, hn_dim d, bool (*fn)(void *user, hn_dim sym), void *user)
{
    uint64_t near[SEEN_WORDS];
    sym_walk w = {.t = t, .fn = fn, .user = user, .seen = near};
    if (d >= 0) return true;
    if (hn_sym_index(t, d) >= 0) return fn(user, d);
    const int64_t n = -d / 64 + 1; /* operands have handles nearer to zero than what they make up */
    if (n > SEEN_WORDS)
        w.seen = calloc((size_t)n, sizeof *w.seen);
    else
        memset(near, 0, (size_t)n * sizeof *near);
    if (!w.seen) return false; /* out of memory: as if fn had refused */
    const bool all = each_sym(&w, d);
    if (w.seen != near) free(w.seen);
    return all;
}

bool hn_dim_seen_init(hn_dim_seen *s, hn_arena *a, const hn_symtab *t)
{
    s->n = hn_dim_count(t) / 64 + 1;
    s->word = HN_NEW_N(a, uint64_t, s->n);
    return s->word != NULL;
}

bool hn_dim_each_new_sym(const hn_symtab *t, hn_dim d, hn_dim_seen *seen, bool (*fn)(void *user, hn_dim sym), void *user)
{
    sym_walk w = {.t = t, .fn = fn, .user = user, .seen = seen->word};
    return -d / 64 < seen->n ? each_sym(&w, d) : hn_dim_each_sym(t, d, fn, user);
}

const char *hn_sym_name(const hn_symtab *t, hn_dim sym)
{
    return hn_sym_get(t, sym)->name;
}

/* After two low numbers those from the count of symbols on: few of them are taken however many symbols share a stem. */
const char *hn_sym_fresh_name(const hn_symtab *t, hn_arena *a, const char *stem)
{
    const char *name = stem ? hn_arena_printf(a, "%s_1", stem) : NULL;
    for (int k = 2; name && hn_sym_find(t, name); k = k == 2 ? HN_MAX(3, hn_sym_count(t)) : k + 1)
        name = hn_arena_printf(a, "%s_%d", stem, k);
    return name;
}

/* Rebuilding by the builders keeps the result canonical in the new table. */
hn_dim hn_dim_make(hn_symtab *to, hn_expr_op op, const hn_dim x[3])
{
    switch (op) {
    case HN_EX_ADD:
        return hn_dim_add(to, x[0], x[1]);
    case HN_EX_MUL:
        return hn_dim_mul(to, x[0], x[1]);
    case HN_EX_FLOORDIV:
        return hn_dim_floordiv(to, x[0], x[1]);
    case HN_EX_MOD:
        return hn_dim_mod(to, x[0], x[1]);
    case HN_EX_MIN:
        return hn_dim_min(to, x[0], x[1]);
    case HN_EX_MAX:
        return hn_dim_max(to, x[0], x[1]);
    case HN_EX_EQ:
        return hn_dim_eq(to, x[0], x[1]);
    case HN_EX_LT:
        return hn_dim_lt(to, x[0], x[1]);
    case HN_EX_SELECT:
        return hn_dim_select(to, x[0], x[1], x[2]);
    case HN_EX_SYM:
        break;
    }
    return 0;
}

bool hn_syms_copy(const hn_symtab *from, hn_symtab *to)
{
    for (int i = 0; i < hn_sym_count(from); i++) {
        const hn_sym *s = hn_sym_get(from, hn_sym_at(from, i));
        const hn_dim d = hn_sym_add(to, s->name, s->kind);
        if (!d) return false;
        hn_sym_set_bounds(to, d, s->min, s->opt, s->max);
    }
    return true;
}
