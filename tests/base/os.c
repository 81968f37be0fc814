#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os_int.h"
#include "base/str.h"

/* A fresh folder, removed with its contents by rm -r at the end. */
static char folder[64];

static void make_folder(void)
{
    strcpy(folder, "/tmp/hone-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void drop_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_EQ(system(command), 0);
}

static const char *in_folder(const char *name)
{
    static char path[8][256];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

TEST(file_write_map_append)
{
    hn_diag dg = { 0 };
    hn_bytes b;
    make_folder();
    const char *path = in_folder("a.bin");
    CHECK_OK(hn_write_file_atomic(path, "hello", 5, &dg), &dg);
    CHECK_OK(hn_append_file(path, " world", 6, &dg), &dg);
    CHECK_OK(hn_map_file(path, &b, &dg), &dg);
    CHECK(b.n == 11 && memcmp(b.at, "hello world", 11) == 0);
    CHECK_OK(hn_write_file_atomic(path, "x", 1, &dg), &dg); /* the map keeps the old file */
    CHECK(memcmp(b.at, "hello world", 11) == 0);
    hn_unmap(&b);
    hn_unmap(&b);
    CHECK_OK(hn_map_file(path, &b, &dg), &dg);
    CHECK_EQ(b.n, 1);
    hn_unmap(&b);
    CHECK_OK(hn_write_file_atomic(in_folder("empty"), NULL, 0, &dg), &dg);
    CHECK_OK(hn_map_file(in_folder("empty"), &b, &dg), &dg);
    CHECK_EQ(b.n, 0);
    hn_unmap(&b);
    struct stat st;
    const mode_t mask = umask(0);
    umask(mask);
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 0777, 0666 & ~mask);
    drop_folder();
}

TEST(file_errors_name_path_and_reason)
{
    hn_diag dg = { 0 };
    hn_bytes b;
    make_folder();
    CHECK_ERR(hn_map_file(in_folder("none"), &b, &dg), HONE_E_NOTFOUND, &dg, "No such file");
    CHECK_ERR(hn_map_file(folder, &b, &dg), HONE_E_IO, &dg, "Is a directory");
    CHECK_EQ(mkfifo(in_folder("fifo"), 0600), 0);
    CHECK_ERR(hn_map_file(in_folder("fifo"), &b, &dg), HONE_E_IO, &dg, "not a regular file");
    CHECK_ERR(hn_write_file_atomic(in_folder("no/such"), "x", 1, &dg), HONE_E_NOTFOUND, &dg, "no/such");
    CHECK_ERR(hn_append_file(folder, "x", 1, &dg), HONE_E_IO, &dg, folder);
    CHECK_OK(hn_make_dirs(in_folder("d/e/f"), &dg), &dg);
    CHECK_OK(hn_make_dirs(in_folder("d/e/f/"), &dg), &dg);
    CHECK_OK(hn_write_file_atomic(in_folder("d/file"), "x", 1, &dg), &dg);
    CHECK_ERR(hn_make_dirs(in_folder("d/file/g"), &dg), HONE_E_IO, &dg, "Not a directory");
    CHECK(hn_file_exists(in_folder("d/e/f")) && !hn_file_exists(in_folder("d/e/g")));
    CHECK_ERR(hn_write_file_atomic(in_folder("d/e"), "x", 1, &dg), HONE_E_IO, &dg,
              "d/e"); /* a folder in the way */
    char command[128];
    snprintf(command, sizeof command, "test $(ls '%s/d' | wc -l) -eq 2", folder); /* no temporary left */
    CHECK_EQ(system(command), 0);
    drop_folder();
}

TEST(file_appends_do_not_mix)
{
    enum { N_PROC = 4, N_RECORD = 200 };
    hn_diag dg = { 0 };
    hn_bytes b;
    make_folder();
    for (int k = 0; k < N_PROC; k++)
        if (fork() == 0) {
            char record[100];
            memset(record, 'a' + k, sizeof record);
            record[99] = '\n';
            for (int i = 0; i < N_RECORD; i++)
                if (hn_append_file(in_folder("log"), record, sizeof record, NULL) != HONE_OK) _exit(1);
            _exit(0);
        }
    for (int k = 0; k < N_PROC; k++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_OK(hn_map_file(in_folder("log"), &b, &dg), &dg);
    CHECK_EQ(b.n, N_PROC * N_RECORD * 100);
    for (size_t i = 0; i < b.n; i++)
        CHECK(i % 100 == 99 ? b.at[i] == '\n' : b.at[i] == b.at[i / 100 * 100]);
    hn_unmap(&b);
    drop_folder();
}

TEST(cache_folder_from_the_environment)
{
    setenv("HONE_CACHE_DIR", "/x/y", 1);
    char *p = hn_cache_dir();
    CHECK_STR(p, "/x/y");
    free(p);
    unsetenv("HONE_CACHE_DIR");
    setenv("XDG_CACHE_HOME", "/x", 1);
    p = hn_cache_dir();
    CHECK_STR(p, "/x/hone");
    free(p);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "/h", 1);
    p = hn_cache_dir();
    CHECK_STR(p, "/h/.cache/hone");
    free(p);
    unsetenv("HOME");
    CHECK(hn_cache_dir() == NULL);
}

TEST(peak_memory_is_the_programs_own)
{
    enum { N = 96 << 20 };
    const int64_t before = hn_peak_rss_bytes();
    CHECK(before > 100 << 10);
    char *p = malloc(N);
    CHECK(p != NULL);
    for (size_t i = 0; i < N; i += 4096) ((volatile char *)p)[i] = 1;
    CHECK(hn_peak_rss_bytes() >= before && hn_peak_rss_bytes() >= N);
    free(p);
}

/* ---- clock and randomness ---- */
TEST(clock_moves)
{
    const int64_t a = hn_now_ns(), cpu = hn_cpu_ns();
    hn_sleep_ns(20 * 1000 * 1000);
    CHECK(hn_now_ns() - a >= 20 * 1000 * 1000);
    CHECK(hn_cpu_ns() - cpu < 15 * 1000 * 1000);
    hn_sleep_ns(-5);
}

TEST(rng_known_values_and_moments)
{
    hn_rng r = { { 1, 2, 3, 4 } };
    static const uint64_t want[] = { 11520, 0, 1509978240,
                                     1215971899390074240 }; /* published for this state */
    for (int i = 0; i < 4; i++)
        CHECK_EQ(hn_rng_u64(&r), want[i]);
    hn_rng_init(&r, 0);
    double sum = 0, square = 0, unit = 0;
    int64_t count[7] = { 0 };
    enum { N = 200000 };
    for (int i = 0; i < N; i++) {
        const double x = hn_rng_normal(&r), u = hn_rng_unit(&r);
        CHECK(u >= 0 && u < 1 && x == x);
        sum += x;
        square += x * x;
        unit += u;
        count[hn_rng_below(&r, 7)]++;
    }
    CHECK_NEAR(sum / N, 0, 0.02);
    CHECK_NEAR(square / N, 1, 0.03);
    CHECK_NEAR(unit / N, 0.5, 0.01);
    for (int i = 0; i < 7; i++)
        CHECK_NEAR((double)count[i] / N, 1.0 / 7, 0.01);
    CHECK_EQ(hn_rng_below(&r, 1), 0);
    for (int i = 0; i < 100; i++)
        CHECK(hn_rng_below(&r, INT64_MAX) >= 0);
}

/* ---- log ---- */
static hn_log_level last_level;
static char last_text[100];

static void sink(void *user, hn_log_level level, const char *text)
{
    ++*(int *)user;
    last_level = level;
    strncpy(last_text, text, sizeof last_text - 1);
    hn_log(HN_LOG_DEBUG, "from inside the sink"); /* above the level set below: dropped, and no deadlock */
}

TEST(log_levels)
{
    int n = 0;
    hn_log(HN_LOG_ERROR, "nowhere");
    CHECK(!hn_log_on(HN_LOG_ERROR));
    hn_log_set(sink, &n, HN_LOG_INFO);
    hn_log(HN_LOG_INFO, "n is %d", 3);
    hn_log(HN_LOG_VERBOSE, "too fine");
    CHECK_EQ(n, 1);
    CHECK_STR(last_text, "n is 3");
    CHECK_EQ(last_level, HN_LOG_INFO);
    CHECK(hn_log_on(HN_LOG_WARN) && !hn_log_on(HN_LOG_DEBUG));
    hn_log_set(NULL, NULL, HN_LOG_DEBUG);
    hn_log(HN_LOG_ERROR, "dropped");
    CHECK_EQ(n, 1);
}

/* ---- processes ---- */
static void end_is(hn_proc *p, const char *want)
{
    char how[64];
    hn_proc_end(p, how, sizeof how);
    CHECK_STR(how, want);
    CHECK_EQ(p->pid, 0);
    hn_proc_end(p, how, sizeof how);
}

static hn_proc shell(const char *script, const hn_proc_limits *limits)
{
    const char *const argv[] = { "sh", "-c", script, NULL };
    hn_diag dg = { 0 };
    hn_proc p;
    CHECK_OK(hn_proc_spawn(argv, limits, &p, &dg), &dg);
    return p;
}

TEST(proc_round_trip_larger_than_a_pipe)
{
    enum { N = 1 << 16, ROUNDS = 10 };
    hn_diag dg = { 0 };
    hn_proc p = shell("exec cat", NULL);
    char *out = malloc(N), *in = malloc(N);
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < N; i++)
            out[i] = (char)(i * 31 + k);
        CHECK_OK(hn_proc_write(&p, out, N / 2, 0, &dg), &dg);
        CHECK_OK(hn_proc_read(&p, in, N / 2, hn_now_ns() + 10000000000, &dg), &dg);
        CHECK(memcmp(in, out, N / 2) == 0);
    }
    free(in);
    free(out);
    end_is(&p, "exit status 0"); /* cat leaves when its input closes */
}

TEST(proc_deadlines)
{
    hn_diag dg = { 0 };
    char c, *big = calloc(1, 1 << 20);
    hn_proc p = shell("exec sleep 1000", NULL);
    const int64_t t0 = hn_now_ns();
    CHECK_ERR(hn_proc_read(&p, &c, 1, t0 + 50000000, &dg), HONE_E_TIMEOUT, &dg, "in time");
    CHECK(hn_now_ns() - t0 >= 50000000);
    CHECK_ERR(hn_proc_write(&p, big, 1 << 20, hn_now_ns() + 50000000, &dg), HONE_E_TIMEOUT, &dg, "in time");
    end_is(&p, "signal 9 (SIGKILL)");
    free(big);
}

TEST(proc_crash_and_exit_status)
{
    hn_diag dg = { 0 };
    char c;
    hn_proc p = shell("kill -SEGV $$", NULL);
    CHECK_ERR(hn_proc_read(&p, &c, 1, 0, &dg), HONE_E_CRASH, &dg, "closed its pipe");
    end_is(&p, "signal 11 (SIGSEGV)");

    p = shell("exit 3", NULL);
    CHECK_ERR(hn_proc_read(&p, &c, 1, 0, &dg), HONE_E_CRASH, &dg, NULL);
    hone_status s = HONE_OK; /* no SIGPIPE: we would not get further */
    for (int i = 0; i < 5000 && s == HONE_OK; i++) {
        s = hn_proc_write(&p, "x", 1, 0, &dg);
        if (s == HONE_OK) hn_sleep_ns(1000000); /* its end of the other pipe may close a moment later */
    }
    CHECK_ERR(s, HONE_E_CRASH, &dg, NULL);
    sigset_t pending;
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    end_is(&p, "exit status 3");
}

TEST(proc_program_not_found)
{
    const char *const argv[] = { "/no/such/program", NULL };
    hn_diag dg = { 0 };
    hn_proc p = { .pid = 42 };
    CHECK_ERR(hn_proc_spawn(argv, NULL, &p, &dg), HONE_E_NOTFOUND, &dg, "/no/such/program");
    CHECK_EQ(p.pid, 42);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_EQ(errno, ECHILD);
}

TEST(proc_limits_hold)
{
    const hn_proc_limits cpu = { .cpu_s = 1 }, memory = { .memory_bytes = 50 << 20 };
    hn_diag dg = { 0 };
    char c[8];
    hn_proc p = shell("while :; do :; done", &cpu);
    CHECK_ERR(hn_proc_read(&p, c, 1, 0, &dg), HONE_E_CRASH, &dg, NULL);
    char how[64];
    hn_proc_end(&p, how, sizeof how);
    CHECK(strstr(how, "SIGXCPU") || strstr(how, "SIGKILL"));
    p = shell("ulimit -v; ulimit -c", &memory);
    CHECK_OK(hn_proc_read(&p, c, 8, 0, &dg), &dg);
    CHECK(memcmp(c, "51200\n0\n", 8) == 0);
    end_is(&p, "exit status 0");
}

/* A worker's own children go with it, and the host's descriptors stay out of it. */
TEST(proc_group_and_descriptors)
{
    hn_diag dg = { 0 };
    char text[64] = { 0 }, script[200];
    int host[2], pid = 0;
    CHECK_EQ(pipe(host), 0); /* not close-on-exec, as a careless host has it */
    snprintf(
        script, sizeof script,
        "sleep 30 >/dev/null 2>&1 & echo $!; test -e /proc/$$/fd/%d && echo leaked || echo closed; exec cat",
        host[0]);
    hn_proc p = shell(script, NULL);
    hone_status s = HONE_OK;
    for (int i = 0; i < (int)sizeof text - 1 && !strstr(text, "ed\n") && s == HONE_OK; i++)
        s = hn_proc_read(&p, &text[i], 1, hn_now_ns() + 10000000000, &dg);
    hn_proc_end(&p, NULL, 0);
    CHECK_OK(s, &dg);
    CHECK(sscanf(text, "%d", &pid) == 1 && pid > 1);
    CHECK(strstr(text, "closed\n") != NULL);
    for (int i = 0; i < 2000 && kill(pid, 0) == 0; i++) { /* a zombie until its new parent reaps it */
        char path[64], stat[256] = { 0 };
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        const int fd = open(path, O_RDONLY);
        if (fd < 0) break;
        CHECK(read(fd, stat, sizeof stat - 1) >= 0);
        close(fd);
        if (strstr(stat, ") Z")) break;
        CHECK(i < 1999);
        hn_sleep_ns(1000000);
    }
    close(host[0]);
    close(host[1]);
}

/* ---- processors ---- */
static void put(const char *name, const char *text)
{
    hn_diag dg = { 0 };
    const char *path = in_folder(name);
    char parent[256];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    CHECK_OK(hn_make_dirs(parent, &dg), &dg);
    CHECK_OK(hn_write_file_atomic(path, text, strlen(text), &dg), &dg);
}

TEST(cpus_cgroup_quotas)
{
    make_folder();
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/a/b\n"), INT32_MAX);
    put("a/b/cpu.max", "max 100000\n");
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/a/b\n"), INT32_MAX);
    put("a/cpu.max", "350000 100000\n"); /* an ancestor limits too */
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/a/b\n"), 3);
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/"), INT32_MAX);
    put("a/b/cpu.max", "50000 100000\n");
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/a/b"), 1);
    put("cpu,cpuacct/x/cpu.cfs_quota_us", "200000\n");
    put("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    put("cpu/y/cpu.cfs_quota_us", "-1\n");
    put("cpu/y/cpu.cfs_period_us", "100000\n");
    CHECK_EQ(hn_cgroup_cpus_(folder, "11:memory:/x\n4:cpu,cpuacct:/x/z\n"), 2);
    CHECK_EQ(hn_cgroup_cpus_(folder, "4:cpuset:/x\n"), INT32_MAX);
    CHECK_EQ(hn_cgroup_cpus_(folder, "3:cpu:/y\n"), INT32_MAX);
    CHECK_EQ(hn_cgroup_cpus_(folder, "junk\n:\n::\n1:\n"), INT32_MAX);
    put("a/b/cpu.max", "garbage");
    CHECK_EQ(hn_cgroup_cpus_(folder, "0::/a/b"), 3);
    drop_folder();
}

TEST(cpus_affinity_is_respected)
{
    CHECK(hn_cpu_count() >= 1);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    CHECK_EQ(hn_cpu_count(), 1);
}
