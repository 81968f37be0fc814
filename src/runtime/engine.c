/* Engines: file, code, and facts about the plan that every context needs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime_int.h"

/* ---- facts ---- */
static void mark_late(hn_engine *e)
{
    const hn_plan *p = e->plan;

    for (uint32_t i = p->n_prefix; i < p->n_inst; i++)
        if (p->inst[i].op < HN_S_CHECK_EQ) e->reg_late[p->inst[i].dst] = e->has_late = true;
    for (uint32_t i = 0; i < p->n_step; i++) {
        const hn_step *s = &p->step[i];
        if (s->kind == HN_STEP_READ) e->reg_late[s->u.read.reg] = e->has_late = true;
        if (s->kind == HN_STEP_LOOP && s->u.loop.iter != HN_NO)
            e->reg_late[s->u.loop.iter] = e->has_late = true;
    }
}

static void add_carried(hn_engine *e, const hn_step *s)
{
    const hn_plan *p = e->plan;

    for (uint32_t k = 0; k < s->u.loop.n_carry; k++) {
        const uint32_t *pair = &p->list[s->u.loop.carry + 2 * k];
        if (p->buf[pair[0]].kind != HN_BUF_ARENA) continue;
        if (e->carried) memcpy(e->carried + 2 * e->n_carried, pair, 2 * sizeof(*pair));
        e->n_carried++;
    }
}

/* Counts first, then fills. */
static hone_status find_carried(hn_engine *e, hn_diag *dg)
{
    for (int pass = 0; pass < 2; pass++) {
        e->n_carried = 0;
        for (uint32_t i = 0; i < e->plan->n_step; i++)
            if (e->plan->step[i].kind == HN_STEP_LOOP) add_carried(e, &e->plan->step[i]);
        if (pass == 0 && !(e->carried = calloc((size_t)2 * e->n_carried + 1, sizeof(*e->carried))))
            return HN_NOMEM(dg);
    }
    return HONE_OK;
}

/* ---- code ---- */
static hone_status load_functions(hn_engine *e, const hn_engine_opts *o, hn_diag *dg)
{
    for (uint32_t i = 0; i < e->plan->n_kernel; i++)
        if (e->plan->kernel[i].entry >= o->n_fn)
            return HN_RAISE(dg, HONE_E_INVALID, "kernel %u is function %llu of %zu", i,
                            (unsigned long long)e->plan->kernel[i].entry, o->n_fn);
    return hn_device_load_functions(e->device, o->fn, o->n_fn, &e->module, dg);
}

static hone_status load_code(hn_engine *e, hn_diag *dg)
{
    hn_target t = { .arch = (hn_arch)e->plan->target_arch,
                    .feat = e->plan->target_feat,
                    .name = "the engine's target" };
    size_t bytes;
    const void *const code = hn_engine_file_code(e->file, &bytes);

    HN_TRY(hn_device_check_target(e->device, &t, dg));
    return hn_device_load_code(e->device, code, bytes, &e->module, dg);
}

static hone_status fill(hn_engine *e, const hn_engine_opts *o, hn_diag *dg)
{
    const hn_plan *p = e->plan;

    e->reg_late = calloc(p->n_reg + (size_t)1, sizeof(*e->reg_late));
    e->weight = calloc(p->n_buf + (size_t)1, sizeof(*e->weight));
    if (!e->reg_late || !e->weight) return HN_NOMEM(dg);
    mark_late(e);
    HN_TRY(find_carried(e, dg));
    if (!e->device) return HONE_OK;
    HN_TRY(hn_segments_find(e, dg));
    HN_TRY(hn_weights_place(e, o->weight_budget, dg));
    return o->fn ? load_functions(e, o, dg) : load_code(e, dg);
}

static void destroy(hn_engine *e)
{
    hn_device_unload(e->device, e->module);
    hn_weights_drop(e);
    hn_engine_file_close(e->file);
    free(e->carried);
    free(e->segment);
    free(e->reg_late);
    free(e->weight);
    free(e->data);
    free(e);
}

/* ---- opening ---- */
hone_status hn_engine_from_file(hn_engine_file *take_file, const hn_engine_opts *o, hn_engine **ret,
                                hn_diag *dg)
{
    static const hn_engine_opts none = { 0 };
    const hn_plan *p = hn_engine_file_plan(take_file);
    hn_device *device;

    if (!o) o = &none;
    device = o->device;
    if (!device && !o->inspect) HN_TRY(hn_device_for((hn_arch)p->target_arch, &device, dg));
    hn_engine *const e = calloc(1, sizeof(*e));
    if (!e) return HN_NOMEM(dg);
    atomic_init(&e->n_ref, 1);
    e->device = device;
    e->file = take_file;
    e->plan = p;
    const hone_status s = fill(e, o, dg);
    if (s) {
        e->file = NULL; /* not taken */
        destroy(e);
        return s;
    }
    *ret = e;
    return HONE_OK;
}

static hn_engine_read_opts read_opts(const hn_engine_opts *o)
{
    return (hn_engine_read_opts){ .trust_weights = o && o->trust_weights,
                                  .store_dir = o ? o->store_dir : NULL };
}

hone_status hn_engine_open(const char *path, const hn_engine_opts *o, hn_engine **ret, hn_diag *dg)
{
    const hn_engine_read_opts ro = read_opts(o);
    hn_engine_file *f;

    HN_TRY(hn_engine_file_open(path, &ro, &f, dg));
    const hone_status s = hn_engine_from_file(f, o, ret, dg);
    if (s) hn_engine_file_close(f);
    return s;
}

hone_status hn_engine_from_memory(void *take_data, size_t n, const hn_engine_opts *o, hn_engine **ret,
                                  hn_diag *dg)
{
    const hn_engine_read_opts ro = read_opts(o);
    hn_engine_file *f;

    HN_TRY(hn_engine_file_open_memory(take_data, n, &ro, &f, dg));
    const hone_status s = hn_engine_from_file(f, o, ret, dg);
    if (s)
        hn_engine_file_close(f);
    else
        (*ret)->data = take_data;
    return s;
}

hn_engine *hn_engine_ref(hn_engine *e)
{
    atomic_fetch_add_explicit(&e->n_ref, 1, memory_order_relaxed);
    return e;
}

void hn_engine_unref(hn_engine *e)
{
    if (e && atomic_fetch_sub_explicit(&e->n_ref, 1, memory_order_acq_rel) == 1) destroy(e);
}

const hn_engine_file *hn_engine_get_file(const hn_engine *e)
{
    return e->file;
}

const hn_plan *hn_engine_get_plan(const hn_engine *e)
{
    return e->plan;
}

hn_device *hn_engine_get_device(const hn_engine *e)
{
    return e->device;
}

int hn_engine_find_io(const hn_engine *e, const char *name)
{
    for (uint32_t i = 0; i < e->plan->n_io; i++)
        if (strcmp(hn_plan_str(e->plan, e->plan->io[i].name), name) == 0) return (int)i;
    return -1;
}
