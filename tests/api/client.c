/* A program of the runtime library alone: opens the engine it is given, feeds it made-up inputs and prints its outputs' sizes. */
#include <hone/hone.h>

#include <stdio.h>

static int fail(hone_error *err)
{
    fprintf(stderr, "%s\n", hone_error_text(err));
    const int status = (int)hone_error_status(err);
    hone_error_free(err);
    return status;
}

static hone_status feed(hone_engine *e, hone_context *c, hone_tensor *in, hone_error **err)
{
    hone_io io;
    hone_status s = hone_context_choose_shapes(c, err);
    for (int i = 0; s == HONE_OK && i < hone_engine_io_count(e); i++) {
        s = hone_engine_io(e, i, &io, err);
        if (s != HONE_OK || io.is_output) break;
        s = hone_context_make_input(c, i, 1, &in[i], NULL, err);
        if (s == HONE_OK) s = hone_context_bind(c, i, in[i].data, in[i].bytes, err);
    }
    return s;
}

int main(int argc, char **argv)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_tensor in[64] = { 0 };
    if (argc != 2) return HONE_E_INVALID;
    if (hone_engine_open(argv[1], NULL, &e, &err) || hone_context_create(e, NULL, &c, &err) || feed(e, c, in, &err) ||
        hone_context_run(c, &err))
        return fail(err);
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io io;
        size_t n = 0;
        if (hone_engine_io(e, i, &io, &err)) return fail(err);
        if (io.is_output && hone_context_output(c, i, &n)) printf("%s %zu\n", io.name, n);
    }
    for (int i = 0; i < 64; i++) hone_tensor_free(&in[i]);
    hone_context_free(c);
    hone_engine_free(e);
    return 0;
}
