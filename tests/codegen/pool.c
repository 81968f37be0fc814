/* Worker processes and the cache on disk. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "jit.h"
#include "kir/kir.h"

static char *fresh_dir(hn_test *t)
{
    char *dir = hn_arena_strdup(t->arena, "/tmp/hone-test-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    return dir;
}

static void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(dir);
}

static int count_files(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, ".hnc") != NULL;
    if (d) closedir(d);
    return n;
}

/* y = x + c */
static hn_kfunc add_kernel(hn_arena *a, float c)
{
    hn_kb *b = hn_kb_new(a, "add_const");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_add(b, hn_kb_load(b, x, hn_kb_i(b, 0), 8), hn_kb_f(b, c)));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

static hn_compile_pool *open_pool(const hn_compile_options *o)
{
    hn_compile_pool *p;
    hn_diag dg = { 0 };
    CHECK_OK(hn_compile_pool_create(o, &p, &dg), &dg);
    return p;
}

TEST(pool_compiles_many_and_caches)
{
    char *dir = fresh_dir(t);
    hn_target target[8];
    hn_diag dg = { 0 };
    enum { MANY = 20 };
    int ticket[MANY];
    hn_code code, direct;

    jit_targets(target, 8);
    for (int round = 0; round < 2; round++) {
        hn_compile_pool *p = open_pool(&(hn_compile_options){ .n_worker = 2, .cache = { .dir = dir } });
        for (int i = 0; i < MANY; i++) {
            const hn_kfunc f = add_kernel(t->arena, (float)(i / 2));
            ticket[i] = hn_compile_submit(p, &f, &target[0]);
            CHECK(ticket[i] >= 0);
        }
        for (int i = MANY - 1; i >= 0; i--) {
            const hn_kfunc f = add_kernel(t->arena, (float)(i / 2));
            CHECK_OK(hn_compile_collect(p, ticket[i], t->arena, &code, &dg), &dg);
            CHECK_OK(hn_codegen_llvm.compile(&f, &target[0], t->arena, &direct, &dg), &dg);
            CHECK(code.n == direct.n && memcmp(code.at, direct.at, code.n) == 0 &&
                  code.entry == direct.entry);
        }
        CHECK_ERR(hn_compile_collect(p, ticket[0], t->arena, &code, &dg), HONE_E_INVALID, &dg,
                  "no compilation");
        const hn_compile_stats s = hn_compile_pool_stats(p);
        CHECK_EQ(s.n_compiled, round ? 0 : MANY / 2);
        CHECK_EQ(s.n_cached, round ? MANY / 2 : 0);
        CHECK_EQ(s.n_joined, MANY / 2);
        CHECK_EQ(s.n_failed, 0);
        hn_compile_pool_destroy(p);
        CHECK_EQ(count_files(dir), MANY / 2);
    }
    remove_dir(dir);
}

TEST(damaged_cache_files_are_remade)
{
    char *dir = fresh_dir(t);
    const hn_code_cache c = { .dir = dir };
    const uint8_t bytes[100] = { 1, 2, 3 };
    const hn_code code = { .at = bytes, .n = sizeof(bytes), .entry = 16, .align = 64 };
    const hn_digest key = { 1, 2 };
    char path[200], text[HN_DIGEST_TEXT];
    hn_code got;

    snprintf(path, sizeof(path), "%s/%s.hnc", dir, hn_digest_text(key, text));
    CHECK(!hn_code_cache_get(&c, key, t->arena, &got));
    hn_code_cache_put(&c, key, &code);
    CHECK(hn_code_cache_get(&c, key, t->arena, &got) && got.n == 100 && got.entry == 16 &&
          memcmp(got.at, bytes, 100) == 0);
    FILE *f = fopen(path, "r+b");
    CHECK(f != NULL);
    fseek(f, -1, SEEK_END);
    fputc(77, f);
    fclose(f);
    CHECK(!hn_code_cache_get(&c, key, t->arena, &got));
    CHECK(access(path, F_OK) != 0);
    hn_code_cache_put(&c, key, &code);
    CHECK(truncate(path, 20) == 0);
    CHECK(!hn_code_cache_get(&c, key, t->arena, &got));
    remove_dir(dir);
}

TEST(cache_stays_bounded_and_keeps_what_is_used)
{
    char *dir = fresh_dir(t);
    const hn_code_cache c = { .dir = dir, .max_bytes = 40 * 4096 };
    static uint8_t bytes[3000];
    const hn_code code = { .at = bytes, .n = sizeof(bytes), .align = 64 };
    hn_code got;

    for (uint64_t i = 0; i < 60; i++) {
        hn_code_cache_put(&c, (hn_digest){ i, 7 }, &code);
        hn_sleep_ns(2000000);                                              /* mtimes must differ */
        CHECK(hn_code_cache_get(&c, (hn_digest){ 0, 7 }, t->arena, &got)); /* the first one stays in use */
    }
    hn_code_cache_trim(&c);
    CHECK(count_files(dir) <= 40 && count_files(dir) >= 30);
    CHECK(hn_code_cache_get(&c, (hn_digest){ 0, 7 }, t->arena, &got));
    CHECK(hn_code_cache_get(&c, (hn_digest){ 59, 7 }, t->arena, &got));
    CHECK(!hn_code_cache_get(&c, (hn_digest){ 1, 7 }, t->arena, &got));
    remove_dir(dir);
}

TEST(several_processes_share_a_cache)
{
    char *dir = fresh_dir(t);
    const hn_code_cache c = { .dir = dir };
    static uint8_t bytes[20000];
    const hn_code code = { .at = bytes, .n = sizeof(bytes), .align = 64 };
    pid_t child[4];

    for (int k = 0; k < 4; k++) {
        if ((child[k] = fork()) != 0) continue;
        int bad = 0;
        for (uint64_t i = 0; i < 200; i++) {
            hn_arena *a = hn_arena_create();
            hn_code got;
            const hn_digest key = { i % 10, 1 };
            if (hn_code_cache_get(&c, key, a, &got))
                bad += got.n != sizeof(bytes);
            else
                hn_code_cache_put(&c, key, &code);
            hn_arena_destroy(a);
        }
        _exit(bad != 0);
    }
    for (int k = 0; k < 4; k++) {
        int status;
        CHECK(waitpid(child[k], &status, 0) == child[k] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK_EQ(count_files(dir), 10);
    remove_dir(dir);
}

/* Stand-ins for a worker that misbehaves: programs every system has. */
TEST(dead_and_hung_workers_become_statuses)
{
    hn_target target[8];
    const hn_kfunc f = add_kernel(t->arena, 1);
    hn_diag dg = { 0 };
    hn_code code;
    char script[] = "/tmp/hone-test-hang-XXXXXX";

    jit_targets(target, 8);
    hn_compile_pool *p = open_pool(&(hn_compile_options){ .n_worker = 1, .worker_path = "/bin/true" });
    CHECK_ERR(hn_compile(p, &f, &target[0], t->arena, &code, &dg), HONE_E_CRASH, &dg, "add_const");
    CHECK_EQ(hn_compile_pool_stats(p).n_worker_death, 2);
    hn_compile_pool_destroy(p);

    const int fd = mkstemp(script);
    CHECK(fd >= 0 && write(fd, "#!/bin/sh\nexec sleep 100\n", 25) == 25 && fchmod(fd, 0700) == 0);
    close(fd);
    p = open_pool(&(hn_compile_options){ .n_worker = 1, .worker_path = script, .timeout_ns = 200000000 });
    CHECK_ERR(hn_compile(p, &f, &target[0], t->arena, &code, &dg), HONE_E_TIMEOUT, &dg, "add_const");
    hn_compile_pool_destroy(p);
    unlink(script);

    CHECK_ERR(hn_compile_pool_create(&(hn_compile_options){ .worker_path = "/nowhere/worker" }, &p, &dg),
              HONE_E_NOTFOUND, &dg, "/nowhere/worker");
}

TEST(what_nobody_collects_can_be_dropped)
{
    hn_target target[8];
    hn_diag dg = { 0 };
    hn_code code, direct;

    jit_targets(target, 8);
    hn_compile_pool *p = open_pool(&(hn_compile_options){ .n_worker = 1 });
    for (int i = 0; i < 6; i++) {
        const hn_kfunc f = add_kernel(t->arena, (float)i);
        CHECK_EQ(hn_compile_submit(p, &f, &target[0]), i);
    }
    hn_compile_pool_drop(p); /* the first is being compiled */
    CHECK_ERR(hn_compile_collect(p, 0, t->arena, &code, &dg), HONE_E_INVALID, &dg, "no compilation");
    for (int i = 0; i < 2; i++) {
        const hn_kfunc f = add_kernel(t->arena, 9);
        CHECK_OK(hn_compile(p, &f, &target[0], t->arena, &code, &dg), &dg);
        CHECK_OK(hn_codegen_llvm.compile(&f, &target[0], t->arena, &direct, &dg), &dg);
        CHECK(code.n == direct.n && memcmp(code.at, direct.at, code.n) == 0);
        hn_compile_pool_drop(p); /* nothing waits: the worker stays */
    }
    CHECK_EQ(hn_compile_pool_stats(p).n_worker_death, 0);
    hn_compile_pool_destroy(p);
}

TEST(errors_travel_from_the_worker)
{
    hn_target target[8];
    const hn_kfunc f = add_kernel(t->arena, 1);
    hn_diag dg = { 0 };
    hn_code code;

    jit_targets(target, 8);
    target[0].feat = 0;
    hn_compile_pool *p = open_pool(&(hn_compile_options){ .n_worker = 1 });
    CHECK_ERR(hn_compile(p, &f, &target[0], t->arena, &code, &dg), HONE_E_TARGET, &dg, "sse4.2");
    jit_targets(target, 8);
    CHECK_OK(hn_compile(p, &f, &target[0], t->arena, &code, &dg), &dg);
    CHECK_EQ(hn_compile_pool_stats(p).n_worker_death, 0);
    hn_compile_pool_destroy(p);
}

TEST(dumps_travel_from_the_worker)
{
    hn_target target[8];
    const hn_kfunc f = add_kernel(t->arena, 1);
    hn_diag dg = { 0 };
    hn_str text = { 0 };
    hn_code code;

    jit_targets(target, 8);
    hn_compile_pool *p = open_pool(&(hn_compile_options){ .n_worker = 1 });
    CHECK_OK(hn_compile_dump(p, &f, &target[0], false, &text, &dg), &dg);
    CHECK(strstr(hn_str_get(&text), "addps") && strstr(hn_str_get(&text), "ret"));
    hn_str_clear(&text);
    CHECK_OK(hn_compile_dump(p, &f, &target[0], true, &text, &dg), &dg);
    CHECK(strstr(hn_str_get(&text), "define void @"));
    CHECK_OK(hn_compile(p, &f, &target[0], t->arena, &code, &dg), &dg);
    CHECK(code.entry < code.n && code.n < 4096);
    hn_compile_pool_destroy(p);
    hn_str_done(&text);
}
