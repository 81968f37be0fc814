/* Tactic choice: candidates enumerated, pruned by arithmetic, ranked by prediction, the best few raced. */
#include "build/build_int.h"

#include <math.h>
#include <string.h>

enum { MAX_CANDIDATE = 96, MAX_POINT = 48 };

/* What routes call a region, and all that are equal to it. */
static const char *label_of(hn_arena *a, hn_digest region)
{
    enum { DIGITS = 12 };
    char text[HN_DIGEST_TEXT];
    return hn_arena_printf(a, "region:%.*s", DIGITS, hn_digest_text(region, text));
}

/* How many of the ranked candidates are raced, by core:opt_level. */
static int race_width(int64_t level)
{
    static const int width[] = { 0, 2, 4, 8, 16, MAX_CANDIDATE };
    return width[HN_MAX(0, HN_MIN(level, 5))];
}

typedef struct candidate {
    const hn_tactic_def *td;
    int64_t p[HN_MAX_PARAM];
    const char *name;
    hn_emission *e;
    double predicted, measured;
    bool cached; /* measured, or failed, in an earlier build */
    bool failed; /* by itself: it did not compile, or did not run to its end */
    const char *reason;
} candidate;

static const char no_code[] = "did not compile";
static const char failed_before[] = "failed when an earlier build tried it";

typedef struct field {
    hn_job *b;
    const hn_region *r;
    const hn_target *t; /* what the region is emitted for */
    bool whole_passes;  /* LLVM runs its whole pipeline over the kernels */
    int rank;           /* place of the candidate that is taken, 0 the first */
    bool early;         /* kernels are launched while what precedes them still runs: in the engine, not in a race */
    hn_heat_memory memory; /* how candidates are timed */
    hn_pin_reader pin;
    HN_VEC(candidate) at;
    HN_VEC(hn_candidate_report) refused;
} field;

static const char *point_name(const field *f, const hn_tactic_def *td, const int64_t *p)
{
    hn_space s = { 0 };
    hn_str text = { 0 };
    if (td->space) td->space(f->r, f->t, &s);
    hn_tactic_print(td, &s, p, &text);
    if (f->t != f->b->t) hn_str_addf(&text, "_v%d", 8 * f->t->vec_bytes);
    if (f->whole_passes) hn_str_add(&text, "_full");
    const char *name = hn_arena_strdup(f->b->a, hn_str_get(&text));
    hn_str_done(&text);
    return name;
}

static hn_fit fit_of(const field *f, const hn_tactic_def *td)
{
    const hn_fit fit = hn_tactic_knows(td, f->t->arch) ? td->fits(f->r, f->t) : HN_FIT_OP;
    if (fit != HN_FIT_YES) return fit;
    if (!hn_tactic_serves(td, f->t)) return HN_FIT_FEATURE;
    if (td->library && hn_library_missing(f->b, td->library)) return HN_FIT_LIBRARY;
    if (td->library && f->b->o->frozen && hn_knob_read_model(f->b->knobs, HN_KNOB_core_deterministic)) return HN_FIT_UNFIXED;
    return hn_pin_source(&f->pin, td);
}

static const char *why_not(const field *f, const hn_tactic_def *td, hn_fit fit)
{
    return fit == HN_FIT_LIBRARY ? hn_library_missing(f->b, td->library) : hn_fit_text(fit);
}

static hone_status refuse(field *f, const char *tactic, const char *reason, hn_diag *dg)
{
    const hn_candidate_report r = { .tactic = tactic, .reason = reason };
    return hn_vec_push(f->b->a, &f->refused, r) ? HONE_OK : HN_NOMEM(dg);
}

/* Costs are one core's time: beside measured times stands that of a grid, which has all of a GPU's. */
static double predicted_ns(const hn_target *t, double cost)
{
    return t->arch == HN_ARCH_SM ? cost / t->n_core : cost;
}

static hone_status add_points(field *f, const hn_tactic_def *td, hn_diag *dg)
{
    int64_t p[MAX_POINT][HN_MAX_PARAM];
    double ns[MAX_POINT];
    const hn_pins pins = hn_pin_params(&f->pin);
    const int n = hn_tactic_points(td, f->r, f->t, &pins, MAX_POINT, p, ns);
    if (f->pin.missed) HN_TRY(refuse(f, td->name, f->pin.missed, dg));
    for (int i = 0; i < n; i++) {
        candidate c = { .td = td, .predicted = predicted_ns(f->t, ns[i]) };
        memcpy(c.p, p[i], sizeof c.p);
        if (!hn_vec_push(f->b->a, &f->at, c)) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

static hone_status ask(field *f, bool switched_off, hn_diag *dg)
{
    for (int i = 0; i < hn_tactic_count(); i++) {
        const hn_tactic_def *td = hn_tactic_at(i);
        const hn_fit fit = fit_of(f, td);
        if (fit == (switched_off ? HN_FIT_KNOB : HN_FIT_YES)) HN_TRY(add_points(f, td, dg));
        else if (fit != HN_FIT_OP && !switched_off) HN_TRY(refuse(f, td->name, why_not(f, td, fit), dg));
    }
    return HONE_OK;
}

static bool is_first_of_its_tactic(const field *f, int i)
{
    for (int k = 0; k < i; k++)
        if (f->at.at[k].td == f->at.at[i].td) return false;
    return true;
}

/* Predictions for a GPU compare points of one tactic better than tactics: each tactic that is not hopeless sends its best point
 * ahead, so that no other crowds it out of the race. */
static void bring_forward(field *f)
{
    enum { HOPELESS = 8 };
    int n = 0;
    for (int i = 0; i < f->at.n; i++) {
        const candidate c = f->at.at[i];
        if (!is_first_of_its_tactic(f, i) || c.predicted > HOPELESS * f->at.at[0].predicted) continue;
        for (int k = i; k > n; k--) f->at.at[k] = f->at.at[k - 1];
        f->at.at[n++] = c;
    }
}

static hone_status enumerate(field *f, hn_diag *dg)
{
    HN_TRY(ask(f, /* switched_off= */ false, dg));
    if (f->at.n == 0) HN_TRY(ask(f, /* switched_off= */ true, dg)); /* nothing else does it */
    /* Insertion sort by prediction: stable, and the lists are short. */
    for (int i = 1; i < f->at.n; i++)
        for (int k = i; k > 0 && f->at.at[k].predicted < f->at.at[k - 1].predicted; k--) {
            const candidate c = f->at.at[k];
            f->at.at[k] = f->at.at[k - 1];
            f->at.at[k - 1] = c;
        }
    if (f->b->t->arch == HN_ARCH_SM) bring_forward(f);
    return HONE_OK;
}

static hone_status emit(field *f, candidate *c, hn_diag *dg)
{
    if (c->e) return HONE_OK;
    hn_emission *e = HN_NEW(f->b->a, hn_emission);
    if (!e) return HN_NOMEM(dg);
    e->arena = f->b->a;
    c->name = point_name(f, c->td, c->p);
    HN_TRY_IN(dg, hn_tactic_emit(c->td, f->r, f->t, c->p, e, dg), "emitting \"%s\" for region \"%s\" (%s)", c->name, f->r->name,
              f->r->ops);
    for (int i = 0; i < e->launches.n && f->whole_passes; i++) e->launches.at[i].func.flags |= HN_KFUNC_OPTIMISE;
    int64_t temp = 0;
    for (int i = 0; i < e->temp_bytes.n; i++) temp += hn_region_opt(f->r, e->temp_bytes.at[i]);
    if (f->b->o->workspace_bytes && temp > f->b->o->workspace_bytes) c->reason = "needs more workspace than allowed";
    c->e = e;
    return HONE_OK;
}

/* ---- timing ---- */
static hn_digest timing_key(const field *f, const candidate *c)
{
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_bytes(&h, &f->r->digest, sizeof f->r->digest);
    hn_hasher_str(&h, c->name);
    hn_hasher_i64(&h, c->td->rev);
    hn_hasher_i64(&h, f->b->t->n_core);
    const hn_digest fp = hn_target_fingerprint(f->b->t);
    hn_hasher_bytes(&h, &fp, sizeof fp);
    for (int i = 0; i < hn_sym_count(f->r->g->syms); i++)
        hn_hasher_i64(&h, hn_sym_get(f->r->g->syms, hn_sym_at(f->r->g->syms, i))->opt);
    if (f->memory != HN_HEAT_ROTATING) hn_hasher_i64(&h, f->memory);
    if (f->b->t->arch == HN_ARCH_SM) hn_hasher_i64(&h, HN_HEAT_GPU_REV);
    return hn_hasher_end(&h);
}

/* What the timing cache knows of a candidate. A failure is remembered like a time, or another build would choose otherwise. */
static void recall(field *f, candidate *c)
{
    double ns;
    if (c->reason || !hn_timing_get(f->b->timing, timing_key(f, c), &ns)) return;
    f->b->report->timings_cached++;
    c->cached = true;
    if (isfinite(ns)) c->measured = ns;
    else c->failed = true, c->reason = failed_before;
}

static bool only_calls(const field *f)
{
    for (int i = 0; i < f->at.n; i++)
        if (!f->at.at[i].td->library) return false;
    return true;
}

/* A frozen build may be made where the library is not: it trusts what was timed and nothing else, but for composites that were kept
 * because a library once took them. */
static void leave_untimed_calls(const field *f, candidate *c)
{
    if (f->b->o->frozen && c->td->library && !c->reason && c->measured <= 0 && !only_calls(f)) c->reason = "a library's call that was not timed";
}

static bool is_open(const candidate *c)
{
    return !c->reason && c->measured <= 0;
}

static hone_status race(field *f, int n, hn_diag *dg)
{
    hn_job *b = f->b;
    hn_contender *c = HN_NEW_N(b->a, hn_contender, n + 1);
    int *of = HN_NEW_N(b->a, int, n + 1), m = 0;
    if (!c || !of) return HN_NOMEM(dg);
    for (int i = 0; i < n; i++) {
        if (is_open(&f->at.at[i])) recall(f, &f->at.at[i]); /* an equal region under other names may just have been timed */
        if (!is_open(&f->at.at[i])) continue;
        of[m] = i;
        c[m++] = (hn_contender){ .e = f->at.at[i].e, .name = f->at.at[i].name };
    }
    if (m == 0) return HONE_OK;
    hn_log(HN_LOG_DEBUG, "timing %d candidates for %s (%s)", m, f->r->name, f->r->ops);
    HN_TRY(hn_measure_race(b->measure, f->r, f->memory, c, m, dg));
    for (int i = 0; i < m; i++) {
        candidate *x = &f->at.at[of[i]];
        if (c[i].failed) {
            x->failed = true;
            x->reason = c[i].reason ? c[i].reason : no_code;
            continue;
        }
        x->measured = c[i].ns;
        hn_timing_put(b->timing, timing_key(f, x), c[i].ns, x->name);
        b->report->timings_measured++;
    }
    return HONE_OK;
}

/* Once one candidate has code, the others' failures are their own and not the compiler's: they stand like times. */
static void remember_failures(field *f, int n)
{
    for (int i = 0; i < n; i++) {
        const candidate *x = &f->at.at[i];
        if (x->failed && !x->cached) hn_timing_put(f->b->timing, timing_key(f, x), HUGE_VAL, x->name);
    }
}

/* Timed ones by their times, then the others by their ranks. */
static bool is_ahead(const candidate *x, const candidate *y)
{
    if (x->measured > 0 && y->measured > 0 && x->measured != y->measured) return x->measured < y->measured;
    if ((x->measured > 0) != (y->measured > 0)) return x->measured > 0;
    return x < y;
}

/* The one at the place that is asked for, or the last of fewer; NULL: all are out. */
static candidate *best(field *f, int n)
{
    candidate *win = NULL;
    for (int place = 0; place <= f->rank; place++) {
        candidate *next = NULL;
        for (int i = 0; i < n; i++) {
            candidate *c = &f->at.at[i];
            if (!c->reason && (!win || is_ahead(win, c)) && (!next || is_ahead(c, next))) next = c;
        }
        if (!next) break;
        win = next;
    }
    return win;
}

static hone_status no_tactic(const field *f, hn_diag *dg)
{
    hn_str why = { 0 };
    for (int i = 0; i < f->refused.n; i++)
        hn_str_addf(&why, "%s%s: %s", i ? "; " : "", f->refused.at[i].tactic, f->refused.at[i].reason);
    hn_hint(dg, "%s", why.n ? hn_str_get(&why) : "no tactic knows this operation on this target");
    hn_str_done(&why);
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "no tactic takes region \"%s\" (%s)", f->r->name, f->r->ops);
}

static hone_status report(const field *f, const candidate *win, hn_choice *c, hn_diag *dg)
{
    hn_candidate_report *r = HN_NEW_N(f->b->a, hn_candidate_report, f->at.n + f->refused.n + 1);
    if (!r) return HN_NOMEM(dg);
    int n = 0;
    for (int i = 0; i < f->at.n; i++) {
        const candidate *x = &f->at.at[i];
        if (!x->name) continue; /* ranked too low to be looked at */
        r[n++] = (hn_candidate_report){ x->name, x == win ? NULL : x->reason, x->predicted, x->measured };
    }
    for (int i = 0; i < f->refused.n; i++) r[n++] = f->refused.at[i];
    c->candidate = r;
    c->n_candidate = n;
    return HONE_OK;
}

/* Prepared in two steps so that all kernels of all regions compile in parallel between them. */
typedef struct pending {
    hn_group *group;
    field f;
    int width;
    bool timed;   /* and raced where times are missing */
    bool settled; /* nothing is left to measure */
} pending;

/* What must be compiled: candidates to be timed, and the best of the others. */
static hone_status submit(pending *p, hn_diag *dg)
{
    field *f = &p->f;
    p->settled = p->width < 2 || !p->timed || !f->b->measure;
    if (!p->settled) {
        int n_open = 0;
        for (int i = 0; i < p->width; i++) n_open += is_open(&f->at.at[i]);
        p->settled = n_open == 0;
    }
    candidate *win = best(f, p->width);
    for (int i = 0; i < p->width; i++) {
        const candidate *c = &f->at.at[i];
        if (c == win || (!p->settled && is_open(c))) HN_TRY(hn_code_submit(f->b, c->e, dg));
    }
    return HONE_OK;
}

/* The paths of a region's root and its label, which its equals everywhere in the model share; NULL: out of memory. */
static const char *const *names_of(const field *f, const hn_node *n)
{
    const char **name = HN_NEW_N(f->b->a, const char *, n->n_origin + 1);
    for (int i = 0; name && i < n->n_origin; i++) name[i] = n->origin[i];
    if (name) name[n->n_origin] = label_of(f->b->a, f->r->digest);
    return name && name[n->n_origin] ? name : NULL;
}

/* How many candidates are looked at, whether they are timed and how, which one is taken, how it is launched. */
static hone_status read_race(pending *p, const hn_node *n, hn_diag *dg)
{
    field *f = &p->f;
    hn_knobs *k = f->b->knobs;
    const int64_t level = hn_knob_read_node(k, HN_KNOB_core_opt_level, n->origin, n->n_origin);
    int width = f->b->o->measure || f->b->o->frozen ? race_width(level) : 0;
    const char *const *name = names_of(f, n);
    if (!name) return HN_NOMEM(dg);
    if (f->t->feat & HN_FEAT_SM_90A) f->early = hn_knob_read_node(k, HN_KNOB_plan_early, name, n->n_origin + 1) != 0;
    if (f->at.n > 1) {
        f->rank = (int)hn_knob_read_node(k, HN_KNOB_tactic_rank, name, n->n_origin + 1);
        const int64_t asked = width > 1 ? hn_knob_read_node(k, HN_KNOB_tactic_width, name, n->n_origin + 1) : 0;
        if (asked > 0) width = (int)asked;
    }
    if (width > 1 && f->b->t->arch == HN_ARCH_SM)
        f->memory = (hn_heat_memory)hn_knob_read_node(k, HN_KNOB_tactic_operands, n->origin, n->n_origin);
    p->timed = width > 1;
    p->width = HN_MIN(HN_MAX(width, f->rank + 1), f->at.n);
    return HONE_OK;
}

static hone_status begin(hn_job *b, hn_group *group, pending *ret, hn_diag *dg)
{
    const hn_node *n = group->root;
    *ret = (pending){ .group = group, .f = { .b = b, .r = &group->region, .pin = { .b = b, .root = n } } };
    field *f = &ret->f;
    f->t = hn_pin_target(&f->pin);
    HN_TRY(enumerate(f, dg));
    if (f->at.n == 0) return no_tactic(f, dg);
    const bool llvm = b->t->arch != HN_ARCH_SM;
    f->whole_passes = llvm && hn_knob_read_node(b->knobs, HN_KNOB_code_passes, n->origin, n->n_origin) != 0;
    HN_TRY(read_race(ret, n, dg));
    for (int i = 0; i < ret->width; i++) {
        HN_TRY(emit(f, &f->at.at[i], dg));
        if (ret->timed && ret->width > 1) recall(f, &f->at.at[i]);
        leave_untimed_calls(f, &f->at.at[i]);
    }
    return submit(ret, dg);
}

static hone_status compile_all(hn_job *b, const hn_emission *e, hn_diag *dg)
{
    const hn_code *code;
    for (int i = 0; i < e->launches.n; i++) HN_TRY(hn_code_get(b, &e->launches.at[i], &code, dg));
    return HONE_OK;
}

/* Nothing is left: say why a kernel did not compile, or what became of it when it ran, where that is what happened. */
static hone_status none_works(const field *f, int n, hn_diag *dg)
{
    for (int i = 0; i < n; i++) {
        const candidate *c = &f->at.at[i];
        if (!c->failed) continue;
        HN_TRY(compile_all(f->b, c->e, dg));
        return HN_RAISE(dg, HONE_E_CRASH, "no candidate for region \"%s\" (%s) works: \"%s\" %s", f->r->name, f->r->ops, c->name, c->reason);
    }
    return no_tactic(f, dg);
}

/* Kernels that a compiler dies of cost their candidate alone; the ranking goes on below the width when it must. */
static hone_status pick(pending *p, candidate **ret, hn_diag *dg)
{
    field *f = &p->f;
    for (;;) {
        hn_diag why = { 0 };
        candidate *win = best(f, p->width);
        if (!win && p->width == f->at.n) return none_works(f, p->width, dg);
        if (!win) {
            candidate *next = &f->at.at[p->width++];
            HN_TRY(emit(f, next, dg));
            if (p->timed) recall(f, next);
            leave_untimed_calls(f, next);
            continue;
        }
        const hone_status s = compile_all(f->b, win->e, &why);
        if (s == HONE_OK) {
            *ret = win;
            return HONE_OK;
        }
        if (s != HONE_E_CRASH && s != HONE_E_TIMEOUT && s != HONE_E_UNSUPPORTED) {
            *dg = why;
            return s;
        }
        win->failed = true;
        win->reason = no_code;
    }
}

static hone_status finish(hn_job *b, pending *p, hn_choice **ret, hn_diag *dg)
{
    field *f = &p->f;
    candidate *win = NULL;
    if (!p->settled) HN_TRY(race(f, p->width, dg));
    HN_TRY(pick(p, &win, dg));
    remember_failures(f, p->width);
    hn_choice *c = HN_NEW(b->a, hn_choice);
    if (!c) return HN_NOMEM(dg);
    *c = (hn_choice){ .syms = f->r->g->syms, .t = f->t, .tactic = win->td, .name = win->name, .emission = win->e,
                      .ns = win->measured > 0 ? win->measured : win->predicted, .measured = win->measured > 0,
                      .cached = win->cached, .early = f->early };
    memcpy(c->p, win->p, sizeof c->p);
    HN_TRY(report(f, win, c, dg));
    *ret = c;
    hn_log(HN_LOG_VERBOSE, "%s (%s): %s, %.1f us %s", f->r->name, f->r->ops, c->name, c->ns / 1000,
           c->measured ? "measured" : "predicted");
    return HONE_OK;
}

/* ---- all regions ---- */
typedef struct chooser {
    hn_job *b;
    HN_VEC(hn_group *) groups;  /* every region */
    HN_VEC(pending) work;       /* one a distinct region */
} chooser;

static int find_work(const chooser *c, hn_digest key)
{
    for (int i = 0; i < c->work.n; i++)
        if (hn_digest_eq(c->work.at[i].group->key, key)) return i;
    return -1;
}

/* A fused region that nothing takes falls apart into its nodes. */
static hone_status split(hn_job *b, hn_graph *g, hn_groups *gs, int at, hn_diag *dg)
{
    hn_group *group = gs->all.at[at];
    hn_groups next = { 0 };
    for (int i = 0; i < gs->all.n; i++) {
        if (i != at) {
            if (!hn_vec_push(b->a, &next.all, gs->all.at[i])) return HN_NOMEM(dg);
            continue;
        }
        for (int k = 0; k < group->nodes.n; k++) {
            hn_group *one = HN_NEW(b->a, hn_group);
            if (!one) return HN_NOMEM(dg);
            hn_dim offset;
            one->root = group->nodes.at[k];
            one->kind = hn_group_alias_offset(b, g, one->root, &offset) ? HN_GROUP_ALIAS : HN_GROUP_REGION;
            hn_vec_push(b->a, &one->nodes, one->root);
            if (!hn_vec_push(b->a, &next.all, one)) return HN_NOMEM(dg);
        }
    }
    *gs = next;
    return HONE_OK;
}

static hone_status take_group(chooser *c, hn_graph *g, hn_groups *gs, int at, bool *ret_split, hn_diag *dg)
{
    hn_group *group = gs->all.at[at];
    *ret_split = false;
    if (group->kind != HN_GROUP_REGION) return HONE_OK;
    HN_TRY(hn_region_form(c->b, g, group, dg));
    if (find_work(c, group->key) < 0) {
        pending p;
        hn_diag why = { 0 };
        const hone_status s = begin(c->b, group, &p, &why);
        if (s == HONE_E_UNSUPPORTED && group->nodes.n > 1) {
            *ret_split = true;
            return split(c->b, g, gs, at, dg);
        }
        if (s != HONE_OK) {
            *dg = why;
            return s;
        }
        if (!hn_vec_push(c->b->a, &c->work, p)) return HN_NOMEM(dg);
    }
    return hn_vec_push(c->b->a, &c->groups, group) ? HONE_OK : HN_NOMEM(dg);
}

static hone_status take_graph(chooser *c, hn_graph *g, hn_diag *dg)
{
    hn_graph_groups *gg = HN_NEW(c->b->a, hn_graph_groups);
    if (!gg || !hn_vec_push(c->b->a, &c->b->formed, gg)) return HN_NOMEM(dg);
    gg->g = g;
    HN_TRY(hn_group_form(c->b, g, &gg->groups, dg));
    for (int i = 0; i < gg->groups.all.n; i++) {
        bool again;
        do HN_TRY(take_group(c, g, &gg->groups, i, &again, dg));
        while (again);
    }
    HN_FOR_NODES (n, g)
        for (int i = 0; i < n->n_body; i++) HN_TRY(take_graph(c, n->body[i], dg));
    return HONE_OK;
}

static hone_status report_region(hn_job *b, const hn_group *group, hn_diag *dg)
{
    hn_work w;
    hn_region_work(&group->region, &w);
    const hn_choice *c = group->choice;
    const hn_region_report r = { .name = group->region.name, .label = label_of(b->a, group->region.digest), .ops = group->region.ops, .tactic = c->name, .ns = c->ns,
                                 .measured = c->measured, .cached = c->cached, .flops = w.flops, .bytes = w.bytes,
                                 .digest = group->region.digest, .candidate = c->candidate, .n_candidate = c->n_candidate };
    return hn_vec_push(b->a, &b->regions, r) ? HONE_OK : HN_NOMEM(dg);
}

hone_status hn_choose_all(hn_job *b, hn_diag *dg)
{
    chooser c = { .b = b };
    HN_TRY(take_graph(&c, b->g, dg));
    if (!hn_build_step(b, "compile", 0, c.work.n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
    HN_TRY(hn_code_collect(b, dg));
    hn_choice **choice = HN_NEW_N(b->a, hn_choice *, c.work.n + 1);
    if (!choice) return HN_NOMEM(dg);
    for (int i = 0; i < c.work.n; i++) {
        if (!hn_build_step(b, "choose", i, c.work.n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        HN_TRY(finish(b, &c.work.at[i], &choice[i], dg));
    }
    for (int i = 0; i < c.groups.n; i++) {
        c.groups.at[i]->choice = choice[find_work(&c, c.groups.at[i]->key)];
        HN_TRY(report_region(b, c.groups.at[i], dg));
    }
    return HONE_OK;
}
