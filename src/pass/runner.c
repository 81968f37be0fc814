/* The runner: walks, repeats groups to a fixpoint, counts, times, validates, prints. */
#include "pass/pass.h"
#include "base/os.h"

#include <string.h>

#define X(name) extern const hn_pass_def hn_pass_##name;
#include "pass/passes.def"
#undef X

static const hn_pass_def *const table[] = {
#define X(name) &hn_pass_##name,
#include "pass/passes.def"
#undef X
};

int hn_pass_count(void)
{
    return HN_COUNT(table);
}

const hn_pass_def *hn_pass_at(int i)
{
    return table[i];
}

const hn_pass_def *hn_pass_find(const char *name)
{
    for (int i = 0; i < HN_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

int64_t hn_pass_knob(hn_pass_ctx *c, hn_knob id, const hn_node *n)
{
    return hn_knob_read_node(c->knobs, id, n->origin, n->n_origin);
}

/* ---- one pass over one graph, bodies first ---- */
static hone_status visit_nodes(const hn_pass_def *p, hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg)
{
    hn_builder b;
    hn_builder_init(&b, g, dg);
    HN_FOR_NODES (n, g) {
        if (p->on != HN_OP_NONE && n->op != p->on) continue;
        hn_at(&b, n);
        if (p->visit(&b, n, c)) ++*fired;
        if (b.status != HONE_OK) return b.status;
        /* What stands after n may have been unlinked by the visit: the walk goes on from n's own link. */
        if (n->graph == g) n_next = n->next;
    }
    return HONE_OK;
}

static hone_status run_pass(const hn_pass_def *p, hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg)
{
    HN_FOR_NODES (n, g)
        for (int i = 0; i < n->n_body; i++) HN_TRY(run_pass(p, n->body[i], c, fired, dg));
    if (p->visit) HN_TRY(visit_nodes(p, g, c, fired, dg));
    else HN_TRY(p->run(g, c, fired, dg));
    hn_sweep_dead(g);
    return HONE_OK;
}

/* ---- checks ---- */
static hone_status check_valid(const hn_graph *g, const char *pass, hn_diag *dg)
{
    hn_diags list = { 0 };
    if (hn_validate(g, true, &list)) return HONE_OK;
    HN_RAISE(dg, HONE_E_INTERNAL, "pass \"%s\" broke the graph: %s", pass, list.n ? list.at[0].message : "unknown");
    for (int i = 1; i < list.n && i < 8; i++) hn_diag_frame(dg, "%s", list.at[i].message);
    hn_diags_done(&list);
    return dg->code;
}

static hone_status check_roundtrip(const hn_graph *g, const char *pass, hn_diag *dg)
{
    hn_str text = { 0 };
    hn_graph *copy = NULL;
    hn_arena *a = hn_arena_create();
    hn_print(g, &text);
    hone_status s = a ? hn_parse(a, hn_str_get(&text), &copy, dg) : HN_NOMEM(dg);
    if (s == HONE_OK && !hn_digest_eq(hn_graph_digest(g), hn_graph_digest(copy)))
        s = HN_RAISE(dg, HONE_E_INTERNAL, "the text form after pass \"%s\" reads back as another graph", pass);
    hn_str_done(&text);
    hn_arena_destroy(a);
    return s;
}

static hone_status after_pass(hn_graph *g, const hn_pass_def *p, const hn_pass_debug *d, hn_diag *dg)
{
    if (!d) return HONE_OK;
    if (d->validate) HN_TRY(check_valid(g, p->name, dg));
    if (d->roundtrip) HN_TRY(check_roundtrip(g, p->name, dg));
    if (d->print) {
        hn_str text = { 0 };
        hn_print(g, &text);
        hn_log(HN_LOG_INFO, "after %s:\n%s", p->name, hn_str_get(&text));
        hn_str_done(&text);
    }
    return HONE_OK;
}

/* ---- pipelines ---- */
static hn_pass_stat *stat_of(hn_pass_stat *stat, int *n, int cap, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(stat[i].pass, name) == 0) return &stat[i];
    if (*n == cap) return NULL;
    stat[*n] = (hn_pass_stat){ .pass = name };
    return &stat[(*n)++];
}

typedef struct run {
    hn_graph *g;
    hn_pass_ctx *c;
    const hn_pass_debug *debug;
    hn_pass_stat *stat;
    int n_stat, cap;
    bool stopped;
} run;

static hone_status run_step(run *r, const char *name, int *ret_fired, hn_diag *dg)
{
    const hn_pass_def *p = hn_pass_find(name);
    int fired = 0;
    if (HN_NEVER(!p)) return HN_RAISE(dg, HONE_E_INTERNAL, "there is no pass \"%s\"", name);
    if (!p->exact && !r->c->allow_inexact) return HONE_OK;
    const int64_t t0 = hn_now_ns();
    HN_TRY_IN(dg, run_pass(p, r->g, r->c, &fired, dg), "pass \"%s\"", name);
    hn_pass_stat *s = stat_of(r->stat, &r->n_stat, r->cap, p->name);
    if (s) {
        s->runs++;
        s->fired += fired;
        s->ns += hn_now_ns() - t0;
    }
    hn_arena_reset(r->c->scratch);
    if (hn_arena_oom(r->g->arena)) return HN_NOMEM(dg);
    if (fired) HN_TRY(after_pass(r->g, p, r->debug, dg));
    *ret_fired += fired;
    r->stopped = r->debug && r->debug->stop_after && strcmp(r->debug->stop_after, name) == 0;
    return HONE_OK;
}

static hone_status run_group(run *r, const hn_pipeline_step *first, int n, int rounds, hn_diag *dg)
{
    for (int round = 0; round < rounds; round++) {
        int fired = 0;
        for (int i = 0; i < n && !r->stopped; i++) HN_TRY(run_step(r, first[i].pass, &fired, dg));
        if (!fired || r->stopped) break;
    }
    return HONE_OK;
}

hone_status hn_pipeline_run(hn_graph *g, const hn_pipeline *p, hn_pass_ctx *c, const hn_pass_debug *debug,
                            hn_pass_stat *ret_stat, int *n_stat, hn_diag *dg)
{
    run r = { .g = g, .c = c, .debug = debug, .stat = ret_stat, .cap = n_stat ? *n_stat : 0 };
    for (const hn_pipeline_step *s = p->step; s->pass && !r.stopped;) {
        int n = 0;
        while (s[n].pass && s[n].group == s->group) n++;
        HN_TRY(run_group(&r, s, n, p->rounds, dg));
        s += n;
    }
    if (n_stat) *n_stat = r.n_stat;
    return HONE_OK;
}
