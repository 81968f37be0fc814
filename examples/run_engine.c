/*
 * Build an engine from an ONNX model, load it, run it once on made-up inputs and print the outputs.
 *
 *     cc run_engine.c $(pkg-config --cflags --libs hone) -o run_engine
 *     ./run_engine model.onnx model.hone
 */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_IO = 32 };

static int fail(const char *doing, hone_error *err)
{
    fprintf(stderr, "%s: %s\n", doing, hone_error_text(err));
    hone_error_free(err);
    return 1;
}

/* Sum and first elements of an output: enough to see that something came out. */
static void print_output(const hone_io *io, int rank, const int64_t *dim, const void *data, size_t bytes)
{
    printf("%s: %s[", io->name, hone_dtype_name(io->dtype));
    for (int i = 0; i < rank; i++)
        printf("%s%lld", i ? "," : "", (long long)dim[i]);
    printf("]");
    if (io->dtype == HONE_DTYPE_F32) {
        const float *x = data;
        for (size_t i = 0; i < bytes / sizeof *x && i < 4; i++)
            printf(" %g", (double)x[i]);
    }
    printf("\n");
}

static int run(hone_context *c, hone_engine *e)
{
    hone_error *err = NULL;
    if (hone_context_run(c, &err) != HONE_OK) return fail("run", err);
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io io;
        int rank;
        int64_t dim[HONE_MAX_RANK];
        size_t bytes = 0;
        if (hone_engine_io(e, i, &io, &err) != HONE_OK) return fail("output", err);
        if (!io.is_output) continue;
        if (hone_context_shape(c, i, &rank, dim, &err) != HONE_OK) return fail("output", err);
        const void *data = hone_context_output(c, i, &bytes);
        print_output(&io, rank, dim, data, bytes);
    }
    return 0;
}

/* Shapes and buffers of the inputs, which the model's description makes up. */
static int bind(hone_context *c, hone_engine *e, hone_model *m, hone_tensor *in)
{
    hone_error *err = NULL;
    char *note = NULL;
    if (hone_model_make_inputs(m, /* seed= */ 1, in, &note, &err) != HONE_OK) return fail("inputs", err);
    printf("inputs made up: %s\n", note ? note : "");
    hone_string_free(note);
    for (int i = 0, k = 0; i < hone_model_io_count(m); i++) {
        hone_io io;
        if (hone_model_io(m, i, &io, &err) != HONE_OK) return fail("input", err);
        if (io.is_output) continue;
        const hone_tensor *t = &in[k++];
        const int at = hone_engine_find_io(e, io.name);
        if (at < 0) continue; /* nothing reads it */
        if (hone_context_set_shape(c, at, t->rank, t->dim, &err) != HONE_OK ||
            hone_context_bind(c, at, t->data, t->bytes, &err) != HONE_OK)
            return fail("bind", err);
    }
    return 0;
}

int main(int argc, char **argv)
{
    hone_error *err = NULL;
    hone_model *m = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_tensor in[MAX_IO] = { 0 };
    int rc = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL.onnx ENGINE\n", argv[0]);
        return 2;
    }
    if (hone_model_load(argv[1], NULL, &m, &err) != HONE_OK) rc = fail("load", err);
    else if (hone_model_io_count(m) > MAX_IO) rc = 1;
    else if (hone_build(m, NULL, argv[2], NULL, &err) != HONE_OK) rc = fail("build", err);
    else if (hone_engine_open(argv[2], NULL, &e, &err) != HONE_OK) rc = fail("open", err);
    else if (hone_context_create(e, NULL, &c, &err) != HONE_OK) rc = fail("context", err);
    else if (bind(c, e, m, in) == 0 && run(c, e) == 0)
        printf("engine %s, %lld bytes\n", hone_engine_payload(e), (long long)hone_engine_bytes(e));
    else rc = 1;

    hone_context_free(c); /* each of these accepts NULL */
    hone_engine_free(e);
    for (int i = 0; i < MAX_IO; i++)
        hone_tensor_free(&in[i]);
    hone_model_free(m);
    return rc;
}
