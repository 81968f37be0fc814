/* Steps of what libraries of the host compute: images. */
#include "build/plan_control.h"

static hone_status result(hn_planner *p, hn_value *v, uint32_t *ret, hn_diag *dg)
{
    uint32_t size = HN_NO;
    HN_TRY(hn_plan_known_bytes(p, v, &size, dg));
    *ret = p->buf[v->id] == HN_NO ? hn_plan_new_buf(p, v, size) : p->buf[v->id];
    return HONE_OK;
}

hone_status hn_plan_host(hn_planner *p, hn_node *n, hn_diag *dg)
{
    const bool decode = n->op == HN_OP_image_decode;
    hn_pb_image s = { .what = decode ? HN_IMAGE_STEP_DECODE : HN_IMAGE_STEP_SIZE, .h = HN_NO, .w = HN_NO, .origin = hn_plan_origin(n) };
    if (HN_NEVER(!decode && n->op != HN_OP_image_size)) return HN_RAISE(dg, HONE_E_INTERNAL, "no step computes \"%s\"", n->name);
    s.src = hn_plan_value(p, hn_in(n, 0), dg);
    if (s.src == HN_NO) return dg->code;
    HN_TRY(hn_plan_known_bytes(p, hn_in(n, 0), &s.bytes, dg));
    if (decode) {
        uint32_t dim[HN_MAX_RANK];
        HN_TRY(hn_plan_dims(p, n->out[0], dim, dg));
        s.order = (uint32_t)hn_attr_i(n, "order");
        s.h = dim[0], s.w = dim[1];
    }
    HN_TRY(result(p, n->out[0], &s.dst, dg));
    hn_pb_step_image(p->pb, &s);
    return HONE_OK;
}
