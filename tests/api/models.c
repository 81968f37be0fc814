#include "models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the wire format ---- */
static void put(wire *w, const void *data, size_t n)
{
    CHECK(w->n + n <= sizeof w->at);
    memcpy(w->at + w->n, data, n);
    w->n += n;
}

static void varint(wire *w, uint64_t v)
{
    do {
        const unsigned char byte = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
        put(w, &byte, 1);
        v >>= 7;
    } while (v);
}

void wire_int(wire *w, int field, uint64_t v)
{
    varint(w, (uint64_t)field << 3);
    varint(w, v);
}

void wire_bytes(wire *w, int field, const void *data, size_t n)
{
    varint(w, (uint64_t)field << 3 | 2);
    varint(w, n);
    put(w, data, n);
}

void wire_str(wire *w, int field, const char *s)
{
    wire_bytes(w, field, s, strlen(s));
}

/* ---- graphs ---- */
void onnx_io(wire *graph, bool output, const char *name, int type, const char *dims)
{
    static wire shape, tensor, kind, value, dim;
    char text[256], *save = NULL;
    shape.n = tensor.n = kind.n = value.n = 0;
    snprintf(text, sizeof text, "%s", dims);
    for (char *d = strtok_r(text, " ", &save); d; d = strtok_r(NULL, " ", &save)) {
        dim.n = 0;
        if (*d >= '0' && *d <= '9') wire_int(&dim, 1, strtoull(d, NULL, 10));
        else wire_str(&dim, 2, d);
        wire_bytes(&shape, 1, dim.at, dim.n);
    }
    wire_int(&tensor, 1, (uint64_t)type);
    wire_bytes(&tensor, 2, shape.at, shape.n);
    wire_bytes(&kind, 1, tensor.at, tensor.n);
    wire_str(&value, 1, name);
    wire_bytes(&value, 2, kind.at, kind.n);
    wire_bytes(graph, output ? 12 : 11, value.at, value.n);
}

void onnx_node(wire *graph, const char *op, const char *in, const char *out)
{
    static wire node;
    node.n = 0;
    const char *const list[] = { in, out };
    for (int k = 0; k < 2; k++) {
        char text[256], *save = NULL;
        snprintf(text, sizeof text, "%s", list[k]);
        for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) wire_str(&node, k + 1, s);
    }
    wire_str(&node, 3, out);
    wire_str(&node, 4, op);
    wire_bytes(graph, 1, node.at, node.n);
}

void onnx_const(wire *graph, const char *name, int type, int rank, const int64_t *dim, const void *data, size_t bytes)
{
    static wire t;
    t.n = 0;
    for (int i = 0; i < rank; i++) wire_int(&t, 1, (uint64_t)dim[i]);
    wire_int(&t, 2, (uint64_t)type);
    wire_str(&t, 8, name);
    wire_bytes(&t, 9, data, bytes);
    wire_bytes(graph, 5, t.at, t.n);
}

const char *onnx_save(const wire *graph, const char *name)
{
    static wire model, opset;
    model.n = opset.n = 0;
    wire_int(&opset, 2, 17);
    wire_int(&model, 1, 8);
    wire_bytes(&model, 7, graph->at, graph->n);
    wire_bytes(&model, 8, opset.at, opset.n);
    const char *path = scratch(name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(model.at, 1, model.n, f) == model.n && fclose(f) == 0);
    return path;
}

/* ---- scratch files ---- */
static char folder[] = "/tmp/hone-test-XXXXXX";
static pid_t made_by;

static void remove_folder(void)
{
    if (made_by != getpid()) return;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') remove(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

const char *scratch(const char *name)
{
    static char path[16][600];
    static int at;
    if (made_by != getpid()) {
        memset(folder + sizeof folder - 7, 'X', 6);
        CHECK(mkdtemp(folder));
        made_by = getpid();
        atexit(remove_folder);
    }
    at = (at + 1) % 16;
    snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

/* ---- models ---- */
const char *relu_model(void)
{
    static wire g;
    g.n = 0;
    onnx_node(&g, "Relu", "x", "y");
    onnx_io(&g, false, "x", ONNX_F32, "n 3");
    onnx_io(&g, true, "y", ONNX_F32, "n 3");
    return onnx_save(&g, "relu.onnx");
}

const char *lookup_model(void)
{
    static wire g;
    float table[64];
    const int64_t two[] = { 2 }, shape[] = { 16, 4 }, one[] = { 1 };
    g.n = 0;
    for (int i = 0; i < 64; i++) table[i] = (float)i;
    onnx_const(&g, "table", ONNX_F32, 2, shape, table, sizeof table);
    onnx_const(&g, "axes", ONNX_I64, 1, one, two, sizeof two);
    onnx_node(&g, "Gather", "table ids", "rows");
    onnx_node(&g, "Unsqueeze", "mask axes", "wide");
    onnx_node(&g, "CastLike", "wide table", "factor");
    onnx_node(&g, "Mul", "rows factor", "z");
    onnx_io(&g, false, "ids", ONNX_I64, "b s");
    onnx_io(&g, false, "mask", ONNX_I64, "b s");
    onnx_io(&g, true, "z", ONNX_F32, "b s 4");
    return onnx_save(&g, "lookup.onnx");
}

const char *deep_model(int side, int depth)
{
    static wire g;
    char dims[64], in[16] = "x", out[16];
    g.n = 0;
    snprintf(dims, sizeof dims, "%d %d", side, side);
    for (int i = 0; i < depth; i++) {
        snprintf(out, sizeof out, i == depth - 1 ? "y" : "v%d", i);
        onnx_node(&g, i % 2 ? "MatMul" : "Softmax", i % 2 ? strcat(strcpy((char[40]){ 0 }, in), " x") : in, out);
        memcpy(in, out, sizeof in);
    }
    onnx_io(&g, false, "x", ONNX_F32, dims);
    onnx_io(&g, true, "y", ONNX_F32, dims);
    return onnx_save(&g, "deep.onnx");
}

const char *nonzero_model(void)
{
    static wire g;
    g.n = 0;
    onnx_node(&g, "NonZero", "x", "y");
    onnx_io(&g, false, "x", ONNX_F32, "4");
    onnx_io(&g, true, "y", ONNX_I64, "1 k");
    return onnx_save(&g, "nonzero.onnx");
}

/* ---- handles ---- */
void expect_ok(hone_status got, hone_error *err)
{
    if (got != HONE_OK) FAIL("%s", hone_error_text(err));
}

void expect_error(hone_status got, hone_error *err, hone_status want, const char *part)
{
    CHECK_EQ(got, want);
    CHECK(err != NULL);
    CHECK_EQ(hone_error_status(err), want);
    const char *message = hone_error_message(err), *text = hone_error_text(err);
    if (!*message || message[strlen(message) - 1] == '.') FAIL("no message of ours: \"%s\"", message);
    if (part && !strstr(text, part)) FAIL("no \"%s\" in: %s", part, text);
    hone_error_free(err);
}

hone_model *load(const char *path, const hone_model_options *o)
{
    hone_model *m = NULL;
    hone_error *err = NULL;
    EXPECT_OK(hone_model_load(path, o, &m, &err));
    CHECK(m);
    return m;
}

hone_engine *engine_of(const char *model, const hone_model_options *o)
{
    hone_engine *e = NULL;
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(model, o);
    const char *path = scratch("engine.hone");
    b.opt_level = 0;
    b.timing_cache = "";
    EXPECT_OK(hone_build(m, &b, path, NULL, &err));
    hone_model_free(m);
    EXPECT_OK(hone_engine_open(path, NULL, &e, &err));
    return e;
}

hone_context *context_of(hone_engine *e)
{
    hone_context *c = NULL;
    hone_error *err = NULL;
    EXPECT_OK(hone_context_create(e, NULL, &c, &err));
    return c;
}
