/* Kernels to code: compile in worker processes, place each distinct program once in the code section. */
#include "build/build_int.h"

#include <string.h>

static bool find_placed(const hn_job *b, hn_digest d, uint64_t *ret_entry)
{
    for (int i = 0; i < b->placed.n; i++)
        if (hn_digest_eq(b->placed.at[i].digest, d)) {
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

hone_status hn_code_get(hn_job *b, const hn_kfunc *f, const hn_code **ret, hn_diag *dg)
{
    const hn_digest d = hn_kfunc_digest(f);
    *ret = find_compiled(b, d);
    if (*ret) return HONE_OK;
    hn_code code;
    const int64_t t0 = hn_now_ns();
    HN_TRY(hn_compile(b->pool, f, b->t, b->a, &code, dg));
    b->report->compile_ns += hn_now_ns() - t0;
    if (!hn_vec_push(b->a, &b->compiled, ((struct hn_compiled){ d, code }))) return HN_NOMEM(dg);
    *ret = find_compiled(b, d);
    return HONE_OK;
}

hone_status hn_code_place(hn_job *b, const hn_kfunc *f, uint64_t *ret_entry, hn_diag *dg)
{
    const hn_digest d = hn_kfunc_digest(f);
    if (find_placed(b, d, ret_entry)) return HONE_OK;
    const hn_code *code;
    HN_TRY(hn_code_get(b, f, &code, dg));
    static const char zero[4096] = { 0 };
    const size_t align = HN_MAX(code->align, 64u);
    hn_str_add_n(&b->code, zero, (align - b->code.n % align) % align);
    *ret_entry = b->code.n + code->entry;
    hn_str_add_n(&b->code, (const char *)code->at, code->n);
    if (b->code.oom || !hn_vec_push(b->a, &b->placed, ((struct hn_code_at){ d, *ret_entry }))) return HN_NOMEM(dg);
    return HONE_OK;
}

/* Start compiling without waiting; the pool joins equal programs, so hn_code_get later finds them done or nearly so. */
hone_status hn_code_submit(hn_job *b, const hn_emission *e, hn_diag *dg)
{
    for (int i = 0; i < e->launches.n; i++) {
        const hn_kfunc *f = &e->launches.at[i].func;
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
