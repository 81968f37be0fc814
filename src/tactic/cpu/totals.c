#include "tactic/cpu/totals.h"

hn_totals hn_totals_new(hn_kb *b, int n, int lanes, int64_t depth, int64_t block)
{
    hn_totals t = { .b = b, .buf = -1, .lanes = lanes, .block = block };
    if (depth >= 2 * block) t.buf = hn_kb_scratch(b, "total", HN_F32, hn_kext_const((int64_t)n * lanes));
    return t;
}

static hn_kv place(const hn_totals *t, int i)
{
    return hn_kb_i(t->b, (int64_t)i * t->lanes);
}

static hn_kv zero(const hn_totals *t)
{
    return hn_kb_float(t->b, HN_F32, t->lanes, 0);
}

void hn_totals_clear(const hn_totals *t, int n)
{
    if (t->buf < 0) return;
    for (int i = 0; i < n; i++) hn_kb_store(t->b, t->buf, place(t, i), zero(t));
}

void hn_totals_add(const hn_totals *t, hn_kvar *sum, int n)
{
    for (int i = 0; i < n; i++) {
        const hn_kv all = hn_kb_add(t->b, hn_kb_load(t->b, t->buf, place(t, i), t->lanes), hn_kb_get(t->b, sum[i]));
        hn_kb_store(t->b, t->buf, place(t, i), all);
        hn_kb_set(t->b, sum[i], zero(t));
    }
}

void hn_totals_take(const hn_totals *t, hn_kvar *sum, int n)
{
    if (t->buf < 0) return;
    for (int i = 0; i < n; i++)
        hn_kb_set(t->b, sum[i], hn_kb_add(t->b, hn_kb_load(t->b, t->buf, place(t, i), t->lanes), hn_kb_get(t->b, sum[i])));
}
