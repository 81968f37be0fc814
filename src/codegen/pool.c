/* Worker processes that compile kernels: hand in many, collect each. One thread drives it all by poll. */
#include "codegen/codegen_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cuda_find.h"
#include "base/dl.h"
#include "base/os.h"

enum { MAX_WORKERS = 16, MAX_TRIES = 2 };

typedef enum job_state { JOB_QUEUED, JOB_RUNNING, JOB_DONE } job_state;

/* One compilation; several tickets may wait for it. */
typedef struct job {
    job_state state;
    hn_digest key;
    uint8_t *program; /* hn_kfunc_write */
    size_t program_n;
    char name[64];
    hn_target target;
    hn_worker_want want;
    int tries, n_ticket; /* tickets not collected yet */
    hn_arena *arena;     /* holds the code */
    hn_code code;
    hn_diag diag;
} job;

typedef struct worker {
    hn_proc proc; /* pid 0: not running */
    job *job;
    int64_t deadline_ns;
} worker;

struct hn_compile_pool {
    hn_compile_options o;
    char *worker_path, *cache_dir;
    uint64_t salt, nvrtc_salt; /* tell worker builds, and NVRTC's, apart in cache keys; 0: not looked for yet */
    worker w[MAX_WORKERS];
    int n_worker;
    job **ticket; /* by number; NULL once collected */
    int n_ticket, cap_ticket;
    hn_compile_stats stats;
};

/* ---- finding the worker ---- */
static char *beside(const char *file, const char *relative)
{
    const char *slash = strrchr(file, '/');
    const size_t n = slash ? (size_t)(slash - file) + 1 : 0;
    char *path = malloc(n + strlen(relative) + 1);

    if (!path) return NULL;
    memcpy(path, file, n);
    strcpy(path + n, relative);
    if (access(path, X_OK) == 0) return path;
    free(path);
    return NULL;
}

static char *near_file(const char *file)
{
    /* installed, then a build folder seen from its root, from src/X and from tests */
    static const char *const places[] = { "hone-worker", "../libexec/hone/hone-worker", "src/codegen/hone-worker",
                                          "../src/codegen/hone-worker", "../../src/codegen/hone-worker" };
    for (int i = 0; i < HN_COUNT(places); i++) {
        char *path = beside(file, places[i]);
        if (path) return path;
    }
    return NULL;
}

hone_status hn_worker_find(const char *given, char **ret, hn_diag *dg)
{
    static const char here;
    const char *env = hn_env("HONE_WORKER");
    char self[1024];
    char *path = NULL;
    Dl_info info;

    if (given || (env && *env)) {
        path = strdup(given ? given : env);
    } else {
        if (dladdr(&here, &info) && info.dli_fname) path = near_file(info.dli_fname);
        const ssize_t n = path ? -1 : readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n > 0) {
            self[n] = 0;
            path = near_file(self);
        }
    }
    if (path && access(path, X_OK) == 0) {
        *ret = path;
        return HONE_OK;
    }
    hn_hint(dg, "set HONE_WORKER to the path of hone-worker, which a build with LLVM makes");
    const hone_status s =
        path ? HN_RAISE(dg, HONE_E_NOTFOUND, "the compile worker \"%s\" cannot be run", path)
             : HN_RAISE(dg, HONE_E_NOTFOUND, "no hone-worker beside this program or in ../libexec/hone");
    free(path);
    return s;
}

/* A rebuilt worker, or another NVRTC, may emit other code under the same revision. */
static uint64_t salt_of(const char *path)
{
    struct stat st;
    int64_t v[3] = { 0 };

    if (stat(path, &st) == 0) {
        v[0] = (int64_t)st.st_size;
        v[1] = (int64_t)st.st_mtim.tv_sec;
        v[2] = (int64_t)st.st_mtim.tv_nsec;
    }
    return hn_hash64(v, sizeof(v), 0);
}

/* ---- jobs ---- */
static void job_free(job *j)
{
    if (!j) return;
    hn_arena_destroy(j->arena);
    free(j->program);
    free(j);
}

static void job_done(hn_compile_pool *p, job *j)
{
    j->state = JOB_DONE;
    free(j->program);
    j->program = NULL;
    if (j->diag.code != HONE_OK) p->stats.n_failed++;
}

static void job_failed(hn_compile_pool *p, job *j, hone_status s, const char *what, const char *how)
{
    hn_diag_clear(&j->diag);
    (void)HN_RAISE(&j->diag, s, "the compile worker %s on kernel \"%s\"%s%s", what, j->name,
                   how[0] ? ": " : "", how);
    job_done(p, j);
}

static job *job_new(const hn_kfunc *f, const hn_target *t, hn_digest key)
{
    job *j = calloc(1, sizeof(*j));

    if (!j) return NULL;
    j->arena = hn_arena_create();
    j->key = key;
    j->target = *t;
    snprintf(j->name, sizeof(j->name), "%s", f->name ? f->name : "");
    hn_arena *tmp = j->arena ? hn_arena_create() : NULL;
    const hn_bytes bytes = tmp ? hn_kfunc_write(tmp, f) : (hn_bytes){ 0 };
    if (bytes.n && (j->program = malloc(bytes.n))) {
        memcpy(j->program, bytes.at, bytes.n);
        j->program_n = bytes.n;
    }
    hn_arena_destroy(tmp);
    if (j->program) return j;
    job_free(j);
    return NULL;
}

static job *next_queued(const hn_compile_pool *p)
{
    for (int i = 0; i < p->n_ticket; i++)
        if (p->ticket[i] && p->ticket[i]->state == JOB_QUEUED) return p->ticket[i];
    return NULL;
}

/* ---- workers ---- */
static void worker_end(hn_compile_pool *p, worker *w, char *how, size_t n)
{
    hn_proc_end(&w->proc, how, n);
    w->job = NULL;
    p->stats.n_worker_death++;
}

static hone_status worker_start(hn_compile_pool *p, worker *w, hn_diag *dg)
{
    const char *argv[] = { p->worker_path, NULL };
    const hn_proc_limits limits = { .memory_bytes = p->o.memory_bytes };

    return hn_proc_spawn(argv, &limits, &w->proc, dg);
}

/* The worker died or spoke nonsense while on a job: try once more with a fresh one. */
hone_status hn_worker_check_build(const char *program, const char *how, hn_diag *dg)
{
    char foreign[32];
    snprintf(foreign, sizeof foreign, "exit status %d", HN_WORKER_FOREIGN);
    if (strcmp(how, foreign) != 0) return HONE_OK;
    hn_hint(dg, "Keep hone-worker beside the library it was built with, or name that one in HONE_WORKER.");
    return HN_RAISE(dg, HONE_E_VERSION, "the compile worker \"%s\" is of another build of hone", program);
}

static void worker_lost(hn_compile_pool *p, worker *w)
{
    job *j = w->job;
    char how[64] = "";
    hn_diag foreign = { 0 };

    worker_end(p, w, how, sizeof(how));
    if (hn_worker_check_build(p->worker_path, how, &foreign) != HONE_OK) { /* a second one would be no other */
        j->diag = foreign;
        job_done(p, j);
        return;
    }
    if (++j->tries < MAX_TRIES)
        j->state = JOB_QUEUED;
    else
        job_failed(p, j, HONE_E_CRASH, "died", how);
}

static void worker_give(hn_compile_pool *p, worker *w, job *j)
{
    hn_worker_request r = { .magic = HN_WORKER_MAGIC,
                            .rev = HN_WORKER_REV,
                            .n = j->program_n,
                            .want = (uint32_t)j->want,
                            .target = j->target };
    hn_diag dg = { 0 };

    if (w->proc.pid == 0 && worker_start(p, w, &dg) != HONE_OK) {
        j->diag = dg;
        job_done(p, j);
        return;
    }
    w->job = j;
    w->deadline_ns = hn_now_ns() + p->o.timeout_ns;
    j->state = JOB_RUNNING;
    if (hn_proc_write(&w->proc, &r, sizeof(r), w->deadline_ns, &dg) != HONE_OK ||
        hn_proc_write(&w->proc, j->program, j->program_n, w->deadline_ns, &dg) != HONE_OK)
        worker_lost(p, w);
}

static bool read_reply(worker *w, hn_worker_reply *r, hn_diag *dg)
{
    job *j = w->job;

    if (hn_proc_read(&w->proc, r, sizeof(*r), w->deadline_ns, dg) != HONE_OK) return false;
    if (r->magic != HN_WORKER_MAGIC || r->rev != HN_WORKER_REV || r->n > (1u << 30) || r->align > 4096)
        return false;
    uint8_t *at = hn_arena_alloc_aligned(j->arena, r->n + 1, 64);
    if (!at || hn_proc_read(&w->proc, at, r->n, w->deadline_ns, dg) != HONE_OK) return false;
    j->code = (hn_code){ .at = at,
                         .n = r->n,
                         .entry = r->entry,
                         .align = r->align,
                         .frame_bytes = r->frame_bytes,
                         .n_stack_ref = r->n_stack_ref,
                         .compile_ns = r->compile_ns };
    return true;
}

static void worker_answers(hn_compile_pool *p, worker *w)
{
    hn_worker_reply r;
    hn_diag dg = { 0 };
    job *j = w->job;

    if (!read_reply(w, &r, &dg)) {
        if (dg.code == HONE_E_TIMEOUT) {
            worker_end(p, w, NULL, 0);
            job_failed(p, j, HONE_E_TIMEOUT, "stopped answering", "");
        } else {
            worker_lost(p, w);
        }
        return;
    }
    w->job = NULL;
    if (r.dying) worker_end(p, w, NULL, 0);
    j->diag = r.diag;
    j->diag.file = r.diag.code == HONE_OK ? NULL : "hone-worker";
    if (r.diag.code == HONE_OK) {
        p->stats.n_compiled++;
        p->stats.compile_ns += r.compile_ns;
        if (j->want == HN_WORKER_CODE) hn_code_cache_put(&p->o.cache, j->key, &j->code);
    }
    job_done(p, j);
}

static void feed(hn_compile_pool *p)
{
    for (int i = 0; i < p->n_worker; i++) {
        job *j = p->w[i].job ? NULL : next_queued(p);
        if (j) worker_give(p, &p->w[i], j);
    }
}

static void expire(hn_compile_pool *p, int64_t now)
{
    for (int i = 0; i < p->n_worker; i++) {
        worker *w = &p->w[i];
        if (!w->job || now < w->deadline_ns) continue;
        job *j = w->job;
        worker_end(p, w, NULL, 0);
        job_failed(p, j, HONE_E_TIMEOUT, "took too long", "");
    }
}

/* Hand out work and take in answers; waits for one when `wait` is set. */
static void pump(hn_compile_pool *p, bool wait)
{
    struct pollfd fd[MAX_WORKERS];
    worker *of[MAX_WORKERS];
    int n = 0;
    int64_t first = INT64_MAX;

    feed(p);
    for (int i = 0; i < p->n_worker; i++) {
        if (!p->w[i].job) continue;
        fd[n] = (struct pollfd){ .fd = p->w[i].proc.out_fd, .events = POLLIN };
        of[n++] = &p->w[i];
        first = HN_MIN(first, p->w[i].deadline_ns);
    }
    if (n == 0) return;
    const int64_t left = wait ? HN_MAX(first - hn_now_ns(), 0) : 0;
    const struct timespec ts = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
    if (ppoll(fd, (nfds_t)n, &ts, NULL) > 0)
        for (int i = 0; i < n; i++)
            if (fd[i].revents && of[i]->job) worker_answers(p, of[i]);
    expire(p, hn_now_ns());
    feed(p);
}

/* ---- the pool ---- */
hone_status hn_compile_pool_create(const hn_compile_options *o, hn_compile_pool **ret, hn_diag *dg)
{
    hn_compile_pool *p = calloc(1, sizeof(*p));

    if (!p) return HN_NOMEM(dg);
    p->o = *o;
    const int n = o->n_worker > 0 ? o->n_worker : hn_cpu_count();
    p->n_worker = HN_MIN(n, MAX_WORKERS);
    if (p->o.timeout_ns <= 0) p->o.timeout_ns = 60ll * 1000000000;
    hone_status s = hn_worker_find(o->worker_path, &p->worker_path, dg);
    if (s == HONE_OK && o->cache.dir && !(p->cache_dir = strdup(o->cache.dir))) s = HN_NOMEM(dg);
    if (s != HONE_OK) {
        hn_compile_pool_destroy(p);
        return s;
    }
    p->o.cache.dir = p->cache_dir;
    p->salt = salt_of(p->worker_path);
    *ret = p;
    return HONE_OK;
}

/* Drop one ticket; the last one takes the job along. */
static void release(hn_compile_pool *p, int ticket)
{
    job *j = p->ticket[ticket];

    p->ticket[ticket] = NULL;
    if (j && --j->n_ticket == 0) job_free(j);
}

void hn_compile_pool_drop(hn_compile_pool *p)
{
    if (!p) return;
    for (int i = 0; i < p->n_worker; i++) {
        if (!p->w[i].job) continue;
        hn_proc_end(&p->w[i].proc, NULL, 0);
        p->w[i].job = NULL;
    }
    for (int i = 0; i < p->n_ticket; i++)
        release(p, i);
    p->n_ticket = 0;
}

void hn_compile_pool_destroy(hn_compile_pool *p)
{
    if (!p) return;
    hn_compile_pool_drop(p);
    for (int i = 0; i < p->n_worker; i++)
        if (p->w[i].proc.pid) hn_proc_end(&p->w[i].proc, NULL, 0);
    if (p->cache_dir && p->stats.n_compiled) hn_code_cache_trim(&p->o.cache);
    free(p->ticket);
    free(p->worker_path);
    free(p->cache_dir);
    free(p);
}

static bool room_for_ticket(hn_compile_pool *p)
{
    if (p->n_ticket < p->cap_ticket) return true;
    const int cap = p->cap_ticket ? 2 * p->cap_ticket : 64;
    job **grown = realloc(p->ticket, (size_t)cap * sizeof(*grown));
    if (!grown) return false;
    p->ticket = grown;
    p->cap_ticket = cap;
    return true;
}

static uint64_t nvrtc_salt(hn_compile_pool *p)
{
    hn_cuda_paths where;
    hn_str found = { 0 };

    if (p->nvrtc_salt) return p->nvrtc_salt;
    hn_cuda_find_nvrtc(&where);
    hn_dl_find(where.path, HN_CUDA_N_PATH, &found);
    p->nvrtc_salt = salt_of(hn_str_get(&found));
    hn_str_done(&found);
    return p->nvrtc_salt;
}

static hn_digest key_of(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t)
{
    hn_digest key = hn_code_key(f, t);

    key.lo ^= p->salt;
    if (t->arch == HN_ARCH_SM) key.lo ^= nvrtc_salt(p);
    return key;
}

static job *find_job(const hn_compile_pool *p, hn_digest key)
{
    for (int i = 0; i < p->n_ticket; i++)
        if (p->ticket[i] && hn_digest_eq(p->ticket[i]->key, key)) return p->ticket[i];
    return NULL;
}

static int add_ticket(hn_compile_pool *p, job *j)
{
    j->n_ticket++;
    p->ticket[p->n_ticket] = j;
    p->n_ticket++;
    pump(p, false);
    return p->n_ticket - 1;
}

int hn_compile_submit(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t)
{
    const hn_digest key = key_of(p, f, t);

    if (!room_for_ticket(p)) return -1;
    job *j = find_job(p, key);
    if (j) {
        p->stats.n_joined++;
    } else {
        if (!(j = job_new(f, t, key))) return -1;
        if (hn_code_cache_get(&p->o.cache, key, j->arena, &j->code)) {
            p->stats.n_cached++;
            job_done(p, j);
        }
    }
    return add_ticket(p, j);
}

hone_status hn_compile_collect(hn_compile_pool *p, int ticket, hn_arena *a, hn_code *ret, hn_diag *dg)
{
    if (ticket < 0 || ticket >= p->n_ticket || !p->ticket[ticket])
        return HN_RAISE(dg, HONE_E_INVALID, "no compilation %d waits to be collected", ticket);
    job *j = p->ticket[ticket];
    while (j->state != JOB_DONE)
        pump(p, true);
    hone_status s = j->diag.code;
    if (s != HONE_OK) {
        if (dg) *dg = j->diag;
    } else {
        uint8_t *at = hn_arena_alloc_aligned(a, j->code.n + 1, 64);
        if (!at)
            s = HN_NOMEM(dg);
        else {
            memcpy(at, j->code.at, j->code.n);
            *ret = j->code;
            ret->at = at;
        }
    }
    release(p, ticket);
    while (p->n_ticket && !p->ticket[p->n_ticket - 1])
        p->n_ticket--; /* numbers above the last live one are free again */
    return s;
}

hone_status hn_compile(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t, hn_arena *a, hn_code *ret,
                       hn_diag *dg)
{
    const int ticket = hn_compile_submit(p, f, t);
    return ticket < 0 ? HN_NOMEM(dg) : hn_compile_collect(p, ticket, a, ret, dg);
}

hone_status hn_compile_dump(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t, bool optimised_ir,
                            hn_str *out, hn_diag *dg)
{
    hn_digest key = key_of(p, f, t);
    hn_arena *tmp = hn_arena_create();
    hn_code text;

    key.hi ^= optimised_ir ? 2 : 1; /* never joined with the code itself */
    job *j = tmp && room_for_ticket(p) ? job_new(f, t, key) : NULL;
    if (!j) {
        hn_arena_destroy(tmp);
        return HN_NOMEM(dg);
    }
    j->want = optimised_ir ? HN_WORKER_IR : HN_WORKER_ASM;
    const hone_status s = hn_compile_collect(p, add_ticket(p, j), tmp, &text, dg);
    if (s == HONE_OK) hn_str_add_n(out, (const char *)text.at, text.n);
    hn_arena_destroy(tmp);
    return s;
}

hn_compile_stats hn_compile_pool_stats(const hn_compile_pool *p)
{
    return p->stats;
}
