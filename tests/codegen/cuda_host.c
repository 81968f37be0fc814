#include "cuda_host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "../cuda_sim/sim_prelude.h"
#include "codegen/cuda/cuda_text.h"
#include "jit.h"

/* The kernel's text under a name of its own. */
static void add_kernel(hn_test *t, hn_str *s, int k, const hn_kfunc *f)
{
    int64_t shared;
    hn_diag dg = { 0 };

    hn_str_addf(s, "#define %s kernel%d\nnamespace n%d {\n", HN_CU_KERNEL_NAME, k, k);
    CHECK_OK(hn_cu_emit(f, t->arena, s, &shared, &dg), &dg);
    hn_str_addf(s, "}\n#undef %s\n", HN_CU_KERNEL_NAME);
}

const char *cuda_host_compiler(void)
{
    static const char *const known[] = { "g++", "clang++", "clang++-19", "c++" };

    for (int i = 0; i < HN_COUNT(known); i++) {
        char find[64];
        snprintf(find, sizeof(find), "command -v %s >/dev/null", known[i]);
        if (sim_run_program((const char *const[]){ "sh", "-c", find, NULL })) return known[i];
    }
    return NULL;
}

/* One library of all programs; its files go at once. */
static void *build(hn_test *t, const cuda_batch *b, const char *cxx)
{
    char dir[] = "/tmp/hone_cuda_XXXXXX";
    hn_str s = { 0 };
    hn_diag dg = { 0 };

    CHECK(mkdtemp(dir) != NULL);
    hn_str_add(&s, sim_prelude);
    hn_cu_prelude(&s);
    for (int i = 0; i < b->at.n; i++)
        add_kernel(t, &s, i, &b->at.at[i].f);
    hn_str_add(&s, sim_launcher);
    for (int i = 0; i < b->at.n; i++)
        hn_str_addf(&s, "extern \"C\" void run%d(u32 grid, const u32 *t, void **p) { sim_go(n%d::kernel%d, false, grid, t, p); }\n",
                    i, i, i);
    const char *src = hn_arena_printf(t->arena, "%s/k.cc", dir), *so = hn_arena_printf(t->arena, "%s/k.so", dir);
    CHECK_OK(hn_write_file_atomic(src, s.s, s.n, &dg), &dg);
    hn_str_done(&s);
    const char *const cmd[] = { cxx,  "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-ffp-contract=off",
                                "-fno-strict-aliasing", "-o", so, src, NULL };
    if (!sim_run_program(cmd)) FAIL("%s does not compile %s", cxx, src);
    void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!lib) FAIL("%s", dlerror());
    unlink(src);
    unlink(so);
    rmdir(dir);
    return lib;
}

static void launch(void *lib, int k, const hn_kfunc *f, void **buf, int n_buf)
{
    char name[32];
    void (*go)(uint32_t grid, const uint32_t *threads, void **param);
    void *param[16];

    snprintf(name, sizeof(name), "run%d", k);
    void *at = dlsym(lib, name);
    CHECK(at != NULL);
    memcpy(&go, &at, sizeof(go));
    for (int i = 0; i < n_buf; i++)
        param[i] = &buf[i];
    const uint32_t threads[3] = { (uint32_t)f->threads[0], (uint32_t)f->threads[1], (uint32_t)f->threads[2] };
    go((uint32_t)hn_kfunc_blocks(f, NULL), threads, param);
}

static void compare(const cuda_case *c, int buf, const uint8_t *got)
{
    const uint8_t *want = c->want[buf];
    const int size = hn_dtype_bits(c->out_type[buf]) / 8;

    for (int64_t i = 0; i < c->bytes[buf]; i += size)
        if (memcmp(want + i, got + i, (size_t)size) && !(jit_is_nan(want + i, c->out_type[buf]) && jit_is_nan(got + i, c->out_type[buf])))
            FAIL("%s as CUDA C: result %d, element %d", c->f.name, buf - c->n_in, (int)(i / size));
}

void cuda_later(hn_test *t, cuda_batch *b, const hn_kfunc *cpu, const hn_kmem *mem, int n_in, int n_buf,
                const hn_dtype *out_type, const void *const *before)
{
    hn_kgrid g;
    hn_diag dg = { 0 };
    cuda_case c = { .n_buf = n_buf, .n_in = n_in };

    CHECK_OK(hn_kfunc_to_grid(t->arena, cpu, 1, &g, &dg), &dg);
    CHECK_EQ(g.n_scratch, 0);
    c.f = g.func;
    for (int i = 0; i < n_buf; i++) {
        c.bytes[i] = mem[i].bytes;
        c.out_type[i] = i < n_in ? HN_NONE : out_type[i - n_in];
        c.in[i] = hn_arena_memdup(t->arena, i < n_in ? mem[i].at : before[i - n_in], (size_t)mem[i].bytes);
        c.want[i] = hn_arena_memdup(t->arena, mem[i].at, (size_t)mem[i].bytes);
    }
    CHECK(hn_vec_push(t->arena, &b->at, c));
}

void cuda_check(hn_test *t, cuda_batch *b)
{
    const char *cxx = cuda_host_compiler();

    if (!cxx || b->at.n == 0) return;
    void *lib = build(t, b, cxx);
    for (int i = 0; i < b->at.n; i++) {
        cuda_case *c = &b->at.at[i];
        hn_test_note("kernel %s as CUDA C", c->f.name);
        launch(lib, i, &c->f, c->in, c->n_buf);
        for (int k = c->n_in; k < c->n_buf; k++)
            compare(c, k, c->in[k]);
    }
    dlclose(lib);
    b->at.n = 0;
}
