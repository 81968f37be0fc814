/* Extents that the caller left open: choosing some that work, and saying which ones do not. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_int.h"

static const char *name_of(const hn_context *c, uint32_t io)
{
    return hn_plan_str(c->plan, c->plan->io[io].name);
}

/* Does an instruction of the prefix write this register, so that shapes decide it? */
static bool is_open(const hn_context *c, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_prefix; i++)
        if (c->plan->inst[i].op < HN_S_CHECK_EQ && c->plan->inst[i].dst == reg) return true;
    return false;
}

/* "axis 1 of "input" (64), ..." */
static void list_open(const hn_context *c, hn_str *out)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++) {
        const hn_plan_io *x = &c->plan->io[i];
        for (uint32_t k = 0; x->flags == HN_IO_INPUT && k < x->rank; k++) {
            if (!is_open(c, x->dim[k])) continue;
            hn_str_addf(out, "%saxis %u of \"%s\"", out->n ? ", " : "", k, name_of(c, i));
            if (c->io[i].has_shape) hn_str_addf(out, " (now %lld)", (long long)c->io[i].dim[k]);
        }
    }
}

void hn_hint_sizes(const hn_context *c, const char *why, hn_diag *dg)
{
    hn_str open = { 0 };
    if (!dg) return;
    list_open(c, &open);
    if (open.n) hn_hint(dg, "%sSizes that can be given: %s.", why, hn_str_get(&open));
    hn_str_done(&open);
}

hone_status hn_negative_size(const hn_context *c, uint32_t buf, int64_t bytes, hn_diag *dg)
{
    hn_hint_sizes(c, "The inputs are too small for it. ", dg);
    return HN_RAISE(dg, HONE_E_SHAPE, "tensor \"%s\" would have %lld bytes", hn_buf_name(c, buf), (long long)bytes);
}

/* ---- choosing ---- */
/* One register for all that the program says must be equal: a symbol is read from one input and compared with the others. */
static uint32_t leader(const hn_context *c, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_prefix; i++) {
        const hn_sinst *x = &c->plan->inst[i];
        if (x->op == HN_S_CHECK_EQ && (x->a == reg || x->b == reg)) return HN_MIN(x->a, x->b);
    }
    return reg;
}

/* What an input with a shape says about a register; -1: nothing. */
static int64_t given(const hn_context *c, const bool *chosen, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        for (uint32_t k = 0; !chosen[i] && c->io[i].has_shape && k < c->plan->io[i].rank; k++)
            if (leader(c, c->plan->io[i].dim[k]) == leader(c, reg)) return c->io[i].dim[k];
    return -1;
}

/* A batch: what some input has first rarely makes a size fit. */
static bool leads(const hn_context *c, uint32_t reg)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        if (c->plan->io[i].flags == HN_IO_INPUT && c->plan->io[i].rank > 0 &&
            leader(c, c->plan->io[i].dim[0]) == leader(c, reg))
            return true;
    return false;
}

/* Some extents follow from others: the program knows. */
static void compute(hn_context *c, const bool *chosen)
{
    memcpy(c->reg, c->plan->reg_init, c->plan->n_reg * sizeof(*c->reg));
    if (hn_shape_run(c, 0, c->plan->n_prefix, NULL) != HONE_OK) return;
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        for (uint32_t k = 0; chosen[i] && k < c->plan->io[i].rank; k++)
            c->io[i].dim[k] = c->reg[c->plan->io[i].dim[k]];
}

static void fill_in(hn_context *c, const bool *chosen, int64_t extent, bool batch_too)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++) {
        const hn_plan_io *x = &c->plan->io[i];
        for (uint32_t k = 0; chosen[i] && k < x->rank; k++) {
            const int64_t known = given(c, chosen, x->dim[k]);
            c->io[i].dim[k] = !is_open(c, x->dim[k]) ? c->plan->reg_init[x->dim[k]]
                              : known >= 0           ? known
                              : batch_too || !leads(c, x->dim[k]) ? extent
                                                                  : 1;
        }
        if (chosen[i]) c->io[i].has_shape = true;
    }
    compute(c, chosen);
}

/* The extents that the engine was built for, but for what the given shapes say. */
static void fill_in_usual(hn_context *c, const bool *chosen)
{
    for (uint32_t s = 0; s < c->plan->n_sym; s++) {
        const uint32_t i = c->plan->sym[s].io;
        if (chosen[i] && given(c, chosen, c->plan->sym[s].reg) < 0) c->io[i].dim[c->plan->sym[s].axis] = c->plan->sym[s].usual;
    }
    compute(c, chosen);
}

/* Every tensor has a size: a branch that is not taken could be. */
static bool all_sized(const hn_context *c)
{
    for (uint32_t i = 0; i < c->plan->n_buf; i++)
        if (c->plan->buf[i].kind == HN_BUF_ARENA && c->buf[i].bytes <= 0) return false;
    return true;
}

static hone_status choose(hn_context *c, const bool *chosen, hn_diag *dg)
{
    /* One, the side of an image, and what audio models cut their input into. */
    static const int64_t usual[] = { 1, 64, 224, 256, 512, 1024, 2048, 4096, 16384 };
    enum { N = sizeof(usual) / sizeof(*usual) };
    int works = -1; /* some branch would have no size, but it can be prepared */

    c->prepared = false;
    fill_in(c, chosen, 1, false);
    fill_in_usual(c, chosen);
    if (hn_context_prepare(c, NULL) == HONE_OK && all_sized(c)) return HONE_OK;
    for (int t = 0; t < 2 * N; t++) {
        c->prepared = false;
        fill_in(c, chosen, usual[t % N], t >= N);
        if (hn_context_prepare(c, NULL) != HONE_OK) continue;
        if (all_sized(c)) return HONE_OK;
        if (works < 0) works = t;
    }
    c->prepared = false;
    fill_in(c, chosen, usual[HN_MAX(works, 0) % N], works >= N);
    return hn_context_prepare(c, dg);
}

hone_status hn_context_choose_shapes(hn_context *c, hn_diag *dg)
{
    bool *const chosen = calloc(c->plan->n_io + (size_t)1, sizeof(*chosen));
    bool any = false;

    if (!chosen) return HN_NOMEM(dg);
    for (uint32_t i = 0; i < c->plan->n_io; i++) {
        chosen[i] = c->plan->io[i].flags == HN_IO_INPUT && !c->io[i].has_shape;
        any |= chosen[i];
    }
    hone_status s = any ? choose(c, chosen, dg) : hn_context_prepare(c, dg);
    for (uint32_t i = 0; s && i < c->plan->n_io; i++)
        if (chosen[i]) c->io[i].has_shape = false;
    if (s) c->prepared = false;
    free(chosen);
    if (s && any) {
        hn_str open = { 0 };
        list_open(c, &open);
        hn_diag_frame(dg, "choosing sizes that were not given: %s", hn_str_get(&open));
        hn_str_done(&open);
    }
    return s;
}
