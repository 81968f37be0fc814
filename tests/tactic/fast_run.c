#include "fast_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/os.h"
#include "codegen/codegen.h"
#include "eval/eval.h"
#include "gpu_run.h"

enum { GUARD = 256, MAX_POINTS = 512, MAX_BUF = 24, N_TARGET = 2 };

#ifdef HAVE_LLVM
static const hn_codegen *const cpu_codegen = &hn_codegen_llvm;
#else
static const hn_codegen *const cpu_codegen = NULL;
#endif

/* ---- targets ---- */
static int targets(hn_target *ret)
{
    static const struct {
        const char *mask;
        uint64_t need;
    } kind[N_TARGET] = { { "avx512", HN_FEAT_AVX512 }, { "avx2", HN_FEAT_AVX2 | HN_FEAT_FMA } };
    int n = 0;
    for (int i = 0; i < N_TARGET && cpu_codegen && !gpu_is_wanted(); i++) {
        hn_target t;
        hn_target_detect(&t, false);
        if (!hn_target_has(&t, kind[i].need)) continue;
        if (i == 1) {
            t.feat &=
                ~(uint64_t)(HN_FEAT_AVX512 | HN_FEAT_AVX512_VNNI | HN_FEAT_AVX512_BF16 | HN_FEAT_AVX512_FP16 |
                            HN_FEAT_AMX_TILE | HN_FEAT_AMX_INT8 | HN_FEAT_AMX_BF16 | HN_FEAT_AVX_VNNI);
            t.vec_bytes = 32;
            t.n_vreg = 16;
        }
        if (t.peak_gflops <= 0) t.peak_gflops = 100;
        if (t.bandwidth_gbs <= 0) t.bandwidth_gbs = 10;
        t.n_core = 2;
        ret[n++] = t;
    }
    return n;
}

static void need_cpu(void)
{
    if (!cpu_codegen) SKIP("built without LLVM");
    if (gpu_is_wanted()) SKIP("for processors alone");
}

/* ---- the region of a case ---- */
typedef struct fixture {
    hn_graph *g;
    hn_region r;
    hn_data **data;
    hn_tensor in[MAX_BUF], want[MAX_BUF];
    int64_t sym[32];
} fixture;

static bool listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, " "), p += *p == ' ')
        if (strncmp(p, name, n) == 0 && (p[n] == ' ' || p[n] == 0)) return true;
    return false;
}

static void give_layout(const fast_case *c, hn_value *v, bool constant)
{
    hn_layout l;
    if (!c->layout || constant || listed(c->plain, v->name)) return;
    CHECK(hn_layout_parse(c->layout, strlen(c->layout), &l));
    int rank = 0;
    for (int i = 0; i < l.n; i++)
        rank = HN_MAX(rank, l.at[i].axis + 1);
    if (rank == v->type.rank) v->layout = l;
}

static hn_tdesc concrete(const fixture *f, const hn_tdesc *d)
{
    hn_tdesc r = *d;
    for (int a = 0; a < r.rank; a++)
        if (!hn_dim_is_const(r.dim[a])) CHECK(hn_dim_eval(f->g->syms, d->dim[a], f->sym, &r.dim[a]));
    return r;
}

static void fill(hn_tensor *x, hn_rng *rng, bool small)
{
    for (int64_t i = 0; i < hn_tensor_numel(x); i++) {
        if (hn_dtype_is_float(x->type.dtype)) {
            const double v = hn_rng_normal(rng);
            hn_narrow_f64(x->type.dtype, &v, 1, x->data, i, true);
        } else {
            const int64_t most = x->type.dtype == HN_BOOL ? 2 : small ? 4 : INT64_C(1) << 44, v = (int64_t)hn_rng_below(rng, (uint64_t)most);
            hn_narrow_i64(x->type.dtype, &v, 1, x->data, i);
        }
    }
}

static void make(hn_test *t, fixture *f, const fast_case *c, bool evaluate)
{
    hn_diag dg = { 0 };
    hn_rng rng;
    memset(f, 0, sizeof *f);
    hn_rng_init(&rng, 11);
    hn_test_note("case %.300s", c->text);
    CHECK_OK(hn_parse(t->arena, c->text, &f->g, &dg), &dg);
    for (int i = 0; i < hn_sym_count(f->g->syms); i++)
        f->sym[i] = c->sym ? c->sym : hn_sym_get(f->g->syms, hn_sym_at(f->g->syms, i))->opt;
    f->data = HN_NEW_N(t->arena, hn_data *, f->g->n_in + 1);
    for (int i = 0; i < f->g->n_in; i++) {
        hn_value *v = f->g->in[i];
        const bool constant = v->name[0] == 'w' || v->name[0] == 'b';
        const hn_tdesc d = concrete(f, &v->type);
        CHECK_OK(hn_tensor_init(&f->in[i], &d, &dg), &dg);
        fill(&f->in[i], &rng, v->name[0] == 'i');
        f->data[i] = NULL;
        if (constant) {
            f->data[i] = HN_NEW(t->arena, hn_data);
            *f->data[i] = (hn_data){ .at = f->in[i].data, .bytes = f->in[i].bytes };
        }
        give_layout(c, v, constant);
    }
    if (evaluate)
        CHECK_OK(hn_eval_run(f->g, &(hn_eval_opts){ .mode = HN_EVAL_F64 }, f->in, f->want, &dg), &dg);
    hn_node *root = NULL;
    HN_FOR_NODES (n, f->g) {
        for (int i = 0; i < n->n_out; i++)
            give_layout(c, n->out[i], false);
        if (strcmp(hn_op_of(n)->name, c->root) == 0) root = n;
    }
    CHECK(root != NULL);
    hn_region_init(&f->r, f->g, root, f->data, "case");
}

/* ---- storage ---- */
/* Offset in elements of a row-major index under a layout. */
static int64_t offset_of(const hn_layout *l, const hn_tdesc *d, int64_t flat)
{
    int64_t at[HN_MAX_RANK], block[HN_MAX_RANK] = { 0 }, off = 0;
    if (l->n == 0) return flat;
    for (int a = d->rank - 1; a >= 0; a--) {
        at[a] = flat % d->dim[a];
        flat /= d->dim[a];
    }
    for (int i = 0; i < l->n; i++)
        if (l->at[i].block) block[(int)l->at[i].axis] = l->at[i].block;
    for (int i = 0; i < l->n; i++) {
        const int a = l->at[i].axis;
        const int64_t b = block[a], extent = l->at[i].block ? b : b ? (d->dim[a] + b - 1) / b : d->dim[a];
        off = off * extent + (l->at[i].block ? at[a] % b : b ? at[a] / b : at[a]);
    }
    return off;
}

static int64_t stored_elems(const fixture *f, const hn_value *v)
{
    hn_tdesc d = concrete(f, &v->type), s;
    int64_t n = 1;
    hn_layout_dims(f->g->syms, &v->layout, &d, &s);
    for (int a = 0; a < s.rank; a++)
        n *= s.dim[a];
    return n;
}

typedef struct buffers {
    uint8_t *in[MAX_BUF], *out[MAX_BUF], *temp[MAX_BUF], *blob[MAX_BUF];
    int64_t in_bytes[MAX_BUF], out_bytes[MAX_BUF], temp_bytes[MAX_BUF];
    uint8_t *fault; /* of all launches: no index is out of range here */
} buffers;

static uint8_t *guarded(hn_test *t, int64_t bytes, int fill_byte)
{
    uint8_t *p = hn_arena_alloc_aligned(t->arena, (size_t)bytes + 2 * GUARD, 64);
    CHECK(p != NULL);
    memset(p, 0xA7, (size_t)bytes + 2 * GUARD);
    memset(p + GUARD, fill_byte, (size_t)bytes);
    return p + GUARD;
}

static void check_guard(const uint8_t *p, int64_t bytes)
{
    for (int i = 0; i < GUARD; i++) {
        if (p[-1 - i] != 0xA7) FAIL("wrote %d bytes before a buffer", i + 1);
        if (p[bytes + i] != 0xA7) FAIL("wrote %d bytes past a buffer", i + 1);
    }
}

static void make_buffers(hn_test *t, const fixture *f, const hn_tactic_def *td, const hn_target *tg,
                         const int64_t *p, const hn_emission *e, buffers *b)
{
    hn_diag dg = { 0 };
    for (int i = 0; i < f->g->n_in; i++) {
        const hn_value *v = f->g->in[i];
        const hn_tdesc d = concrete(f, &v->type);
        const int64_t size = hn_dtype_bits(v->type.dtype) / 8, n = hn_tensor_numel(&f->in[i]);
        b->in_bytes[i] = stored_elems(f, v) * size;
        b->in[i] = guarded(t, b->in_bytes[i], 0);
        for (int64_t k = 0; k < n; k++)
            memcpy(b->in[i] + offset_of(&v->layout, &d, k) * size, (uint8_t *)f->in[i].data + k * size,
                   (size_t)size);
    }
    for (int i = 0; i < f->g->n_out; i++) {
        const hn_value *v = f->g->out[i].value;
        b->out_bytes[i] = stored_elems(f, v) * hn_dtype_bits(v->type.dtype) / 8;
        b->out[i] = guarded(t, b->out_bytes[i], 0xFF);
    }
    for (int i = 0; i < e->temp_bytes.n; i++) {
        CHECK(hn_dim_is_const(e->temp_bytes.at[i]) ||
              hn_dim_eval(f->g->syms, e->temp_bytes.at[i], f->sym, &b->temp_bytes[i]));
        if (hn_dim_is_const(e->temp_bytes.at[i])) b->temp_bytes[i] = e->temp_bytes.at[i];
        b->temp[i] = guarded(t, b->temp_bytes[i], 0xFF);
    }
    b->fault = guarded(t, HN_FAULT_BYTES, 0);
    for (int i = 0; i < e->blobs.n; i++) {
        b->blob[i] = guarded(t, (int64_t)e->blobs.at[i].bytes, 0xFF);
        CHECK_OK(td->pack(&f->r, tg, p, i, b->blob[i], &dg), &dg);
        check_guard(b->blob[i], (int64_t)e->blobs.at[i].bytes);
    }
}

static void *buffer(const buffers *b, hn_ref ref)
{
    switch (ref.kind) {
    case HN_REF_IN:
        return b->in[ref.index];
    case HN_REF_OUT:
        return b->out[ref.index];
    case HN_REF_TEMP:
        return b->temp[ref.index];
    case HN_REF_FAULT:
        return b->fault;
    default:
        return b->blob[ref.index];
    }
}

/* ---- compiled launches ---- */
typedef void (*kernel_fn)(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch);

typedef struct compiled {
    kernel_fn fn[4];
    const hn_kcall *call[4];
    void *map[4];
    size_t map_bytes[4];
    int64_t arg[4][32], extent[4], scratch_bytes[4];
    void *buf[4][MAX_BUF];
    void *scratch[4];
    int n, n_stack_ref;
} compiled;

static void compile(hn_test *t, const fixture *f, const hn_target *tg, const hn_emission *e, const buffers *b,
                    compiled *c)
{
    hn_diag dg = { 0 };
    memset(c, 0, sizeof *c);
    CHECK(e->launches.n <= 4);
    for (int i = 0; i < e->launches.n; i++) {
        const hn_kcall *k = &e->launches.at[i];
        hn_code code;
        CHECK_OK(cpu_codegen->compile(&k->func, tg, t->arena, &code, &dg), &dg);
        c->n_stack_ref += code.n_stack_ref;
        c->map_bytes[i] = (code.n + 4095) / 4096 * 4096;
        c->map[i] = mmap(NULL, c->map_bytes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(c->map[i] != MAP_FAILED);
        memcpy(c->map[i], code.at, code.n);
        CHECK(mprotect(c->map[i], c->map_bytes[i], PROT_READ | PROT_EXEC) == 0);
        const uintptr_t entry = (uintptr_t)c->map[i] + code.entry;
        memcpy(&c->fn[i], &entry, sizeof entry);
        c->call[i] = k;
        for (int a = 0; a < k->func.n_arg; a++) {
            CHECK(a < 32);
            if (hn_dim_is_const(k->arg[a]))
                c->arg[i][a] = k->arg[a];
            else
                CHECK(hn_dim_eval(f->g->syms, k->arg[a], f->sym, &c->arg[i][a]));
        }
        for (int a = 0; a < hn_kfunc_n_params(&k->func); a++)
            c->buf[i][a] = buffer(b, k->buf[a]);
        c->extent[i] = hn_kfunc_parallel(&k->func, c->arg[i]);
        c->scratch_bytes[i] = hn_kfunc_scratch_bytes(&k->func, c->arg[i]);
        if (c->scratch_bytes[i]) c->scratch[i] = guarded(t, c->scratch_bytes[i], 0xFF);
    }
    c->n = e->launches.n;
}

static void call(const compiled *c, int i, int64_t lo, int64_t hi)
{
    if (lo < hi) c->fn[i](c->buf[i], c->arg[i], lo, hi, c->scratch[i]);
}

static void unmake(fixture *f)
{
    for (int i = 0; i < MAX_BUF; i++) {
        hn_tensor_done(&f->in[i]);
        hn_tensor_done(&f->want[i]);
    }
}

static void done(compiled *c)
{
    for (int i = 0; i < c->n; i++)
        munmap(c->map[i], c->map_bytes[i]);
}

/* Parts of the range in an order of their own, as threads would take them. */
static void run_parts(const compiled *c)
{
    for (int i = 0; i < c->n; i++) {
        const int64_t n = c->extent[i], cut = n / 3;
        call(c, i, cut, n);
        if (c->scratch_bytes[i]) memset(c->scratch[i], 0xFF, (size_t)c->scratch_bytes[i]);
        call(c, i, 0, cut);
        if (c->scratch_bytes[i]) check_guard(c->scratch[i], c->scratch_bytes[i]);
    }
}

static void check_no_fault(const buffers *b)
{
    for (int i = 0; i < HN_FAULT_BYTES; i++)
        CHECK_EQ(b->fault[i], 0);
    check_guard(b->fault, HN_FAULT_BYTES);
}

static void compare(const fixture *f, const buffers *b, int i, double tol, const char *name)
{
    const hn_value *v = f->g->out[i].value;
    const hn_tdesc d = concrete(f, &v->type);
    const int64_t n = hn_tensor_numel(&f->want[i]), size = hn_dtype_bits(v->type.dtype) / 8;
    double err = 0, all = 0, *want = malloc((size_t)(n + 1) * sizeof *want);
    hn_tensor_to_f64(&f->want[i], want);
    for (int64_t k = 0; k < n; k++) {
        double got;
        const uint8_t *at = b->out[i] + offset_of(&v->layout, &d, k) * size;
        if (hn_dtype_is_float(v->type.dtype)) {
            hn_widen_f64(v->type.dtype, at, 0, 1, &got);
        } else {
            int64_t x;
            hn_widen_i64(v->type.dtype, at, 0, 1, &x);
            got = (double)x;
        }
        if (!(got - want[k] == got - want[k]))
            FAIL("%s: element %lld of output %d is not a number", name, (long long)k, i);
        err += (got - want[k]) * (got - want[k]);
        all += want[k] * want[k];
    }
    free(want);
    if (err > tol * tol * all)
        FAIL("%s: output %d is off by %.3g, relative L2", name, i, __builtin_sqrt(err / (all > 0 ? all : 1)));
    check_guard(b->out[i], b->out_bytes[i]);
}

typedef struct points {
    int n;
    int64_t p[MAX_POINTS][HN_MAX_PARAM];
    double ns[MAX_POINTS];
} points;

static const char *name_of(hn_test *t, const hn_tactic_def *td, const fixture *f, const hn_target *tg,
                           const int64_t *p)
{
    hn_space s = { 0 };
    hn_str text = { 0 };
    if (td->space) td->space(&f->r, tg, &s);
    hn_tactic_print(td, &s, p, &text);
    const char *name = hn_arena_printf(t->arena, "%s on %d-byte vectors", hn_str_get(&text), tg->vec_bytes);
    hn_str_done(&text);
    return name;
}

static void check_point(hn_test *t, const fixture *f, const fast_case *c, const hn_tactic_def *td,
                        const hn_target *tg, const int64_t *p)
{
    hn_diag dg = { 0 };
    hn_emission e = { .arena = t->arena };
    buffers b;
    compiled k;
    const char *name = name_of(t, td, f, tg, p);
    memset(&b, 0, sizeof b);
    hn_test_note("%s, case %.300s", name, c->text);
    CHECK_OK(hn_tactic_emit(td, &f->r, tg, p, &e, &dg), &dg);
    make_buffers(t, f, td, tg, p, &e, &b);
    compile(t, f, tg, &e, &b, &k);
    run_parts(&k);
    for (int i = 0; i < f->g->n_out; i++)
        compare(f, &b, i, c->tol > 0 ? c->tol : 2e-6, name);
    for (int i = 0; i < e.temp_bytes.n; i++)
        check_guard(b.temp[i], b.temp_bytes[i]);
    check_no_fault(&b);
    done(&k);
}

/* ---- what only a route asks for ---- */
typedef struct asked {
    hn_knob knob;
    int64_t value;
} asked;

static bool get_asked(void *user, hn_knob k, int64_t *ret)
{
    const asked *a = user;
    *ret = a->value;
    return k == a->knob;
}

static void not_met(void *user, hn_knob k, int64_t value)
{
    (void)user;
    (void)k;
    (void)value;
}

/* One value of each settled parameter beside its own; which one differs from case to case. */
static void check_settled(hn_test *t, const fixture *f, const fast_case *c, const hn_tactic_def *td, const hn_target *tg)
{
    hn_space s = { 0 };
    if (td->space) td->space(&f->r, tg, &s);
    for (int i = 0; i < s.n; i++) {
        if (!s.at[i].settled || s.at[i].n < 2) continue;
        asked a = { td->pin[i], s.at[i].value[1 + (int)strlen(c->text) % (s.at[i].n - 1)] };
        const hn_pins pins = { &a, get_asked, not_met };
        int64_t p[1][HN_MAX_PARAM];
        double ns;
        if (hn_tactic_points(td, &f->r, tg, &pins, 1, p, &ns)) check_point(t, f, c, td, tg, p[0]);
    }
}

void fast_check(hn_test *t, const fast_case *c, const char *tactic)
{
    need_cpu();
    hn_target tg[N_TARGET];
    const int n = targets(tg);
    const hn_tactic_def *td = hn_tactic_find(tactic);
    points *q = malloc(sizeof *q);
    fixture f;
    CHECK(td && q);
    make(t, &f, c, true);
    for (int i = 0; i < n; i++) {
        if (!hn_target_has(&tg[i], td->needs)) continue;
        const hn_fit fit = td->fits(&f.r, &tg[i]);
        if (fit != HN_FIT_YES) FAIL("%s does not fit: %s", tactic, hn_fit_text(fit));
        q->n = hn_tactic_points(td, &f.r, &tg[i], /* pins= */ NULL, MAX_POINTS, q->p, q->ns);
        if (!q->n) FAIL("%s has no point on %d-byte vectors", tactic, tg[i].vec_bytes);
        const int tries = HN_MIN(q->n, c->n_point ? c->n_point : 8);
        for (int k = 0; k < tries; k++)
            check_point(t, &f, c, td, &tg[i], q->p[tries > 1 ? k * (q->n - 1) / (tries - 1) : 0]);
        check_settled(t, &f, c, td, &tg[i]);
    }
    free(q);
    unmake(&f);
}

/* ---- every tactic ---- */
static int64_t buffer_bytes(const buffers *b, const hn_emission *e, hn_ref ref)
{
    switch (ref.kind) {
    case HN_REF_IN: return b->in_bytes[ref.index];
    case HN_REF_OUT: return b->out_bytes[ref.index];
    case HN_REF_TEMP: return b->temp_bytes[ref.index];
    case HN_REF_FAULT: return HN_FAULT_BYTES;
    default: return (int64_t)e->blobs.at[ref.index].bytes;
    }
}

/* All launches in order: interpreted, or on the GPU. */
static void run_launches(const fixture *f, const hn_target *tg, const hn_emission *e, const buffers *b)
{
    hn_diag dg = { 0 };
    for (int i = 0; i < f->g->n_out; i++)
        memset(b->out[i], 0xFF, (size_t)b->out_bytes[i]);
    for (int i = 0; i < e->launches.n; i++) {
        const hn_kcall *k = &e->launches.at[i];
        hn_kmem mem[MAX_BUF];
        int64_t arg[32];
        for (int a = 0; a < hn_kfunc_n_params(&k->func); a++)
            mem[a] = (hn_kmem){ buffer(b, k->buf[a]), buffer_bytes(b, e, k->buf[a]) };
        for (int a = 0; a < k->func.n_arg; a++) {
            arg[a] = k->arg[a];
            if (!hn_dim_is_const(k->arg[a])) CHECK(hn_dim_eval(f->g->syms, k->arg[a], f->sym, &arg[a]));
        }
        if (gpu_is_wanted()) gpu_call(&k->func, tg, mem, arg);
        else CHECK_OK(hn_kfunc_run(&k->func, mem, arg, 0, hn_kfunc_parallel(&k->func, arg), 0, &dg), &dg);
    }
}

/* A route can leave matrix units alone: a tactic that uses them names the knob that switches it off. */
static void check_source(const hn_tactic_def *td, const hn_emission *e)
{
    for (int i = 0; i < e->launches.n; i++) {
        const hn_kfunc *f = &e->launches.at[i].func;
        for (int k = 0; k < f->n_ins; k++)
            if (f->ins[k].op == HN_KOP_MMA && !td->source) FAIL("%s uses matrix units and has no source", td->name);
    }
}

/* A gpu's programs have the interpreter, or a GPU. */
static void check_point_twice(hn_test *t, const fixture *f, const fast_case *c, const hn_tactic_def *td,
                              const hn_target *tg, const int64_t *p)
{
    hn_diag dg = { 0 };
    hn_emission e = { .arena = t->arena };
    buffers b;
    memset(&b, 0, sizeof b);
    if (tg->arch != HN_ARCH_SM) check_point(t, f, c, td, tg, p);
    const char *name = hn_arena_printf(t->arena, "%s, %s", name_of(t, td, f, tg, p), gpu_is_wanted() ? "run" : "interpreted");
    hn_test_note("%s, case %.300s", name, c->text);
    CHECK_OK(hn_tactic_emit(td, &f->r, tg, p, &e, &dg), &dg);
    check_source(td, &e);
    make_buffers(t, f, td, tg, p, &e, &b);
    run_launches(f, tg, &e, &b);
    const double tol = c->tol > 0 ? c->tol : 2e-6;
    for (int i = 0; i < f->g->n_out; i++)
        compare(f, &b, i, tg->arch == HN_ARCH_SM && td->changes_numbers ? HN_MAX(tol, 1e-3) : tol, name);
    check_no_fault(&b);
}

/* The CPU's, and a GPU; where kernels run on a GPU, that one alone. */
static int every_target(hn_target *ret)
{
    const int n = targets(ret);
    hn_diag dg = { 0 };
    CHECK_OK(hn_target_get(gpu_is_wanted() ? getenv("HONE_TEST_TARGET") : "sm_90a", &ret[n], &dg), &dg);
    return n + 1;
}

void fast_every(hn_test *t, const fast_case *c)
{
    hn_target tg[N_TARGET + 1];
    const int n = every_target(tg);
    points *q = malloc(sizeof *q);
    fixture f;
    int n_fit = 0, n_gpu = 0;
    CHECK(q);
    make(t, &f, c, true);
    for (int k = 0; k < n * hn_tactic_count(); k++) {
        const hn_target *g = &tg[k % n];
        const hn_tactic_def *td = hn_tactic_at(k / n);
        if (!hn_tactic_serves(td, g) || td->library || td->fits(&f.r, g) != HN_FIT_YES) continue; /* a library's code is its own */
        q->n = hn_tactic_points(td, &f.r, g, /* pins= */ NULL, MAX_POINTS, q->p, q->ns);
        const int tries = HN_MIN(q->n, c->n_point ? c->n_point : 3);
        for (int i = 0; i < tries; i++)
            check_point_twice(t, &f, c, td, g, q->p[tries > 1 ? i * (q->n - 1) / (tries - 1) : 0]);
        n_fit += tries;
        n_gpu += g->arch == HN_ARCH_SM ? tries : 0;
    }
    const bool expands = hn_op_of(f.r.root)->expand != NULL;
    if (!n_fit && !(gpu_is_wanted() && expands)) FAIL("no tactic fits");
    if (!n_gpu && !expands) FAIL("no tactic fits on a gpu");
    unmake(&f);
    free(q);
}

void fast_refuses(hn_test *t, const fast_case *c, const char *tactic, hn_fit why)
{
    need_cpu();
    hn_target tg[N_TARGET];
    fixture f;
    const int n = targets(tg);
    const hn_tactic_def *td = hn_tactic_find(tactic);
    CHECK(td);
    make(t, &f, c, false);
    for (int i = 0; i < n; i++)
        CHECK_STR(hn_fit_text(td->fits(&f.r, &tg[i])), hn_fit_text(why));
    unmake(&f);
}

/* ---- benches ---- */
enum { BENCH_POINTS = 6, ROUNDS = 15 };

static int64_t run_all(const compiled *c)
{
    const int64_t t0 = hn_now_ns();
    for (int i = 0; i < c->n; i++)
        call(c, i, 0, c->extent[i]);
    return hn_now_ns() - t0;
}

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Buffers and code of every contender are its own, so each finds its weights as its rivals left the caches.
 */
void fast_bench(hn_test *t, const fast_case *c, const char *tactic)
{
    const char *top = getenv("HONE_BENCH");
    need_cpu();
    if (!top) SKIP("set HONE_BENCH to the number of points to time");
    const int want = HN_MAX(1, HN_MIN(BENCH_POINTS, atoi(top)));
    hn_target tg;
    const hn_tactic_def *td = hn_tactic_find(tactic);
    static points q;
    fixture f;
    hn_work work;
    CHECK(td);
    make(t, &f, c, false);
    hn_region_work(&f.r, &work);
    hn_target_detect(&tg, true);
    if (td->fits(&f.r, &tg) != HN_FIT_YES) SKIP("does not fit here");
    q.n = hn_tactic_points(td, &f.r, &tg, /* pins= */ NULL, MAX_POINTS, q.p, q.ns);
    static compiled k[BENCH_POINTS];
    static double sample[BENCH_POINTS][ROUNDS];
    hn_diag dg = { 0 };
    const int n = HN_MIN(want, q.n);
    for (int i = 0; i < n; i++) {
        hn_emission e = { .arena = t->arena };
        buffers b;
        memset(&b, 0, sizeof b);
        CHECK_OK(hn_tactic_emit(td, &f.r, &tg, q.p[i], &e, &dg), &dg);
        make_buffers(t, &f, td, &tg, q.p[i], &e, &b);
        hn_emission *keep = HN_NEW(t->arena, hn_emission);
        *keep = e;
        compile(t, &f, &tg, keep, &b, &k[i]);
        run_all(&k[i]);
    }
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < n; i++)
            sample[(i + r) % n][r] = (double)run_all(&k[(i + r) % n]);
    for (int i = 0; i < n; i++) {
        qsort(sample[i], ROUNDS, sizeof(double), ascending);
        const double ns = sample[i][ROUNDS / 2], gf = work.flops / ns;
        printf("{\"tactic\": \"%s\", \"median_us\": %.1f, \"min_us\": %.1f, \"predicted_us\": %.1f, "
               "\"gflops\": %.1f, "
               "\"percent_of_peak\": %.1f, \"stack_refs\": %d}\n",
               name_of(t, td, &f, &tg, q.p[i]), ns / 1000, sample[i][0] / 1000, q.ns[i] / 1000, gf,
               100 * gf / tg.peak_gflops, k[i].n_stack_ref);
        done(&k[i]);
    }
    fflush(stdout);
}
