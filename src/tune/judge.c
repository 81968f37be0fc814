/* Accuracy: the outputs of an engine against the references, under every bound that was stated. */
#include "tune/tune_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double ATOL = 1e-5, RTOL = 1e-5; /* of l0, as trtexec has them */

static const char *output_name(const hn_tuner *t, int i)
{
    return t->g->out_name && t->g->out_name[i] ? t->g->out_name[i] : t->g->out[i].value->name;
}

static int find_output(const hn_tuner *t, const char *name)
{
    for (int i = 0; i < t->g->n_out; i++)
        if (strcmp(output_name(t, i), name) == 0) return i;
    return -1;
}

hone_status hn_judge_check_bounds(const hn_tuner *t, hn_diag *dg)
{
    for (int i = 0; i < t->o->n_bound; i++) {
        const char *name = t->o->bound[i].output;
        if (!name || find_output(t, name) >= 0) continue;
        hn_str all = { 0 };
        for (int k = 0; k < t->g->n_out; k++) hn_str_addf(&all, "%s%s", k ? ", " : "", output_name(t, k));
        hn_hint(dg, "Outputs: %.400s.", hn_str_get(&all));
        hn_str_done(&all);
        return HN_RAISE(dg, HONE_E_INVALID, "a bound names output \"%s\", which the model does not have", name);
    }
    return HONE_OK;
}

static bool names(const hn_bound *b, const char *output)
{
    return b->output && strcmp(b->output, output) == 0;
}

/* A bound that names the output goes before a general one of the same norm. General ones leave whole numbers alone. */
static bool applies(const hn_tuner *t, const hn_bound *b, const char *output, bool whole)
{
    if (b->output) return names(b, output);
    for (int i = 0; i < t->o->n_bound; i++)
        if (t->o->bound[i].norm == b->norm && names(&t->o->bound[i], output)) return false;
    return !whole;
}

static const char *broken(hn_tuner *t, const char *output, hn_norm norm, double value, double limit)
{
    return hn_arena_printf(t->a, "output \"%s\": %s is %.3g, at %s %.3g was asked", output, hn_norm_name(norm), value,
                           hn_norm_is_least(norm) ? "least" : "most", limit);
}

static const char *judge_metric(hn_tuner *t, int i, const hn_metric *m, bool whole)
{
    const char *name = output_name(t, i);
    bool covered = false;
    if (m->n_nonfinite)
        return hn_arena_printf(t->a, "output \"%s\": %lld elements differ in NaN or infinity, the first at %lld", name,
                               (long long)m->n_nonfinite, (long long)m->worst);
    for (int k = 0; k < t->o->n_bound; k++) {
        const hn_bound *b = &t->o->bound[k];
        if (!applies(t, b, name, whole)) continue;
        covered = true;
        const double v = hn_norm_of(m, b->norm);
        if (!hn_norm_keeps(b->norm, v, b->limit)) return broken(t, name, b->norm, v, b->limit);
    }
    if (covered) return NULL;
    if (whole && m->linf != 0)
        return hn_arena_printf(t->a, "output \"%s\": whole numbers differ, by %.3g at element %lld", name, m->linf,
                               (long long)m->worst);
    const bool judged = !whole && t->r->bound > 0;
    return judged && !(m->rel_l2 <= t->r->bound) ? broken(t, name, HN_NORM_REL_L2, m->rel_l2, t->r->bound) : NULL;
}

static bool npy_body(const hn_bytes *file, hn_tensor *x)
{
    if (file->n < 10) return false;
    const size_t head = 10 + file->at[8] + ((size_t)file->at[9] << 8);
    if (head > file->n || file->n - head != x->bytes) return false;
    x->data = (void *)(uintptr_t)(file->at + head);
    return true;
}

static hone_status judge_output(hn_tuner *t, int i, const char *dir, hn_trial *trial, const char **why, hn_diag *dg)
{
    const char *path = hn_arena_printf(t->a, "%s/output_%d.npy", dir, t->g->n_in + i);
    hn_bytes file = { 0 };
    hn_metric m = { 0 };
    hn_tensor got = { .kind = t->want[i].kind, .type = t->want[i].type };
    got.type.dtype = t->g->out[i].value->type.dtype;
    got.bytes = (size_t)hn_dtype_bytes(got.type.dtype, hn_tensor_numel(&got));
    if (!path) return HN_NOMEM(dg);
    HN_TRY(hn_map_file(path, &file, dg));
    const bool whole = !hn_dtype_is_float(got.type.dtype), fits = npy_body(&file, &got);
    const hn_tensor *own = t->own[i].data ? &t->own[i] : NULL;
    const hone_status s = fits ? hn_metric_compare(&got, &t->want[i], own, ATOL, RTOL, &m, dg) : HONE_OK;
    hn_unmap(&file);
    HN_TRY(s);
    const char *bad = fits ? judge_metric(t, i, &m, whole)
                           : hn_arena_printf(t->a, "output \"%s\" has another size than promised", output_name(t, i));
    if (bad && !*why) *why = bad;
    const bool lost = !fits || m.n_nonfinite || isnan(m.rel_l2) || (whole && m.linf != 0);
    trial->err = fmax(trial->err, lost ? HUGE_VAL : m.rel_l2);
    return HONE_OK;
}

/* Which file holds which output: {"logits": "output_1.npy"}. */
static hone_status write_names(hn_tuner *t, const char *dir, hn_diag *dg)
{
    hn_str s = { 0 };
    hn_json j;
    hn_json_init(&j, &s, false);
    hn_json_object(&j);
    for (int i = 0; i < t->g->n_out; i++) {
        char file[32];
        snprintf(file, sizeof file, "output_%d.npy", t->g->n_in + i);
        hn_json_key(&j, output_name(t, i));
        hn_json_str(&j, file);
    }
    hn_json_object_end(&j);
    const char *path = hn_arena_printf(t->a, "%s/outputs.json", dir);
    const hone_status r = s.oom || !path ? HN_NOMEM(dg) : hn_write_file_atomic(path, s.s, s.n, dg);
    hn_str_done(&s);
    return r;
}

static hone_status ask_command(hn_tuner *t, const char *dir, const char **why, hn_diag *dg)
{
    double v;
    char how[64] = "";
    HN_TRY(write_names(t, dir, dg));
    HN_TRY_IN(dg, hn_drive_judge(t, dir, &v, how, dg), "the command that judges outputs");
    if (isnan(v))
        *why = hn_arena_printf(t->a, "the command that judges outputs gave no number (%s)", how);
    else if (!(v <= t->o->judge_limit))
        *why = hn_arena_printf(t->a, "the command that judges outputs says %.6g, at most %.6g was asked", v, t->o->judge_limit);
    return HONE_OK;
}

hone_status hn_judge(hn_tuner *t, const char *engine, hn_trial *trial, const char **ret_why, char how[64], hn_diag *dg)
{
    hn_runner own = { 0 }, *r = t->o->standing ? &t->standing[1] : &own;
    const char *dir = hn_arena_printf(t->a, "%s/out", t->dir);
    *ret_why = NULL;
    if (!dir) return HN_NOMEM(dg);
    hone_status s = hn_runner_load(t, engine, r, dg);
    if (s == HONE_OK) s = hn_runner_loaded(t, r, dg);
    if (s == HONE_OK) s = hn_runner_outputs(t, r, dir, dg);
    if (s != HONE_OK || !t->o->standing) hn_runner_stop(r);
    memcpy(how, r->how, sizeof r->how);
    HN_TRY(s);
    trial->err = 0;
    for (int i = 0; i < t->g->n_out; i++) HN_TRY(judge_output(t, i, dir, trial, ret_why, dg));
    return t->o->judge && !*ret_why ? ask_command(t, dir, ret_why, dg) : HONE_OK;
}
