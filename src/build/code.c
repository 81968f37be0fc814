/* Kernels to code: compile in worker processes, place each distinct program once in the code section. A library's call stands
 * there like a kernel; its code is the algorithm that the library proposes on this device. */
#include "build/build_int.h"

#include <string.h>

#include "core/image.h"
#include "dev/dev.h"

static hn_digest digest_of(const hn_kcall *k)
{
    hn_hasher h;
    if (!k->call) return hn_kfunc_digest(&k->func);
    hn_hasher_init(&h);
    hn_hasher_bytes(&h, k->call, sizeof *k->call);
    return hn_hasher_end(&h);
}

static bool find_placed(const hn_job *b, hn_digest d, bool early, uint64_t *ret_entry)
{
    for (int i = 0; i < b->placed.n; i++)
        if (b->placed.at[i].early == early && hn_digest_eq(b->placed.at[i].digest, d)) {
            *ret_entry = b->placed.at[i].entry;
            return true;
        }
    return false;
}

static const hn_code *find_compiled(const hn_job *b, hn_digest d)
{
    for (int i = 0; i < b->compiled.n; i++)
        if (hn_digest_eq(b->compiled.at[i].digest, d)) return &b->compiled.at[i].code;
    return NULL;
}

/* ---- library calls ---- */
const char *hn_library_missing(hn_job *b, hn_library which)
{
    struct hn_library_state *l = &b->library[which];
    hn_device *d;
    hn_diag dg = { 0 };
    hn_str version = { 0 };
    if (b->o->frozen) return NULL; /* what was timed tells */
    if (!l->asked) {
        l->asked = true;
        hone_status s = hn_device_for(b->t->arch, &d, &dg);
        if (s == HONE_OK) s = hn_device_check_target(d, b->t, &dg);
        if (s == HONE_OK) s = hn_device_library(d, which, &version, &dg);
        if (s == HONE_OK) l->version = hn_arena_strdup(b->a, hn_str_get(&version));
        else l->why = hn_arena_strdup(b->a, dg.message);
        hn_str_done(&version);
    }
    return l->why;
}

/* A frozen build says which proposal and leaves the algorithm to loading: no machine's library makes a difference. */
static hone_status choose_algorithm(const hn_job *b, hn_libcall *c, hn_str *ret_plan, hn_diag *dg)
{
    hn_device *d;
    if (b->o->frozen) return HONE_OK;
    HN_TRY(hn_device_for(b->t->arch, &d, dg));
    return hn_device_choose_call(d, c, ret_plan, dg);
}

static hone_status make_call(hn_job *b, const hn_libcall *c, hn_code *ret, hn_diag *dg)
{
    HN_CLEANUP(hn_str_done) hn_str plan = { 0 };
    hn_libcall full = *c;
    HN_TRY(choose_algorithm(b, &full, &plan, dg));
    if (hn_knob_read_model(b->knobs, HN_KNOB_core_deterministic)) full.flags |= HN_CALL_FIXED;
    const hn_image h = { .magic = HN_CALL_MAGIC, .bytes = (uint32_t)(sizeof full + plan.n), .threads = { 1, 1, 1 }, .n_buf = c->n_buf };
    uint8_t *at = hn_arena_alloc_aligned(b->a, sizeof h + h.bytes, HN_IMAGE_ALIGN);
    if (!at || plan.oom) return HN_NOMEM(dg);
    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, &full, sizeof full);
    if (plan.n) memcpy(at + sizeof h + sizeof full, plan.s, plan.n);
    *ret = (hn_code){ .at = at, .n = sizeof h + h.bytes, .align = HN_IMAGE_ALIGN };
    return HONE_OK;
}

hone_status hn_code_get(hn_job *b, const hn_kcall *k, const hn_code **ret, hn_diag *dg)
{
    const hn_digest d = digest_of(k);
    *ret = find_compiled(b, d);
    if (*ret) return HONE_OK;
    hn_code code;
    const int64_t t0 = hn_now_ns();
    HN_TRY(k->call ? make_call(b, k->call, &code, dg) : hn_compile(b->pool, &k->func, b->t, b->a, &code, dg));
    *(k->call ? &b->report->library_ns : &b->report->compile_ns) += hn_now_ns() - t0;
    if (!hn_vec_push(b->a, &b->compiled, ((struct hn_compiled){ d, code }))) return HN_NOMEM(dg);
    *ret = find_compiled(b, d);
    return HONE_OK;
}

/* All kernels that are compiled for 9.0 wait before they touch anything (codegen/cuda): whether they may start early is free. */
static void mark_early(hn_job *b, uint64_t entry)
{
    hn_image h;
    memcpy(&h, b->code.s + entry, sizeof h);
    h.flags |= HN_IMAGE_EARLY;
    memcpy(b->code.s + entry, &h, sizeof h);
}

hone_status hn_code_place(hn_job *b, const hn_kcall *k, bool early, uint64_t *ret_entry, hn_diag *dg)
{
    const hn_digest d = digest_of(k);
    early = early && !k->call; /* a library's kernels do not wait by themselves */
    if (find_placed(b, d, early, ret_entry)) return HONE_OK;
    const hn_code *code;
    HN_TRY(hn_code_get(b, k, &code, dg));
    if (k->call) b->library[k->call->library].used = true;
    static const char zero[4096] = { 0 };
    const size_t align = HN_MAX(code->align, 64u);
    hn_str_add_n(&b->code, zero, (align - b->code.n % align) % align);
    *ret_entry = b->code.n + code->entry;
    hn_str_add_n(&b->code, (const char *)code->at, code->n);
    if (early && !b->code.oom) mark_early(b, *ret_entry);
    if (b->code.oom || !hn_vec_push(b->a, &b->placed, ((struct hn_code_at){ d, early, *ret_entry }))) return HN_NOMEM(dg);
    return HONE_OK;
}

/* Start compiling without waiting; the pool joins equal programs, so hn_code_get later finds them done or nearly so. */
hone_status hn_code_submit(hn_job *b, const hn_emission *e, hn_diag *dg)
{
    for (int i = 0; i < e->launches.n; i++) {
        const hn_kfunc *f = &e->launches.at[i].func;
        if (e->launches.at[i].call) continue; /* chosen when it is asked for */
        const hn_digest d = hn_kfunc_digest(f);
        if (find_compiled(b, d)) continue;
        bool waiting = false;
        for (int k = 0; k < b->tickets.n && !waiting; k++) waiting = hn_digest_eq(b->tickets.at[k].digest, d);
        if (waiting) continue;
        const int ticket = hn_compile_submit(b->pool, f, b->t);
        if (ticket < 0 || !hn_vec_push(b->a, &b->tickets, ((struct hn_ticket){ d, ticket, f }))) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

/* Collect everything submitted. A kernel that fails to compile is left out: its candidate is dropped by whoever asks. */
hone_status hn_code_collect(hn_job *b, hn_diag *dg)
{
    const int64_t t0 = hn_now_ns();
    for (int i = 0; i < b->tickets.n; i++) {
        hn_code code;
        hn_diag why = { 0 };
        if (hn_compile_collect(b->pool, b->tickets.at[i].ticket, b->a, &code, &why) != HONE_OK) {
            hn_log(HN_LOG_WARN, "kernel \"%s\" did not compile: %s", b->tickets.at[i].func->name, why.message);
            continue;
        }
        if (!hn_vec_push(b->a, &b->compiled, ((struct hn_compiled){ b->tickets.at[i].digest, code }))) return HN_NOMEM(dg);
    }
    b->tickets.n = 0;
    b->report->compile_ns += hn_now_ns() - t0;
    return HONE_OK;
}
