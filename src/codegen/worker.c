/* What hone-worker does when it compiles: reads kernel programs on stdin, answers with code. LLVM and NVRTC live and, at worst,
 * die here alone. */
#include "codegen/codegen_int.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int reply = -1;

static bool read_exact(void *data, size_t n)
{
    uint8_t *p = data;

    while (n) {
        const ssize_t k = read(STDIN_FILENO, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static bool write_exact(const void *data, size_t n)
{
    const uint8_t *p = data;

    while (n) {
        const ssize_t k = write(reply, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static bool answer(const hn_code *code, const hn_diag *dg, bool dying)
{
    hn_worker_reply r = { .magic = HN_WORKER_MAGIC,
                          .rev = HN_WORKER_REV,
                          .entry = code->entry,
                          .align = code->align,
                          .frame_bytes = code->frame_bytes,
                          .n_stack_ref = code->n_stack_ref,
                          .compile_ns = code->compile_ns,
                          .dying = dying,
                          .diag = *dg };

    r.n = dg->code == HONE_OK ? code->n : 0;
    r.diag.file = NULL;
    return write_exact(&r, sizeof(r)) && write_exact(code->at, r.n);
}

static char compiling[64]; /* for the last words */

/* The compiler ends the process after this; say why first. */
static void on_fatal(const char *reason)
{
    const hn_code none = { .align = 1 };
    hn_diag dg = { 0 };

    (void)HN_RAISE(&dg, HONE_E_INTERNAL, "the compiler gave up on kernel \"%s\": %.300s", compiling, reason);
    answer(&none, &dg, true);
    _exit(70);
}

/* The code generator for a target, or why there is none. */
static const hn_codegen *generator(const hn_target *t, hn_diag *dg)
{
    if (t->arch == HN_ARCH_SM) return &hn_codegen_cuda;
#ifdef HN_HAVE_LLVM
    (void)dg;
    return &hn_codegen_llvm;
#else
    (void)HN_RAISE(dg, HONE_E_UNSUPPORTED, "this build has no code generator for \"%s\": LLVM was left out", t->name);
    return NULL;
#endif
}

/* LLVM aborts when memory is out, as it does over its own mistakes. Under a memory limit only the first can map no more. */
static void on_abort(int number)
{
    enum { PROBE_BYTES = 32 << 20 };
    const void *more = mmap(NULL, PROBE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (more == MAP_FAILED) {
        const hn_code none = { .align = 1 };
        hn_diag dg = { 0 };
        (void)HN_RAISE(&dg, HONE_E_NOMEM, "out of memory while compiling kernel \"%s\"", compiling);
        answer(&none, &dg, true);
        _exit(HONE_E_NOMEM);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Text travels as if it were code. */
static void work(const hn_worker_request *req, const hn_kfunc *f, hn_arena *a, hn_str *text, hn_code *code,
                 hn_diag *dg)
{
    const hn_codegen *g = generator(&req->target, dg);

    if (!g) return;
    if (g->on_fatal) g->on_fatal(on_fatal);
    if (req->want == HN_WORKER_CODE) {
        (void)g->compile(f, &req->target, a, code, dg);
        return;
    }
    if (g->dump(f, &req->target, req->want == HN_WORKER_IR, text, dg) != HONE_OK) return;
    code->at = (const uint8_t *)hn_str_get(text);
    code->n = text->n;
}

static bool serve_one(const hn_worker_request *req)
{
    hn_arena *a = hn_arena_create();
    void *program = a ? hn_arena_alloc(a, 1, req->n) : NULL;
    hn_code code = { .align = 1 };
    hn_str text = { 0 };
    hn_diag dg = { 0 };
    hn_kfunc f;

    if (!program || !read_exact(program, req->n)) return false;
    if (hn_kfunc_read(a, program, req->n, &f, &dg) == HONE_OK) {
        snprintf(compiling, sizeof(compiling), "%s", f.name);
        work(req, &f, a, &text, &code, &dg);
    }
    const bool ok = answer(&code, &dg, false);
    hn_str_done(&text);
    hn_arena_destroy(a);
    return ok;
}

int hn_worker_serve(int reply_fd)
{
    enum { FIRST = offsetof(hn_worker_request, n) };
    hn_worker_request req;

    reply = reply_fd;
    signal(SIGABRT, on_abort);
    while (read_exact(&req, FIRST)) {
        if (req.magic != HN_WORKER_MAGIC || req.rev != HN_WORKER_REV) return HN_WORKER_FOREIGN;
        if (!read_exact((char *)&req + FIRST, sizeof(req) - FIRST) || req.n > (1u << 30) || !serve_one(&req)) return 0;
    }
    return 0;
}
