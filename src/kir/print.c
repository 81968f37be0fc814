/* Programs as text, for people and for golden files. */
#include "kir/kir_int.h"

#include <inttypes.h>

static void print_ext(const hn_kfunc *f, const hn_kext *e, hn_str *out)
{
    if (e->div > 1) hn_str_add(out, "ceil(");
    if (e->a < 0 && e->b < 0) {
        hn_str_addf(out, "%" PRId64, e->mul + e->add);
    } else {
        if (e->mul != 1) hn_str_addf(out, "%" PRId64 "*", e->mul);
        if (e->a >= 0) hn_str_add(out, f->names + f->arg[e->a].name);
        if (e->a >= 0 && e->b >= 0) hn_str_add(out, "*");
        if (e->b >= 0) hn_str_add(out, f->names + f->arg[e->b].name);
        if (e->add) hn_str_addf(out, "%+" PRId64, e->add);
    }
    if (e->div > 1) hn_str_addf(out, "/%" PRId64 ")", e->div);
}

static void print_buf(const hn_kfunc *f, const hn_kbuf *b, hn_str *out)
{
    static const char *const kind[] = { "in", "scratch", "table", "shared" };

    hn_str_addf(out, "  %s %s %s",
                b->kind == HN_KBUF_PARAM && b->flags & HN_KBUF_WRITE ? "out" : kind[b->kind],
                f->names + b->name, hn_dtype_name((hn_dtype)b->dtype));
    if (b->kind != HN_KBUF_PARAM) {
        hn_str_add(out, "[");
        print_ext(f, &b->elems, out);
        hn_str_add(out, "]");
    }
    if (b->align > hn_dtype_bits((hn_dtype)b->dtype) / 8) hn_str_addf(out, " align %d", b->align);
    if (b->tail_bytes) hn_str_addf(out, " tail %d", b->tail_bytes);
    if (b->flags & HN_KBUF_ALIAS) hn_str_add(out, " alias");
    hn_str_add(out, "\n");
}

static void print_type(const hn_kins *x, hn_str *out)
{
    hn_str_add(out, hn_dtype_name((hn_dtype)x->dtype));
    if (x->lanes > 1) hn_str_addf(out, "x%d", x->lanes);
}

static void print_const(const hn_kins *x, hn_str *out)
{
    if (x->dtype == HN_F32 || x->dtype == HN_F64)
        hn_str_addf(out, " %.17g (0x%" PRIx64 ")", hn_klane_f64(x->dtype, (uint64_t)x->imm),
                    (uint64_t)x->imm);
    else
        hn_str_addf(out, " %" PRId64, x->imm);
}

static bool has_buffer(int op)
{
    return op == HN_KOP_LOAD || op == HN_KOP_GATHER || op == HN_KOP_STORE || op == HN_KOP_SCATTER ||
           op == HN_KOP_PREFETCH || op == HN_KOP_LDMATRIX;
}

static void print_extras(const hn_kfunc *f, const hn_kins *x, hn_str *out)
{
    static const char *const kind[] = { "",         " parallel", " unroll",   " each",     " block.x",
                                        " block.y", " block.z",  " thread.x", " thread.y", " thread.z" };

    if (x->op == HN_KOP_FOR) hn_str_add(out, kind[x->flags]);
    if (x->op == HN_KOP_ARG) hn_str_addf(out, " %s", f->names + f->arg[x->imm].name);
    if (x->op == HN_KOP_RAMP) hn_str_addf(out, " step %" PRId64, x->imm);
    if (x->op == HN_KOP_EXTRACT || x->op == HN_KOP_INSERT) hn_str_addf(out, " lane %" PRId64, x->imm);
    if (x->op == HN_KOP_UNHALF || x->op == HN_KOP_HALF)
        hn_str_addf(out, " %s", hn_dtype_name((hn_dtype)x->flags));
    if (x->op == HN_KOP_PREFETCH)
        hn_str_addf(out, " locality %d%s", x->flags & 3, x->flags & 4 ? " write" : "");
    if (x->op == HN_KOP_SHFL_XOR || x->op == HN_KOP_SHFL_DOWN || x->op == HN_KOP_AWAIT) hn_str_addf(out, " %" PRId64, x->imm);
    if (x->op == HN_KOP_MMA) hn_str_addf(out, " %s", hn_dtype_name((hn_dtype)x->flags));
    if (x->op == HN_KOP_LDMATRIX && x->flags) hn_str_add(out, " transposed");
    if (has_buffer(x->op) && x->op != HN_KOP_PREFETCH && x->op != HN_KOP_LDMATRIX) {
        if (x->flags & HN_KMEM_RAW) hn_str_add(out, " raw");
        if (x->flags & HN_KMEM_STREAM) hn_str_add(out, " stream");
        if (x->flags & HN_KMEM_ALIGNED) hn_str_add(out, " aligned");
    }
    if (x->op != HN_KOP_SHUFFLE) return;
    hn_str_add(out, " [");
    for (int i = 0; i < x->lanes; i++)
        hn_str_addf(out, "%s%d", i ? " " : "", f->pool[x->imm + i]);
    hn_str_add(out, "]");
}

static void print_operands(const hn_kfunc *f, const hn_kins *x, hn_str *out)
{
    int optional;
    const int n = hn_kir_n_operands(x->op, &optional);
    const char *sep = " ";

    if (x->op == HN_KOP_COPY) {
        hn_str_addf(out, " %d bytes %s[%%%d], %s[%%%d]", x->flags, f->names + f->buf[x->imm & 0xffffffff].name, x->a[0],
                    f->names + f->buf[x->imm >> 32].name, x->a[1]);
        if (x->a[2] >= 0) hn_str_addf(out, ", mask %%%d", x->a[2]);
        return;
    }
    if (has_buffer(x->op)) {
        hn_str_addf(out, " %s[%%%d]", f->names + f->buf[x->imm].name, x->a[0]);
        sep = ", ";
    }
    for (int i = has_buffer(x->op) ? 1 : 0; i < n; i++, sep = ", ")
        hn_str_addf(out, "%s%%%d", sep, x->a[i]);
    if (optional && x->a[n] >= 0) hn_str_addf(out, "%smask %%%d", sep, x->a[n]);
}

static void print_ins(const hn_kfunc *f, int at, int depth, hn_str *out)
{
    const hn_kins *x = &f->ins[at];

    hn_str_addf(out, "%*s", 2 * depth + 2, "");
    if (hn_kir_has_value(x->op) || x->op == HN_KOP_VAR) hn_str_addf(out, "%%%d", at);
    if (hn_kir_has_value(x->op) && x->op != HN_KOP_FOR) {
        hn_str_add(out, ":");
        print_type(x, out);
    }
    if (hn_kir_has_value(x->op) || x->op == HN_KOP_VAR) hn_str_add(out, " = ");
    hn_str_add(out, hn_kop_name(x->op));
    print_operands(f, x, out);
    if (x->op == HN_KOP_CONST) print_const(x, out);
    print_extras(f, x, out);
    hn_str_add(out, "\n");
}

void hn_kfunc_print(const hn_kfunc *f, hn_str *out)
{
    int depth = 0;

    hn_str_addf(out, "kernel \"%s\"%s\n", f->name ? f->name : "",
                f->flags & HN_KFUNC_OPTIMISE ? " optimise" : "");
    for (int i = 0; i < f->n_buf; i++)
        print_buf(f, &f->buf[i], out);
    for (int i = 0; i < f->n_arg; i++) {
        hn_str_addf(out, "  arg %s [%" PRId64 ", %" PRId64 "]", f->names + f->arg[i].name, f->arg[i].lo,
                    f->arg[i].hi);
        if (f->arg[i].div > 1) hn_str_addf(out, " multiple of %" PRId64, f->arg[i].div);
        hn_str_add(out, "\n");
    }
    if (f->parallel_at >= 0) {
        hn_str_add(out, "  parallel ");
        print_ext(f, &f->parallel, out);
        hn_str_add(out, "\n");
    }
    if (f->threads[0]) {
        hn_str_add(out, "  grid ");
        for (int i = 0; i < 3; i++) {
            print_ext(f, &f->grid[i], out);
            hn_str_add(out, i < 2 ? ", " : "");
        }
        hn_str_addf(out, " threads %d, %d, %d\n", f->threads[0], f->threads[1], f->threads[2]);
    }
    hn_str_add(out, "{\n");
    for (int i = 0; i < f->n_ins; i++) {
        const int op = f->ins[i].op;
        if ((op == HN_KOP_END || op == HN_KOP_ELSE) && depth) depth--;
        print_ins(f, i, depth, out);
        if (op == HN_KOP_FOR || op == HN_KOP_LOOP || op == HN_KOP_IF || op == HN_KOP_ELSE) depth++;
    }
    hn_str_add(out, "}\n");
}
