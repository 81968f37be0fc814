/* Fetching the next panel of packed weights. */
#include "tactic/cpu/ahead.h"

void hn_ahead_init(hn_ahead *a, const hn_target *t, int buf, int size, int64_t panel, int64_t n_panel,
                   int64_t tiles, int64_t step)
{
    const int64_t line = HN_MAX(t->line_bytes, 64);
    *a = (hn_ahead){ .buf = buf, .line_elems = line / size, .from = HN_KV_NONE };
    a->on = tiles >= 2 && panel * n_panel * size > t->l2_bytes / 2;
    while (2LL << a->shift <= tiles)
        a->shift++;
    a->lines = (int)HN_MAX(1, (step * size / line) >> a->shift);
}

void hn_ahead_tile(hn_kb *b, hn_ahead *a, int64_t panel, hn_kv next, hn_kv tile)
{
    if (a->on) a->from = hn_kb_add(b, next, hn_kb_muli(b, tile, panel >> a->shift));
}

void hn_ahead_step(hn_kb *b, const hn_ahead *a, hn_kv done)
{
    enum { SECOND_LEVEL = 2 };
    if (!a->on) return;
    const hn_kv at = hn_kb_add(b, a->from, hn_kb_shr(b, done, a->shift));
    for (int i = 0; i < a->lines; i++)
        hn_kb_prefetch(b, a->buf, hn_kb_addi(b, at, i * a->line_elems), SECOND_LEVEL, false);
}
