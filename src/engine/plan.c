/* Small readers of plans, and the payload digest. */
#include "engine/plan.h"

#include <string.h>

uint32_t hn_plan_streams(const hn_plan *p)
{
    const uint32_t n = (p->flags & (uint32_t)HN_PLAN_STREAMS_MASK) >> HN_PLAN_STREAMS_AT;
    return n ? n : 1;
}

const char *hn_plan_str(const hn_plan *p, uint32_t at)
{
    return at < p->n_string ? p->string + at : "";
}

const char *hn_step_kind_name(uint32_t kind)
{
    static const char *const name[] = {
        [HN_STEP_KERNEL] = "kernel", [HN_STEP_COPY] = "copy",   [HN_STEP_READ] = "read",
        [HN_STEP_SHAPE] = "shape",   [HN_STEP_ALLOC] = "alloc", [HN_STEP_APPEND] = "append",
        [HN_STEP_IF] = "if",         [HN_STEP_LOOP] = "loop",   [HN_STEP_IMAGE] = "image",
    };
    return kind < sizeof(name) / sizeof(*name) && name[kind] ? name[kind] : "unknown";
}

/* Names are string offsets and shift when any name changes; they are left out field by field. */
static void hash_tables(hn_hasher *h, const hn_plan *p)
{
    for (uint32_t i = 0; i < p->n_io; i++) {
        hn_plan_io x = p->io[i];
        x.name = x.hint = 0;
        hn_hasher_bytes(h, &x, sizeof(x));
    }
    for (uint32_t i = 0; i < p->n_sym; i++) {
        hn_plan_sym x = p->sym[i];
        x.name = 0;
        hn_hasher_bytes(h, &x, sizeof(x));
    }
    for (uint32_t i = 0; i < p->n_buf; i++) {
        hn_plan_buf x = p->buf[i];
        x.name = 0;
        hn_hasher_bytes(h, &x, sizeof(x));
    }
    for (uint32_t i = 0; i < p->n_weight; i++) {
        hn_hasher_i64(h, (int64_t)p->weight[i].key.lo);
        hn_hasher_i64(h, (int64_t)p->weight[i].key.hi);
        hn_hasher_i64(h, (int64_t)p->weight[i].sum);
        hn_hasher_i64(h, (int64_t)p->weight[i].bytes);
    }
    for (uint32_t i = 0; i < p->n_kernel; i++) {
        hn_plan_kernel x = p->kernel[i];
        x.name = 0;
        hn_hasher_bytes(h, &x, sizeof(x));
    }
}

static void hash_program(hn_hasher *h, const hn_plan *p)
{
    for (uint32_t i = 0; i < p->n_inst; i++) {
        hn_sinst x = p->inst[i];
        if (x.op >= HN_S_CHECK_EQ) x.c = 0; /* a message */
        hn_hasher_bytes(h, &x, sizeof(x));
    }
    for (uint32_t i = 0; i < p->n_step; i++) {
        hn_step x = p->step[i];
        x.origin = 0;
        hn_hasher_bytes(h, &x, sizeof(x));
    }
}

hn_digest hn_plan_payload_digest(const hn_plan *p, const void *code, size_t code_bytes)
{
    const uint32_t count[] = { p->flags,    p->target_arch, p->n_prefix,  p->n_reg, p->n_inst,
                               p->n_io,     p->n_sym,       p->n_profile, p->n_buf, p->n_weight,
                               p->n_kernel, p->n_step,      p->n_list };
    hn_hasher h;

    hn_hasher_init(&h);
    hn_hasher_bytes(&h, count, sizeof(count));
    hn_hasher_i64(&h, (int64_t)p->target_feat);
    hn_hasher_i64(&h, (int64_t)p->arena_bytes);
    hn_hasher_bytes(&h, p->reg_init, p->n_reg * sizeof(*p->reg_init));
    hn_hasher_bytes(&h, p->bound, (size_t)p->n_profile * p->n_sym * sizeof(*p->bound));
    hn_hasher_bytes(&h, p->list, p->n_list * sizeof(*p->list));
    hash_tables(&h, p);
    hash_program(&h, p);
    hn_hasher_i64(&h, (int64_t)code_bytes);
    hn_hasher_bytes(&h, code, code_bytes);
    return hn_hasher_end(&h);
}
