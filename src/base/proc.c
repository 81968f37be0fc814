/* Worker processes: spawned with pipes and limits, talked to with deadlines, ended with a reason. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

struct pipes {
    int in[2], out[2], failure[2]; /* failure carries errno when exec does not happen */
};

static void close_pair(int fd[2])
{
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0) close(fd[i]);
        fd[i] = -1;
    }
}

static void close_pipes(struct pipes *p)
{
    close_pair(p->in);
    close_pair(p->out);
    close_pair(p->failure);
}

/* Both ends above the standard descriptors, which a host may have closed, so that dup2 in the child cannot
 * clash. */
static bool open_pipe(int fd[2])
{
    if (pipe2(fd, O_CLOEXEC) != 0) return false;
    for (int i = 0; i < 2; i++) {
        if (fd[i] > STDERR_FILENO) continue;
        const int moved = fcntl(fd[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(fd[i]);
        fd[i] = moved;
    }
    return fd[0] >= 0 && fd[1] >= 0;
}

static void set_limit(int what, int64_t value)
{
    struct rlimit now, l = { (rlim_t)value, (rlim_t)value };
    if (getrlimit((__rlimit_resource_t)what, &now) == 0 && now.rlim_max < l.rlim_max)
        l.rlim_cur = l.rlim_max = now.rlim_max;
    setrlimit((__rlimit_resource_t)what, &l);
}

/* Between fork and exec: async-signal-safe calls only. */
static HN_NORETURN void child(const char *const *argv, const hn_proc_limits *limits, const struct pipes *p,
                              pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* it died before prctl took hold */
    set_limit(RLIMIT_CORE, 0);
    if (limits && limits->memory_bytes > 0) set_limit(RLIMIT_AS, limits->memory_bytes);
    if (limits && limits->cpu_s > 0) set_limit(RLIMIT_CPU, limits->cpu_s);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->out[1], STDOUT_FILENO) >= 0) {
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC); /* the host's descriptors stay the host's */
        execvp(argv[0], (char *const *)(uintptr_t)argv);
    }
    const int err = errno;
    if (write(p->failure[1], &err, sizeof err) < 0) _exit(126);
    _exit(127);
}

/* errno of a failed exec, 0 once the program runs. */
static int await_exec(int fd)
{
    int err = 0;
    ssize_t n;
    do
        n = read(fd, &err, sizeof err);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof err ? err : 0;
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

hone_status hn_proc_spawn(const char *const *argv, const hn_proc_limits *limits, hn_proc *ret, hn_diag *dg)
{
    HN_CLEANUP(close_pipes) struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    if (!open_pipe(p.in) || !open_pipe(p.out) || !open_pipe(p.failure))
        return HN_RAISE(dg, HONE_E_IO, "cannot open a pipe: %s", strerror(errno));
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) return HN_RAISE(dg, HONE_E_IO, "cannot start a process: %s", strerror(errno));
    if (pid == 0) child(argv, limits, &p, parent);
    setpgid(pid, pid);
    close(p.failure[1]);
    p.failure[1] = -1;
    const int err = await_exec(p.failure[0]);
    if (err) {
        reap(pid);
        return HN_RAISE(dg, err == ENOENT ? HONE_E_NOTFOUND : HONE_E_IO, "cannot start \"%s\": %s", argv[0],
                        strerror(err));
    }
    fcntl(p.in[1], F_SETFL, O_NONBLOCK);
    fcntl(p.out[0], F_SETFL, O_NONBLOCK);
    *ret = (hn_proc){ .pid = pid, .in_fd = p.in[1], .out_fd = p.out[0] };
    p.in[1] = p.out[0] = -1;
    return HONE_OK;
}

static hone_status wait_ready(int fd, short events, int64_t deadline_ns, hn_diag *dg)
{
    for (;;) {
        struct pollfd pf = { .fd = fd, .events = events };
        struct timespec left = { 0 };
        if (deadline_ns) {
            const int64_t ns = HN_MAX(deadline_ns - hn_now_ns(), 0);
            left = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
        }
        const int n = ppoll(&pf, 1, deadline_ns ? &left : NULL, NULL);
        if (n > 0) return HONE_OK;
        if (n == 0) return HN_RAISE(dg, HONE_E_TIMEOUT, "a worker process did not answer in time");
        if (errno != EINTR)
            return HN_RAISE(dg, HONE_E_IO, "cannot wait for a worker process: %s", strerror(errno));
    }
}

static hone_status gone(hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_CRASH, "a worker process closed its pipe");
}

/* write() that yields EPIPE without SIGPIPE ever reaching the host: blocked, and taken back when it was ours.
 */
static ssize_t write_quietly(int fd, const void *data, size_t n)
{
    sigset_t pipe_only, before, pending;
    const struct timespec at_once = { 0, 0 };
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    sigpending(&pending);
    const bool had_one = sigismember(&pending, SIGPIPE) == 1;
    const ssize_t got = write(fd, data, n);
    const int err = errno;
    if (got < 0 && err == EPIPE && !had_one)
        while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR) {
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = err;
    return got;
}

hone_status hn_proc_write(hn_proc *p, const void *data, size_t n, int64_t deadline_ns, hn_diag *dg)
{
    const char *at = data;
    while (n) {
        const ssize_t got = write_quietly(p->in_fd, at, n);
        if (got >= 0) {
            at += got;
            n -= (size_t)got;
        } else if (errno == EAGAIN) {
            HN_TRY(wait_ready(p->in_fd, POLLOUT, deadline_ns, dg));
        } else if (errno == EPIPE) {
            return gone(dg);
        } else if (errno != EINTR) {
            return HN_RAISE(dg, HONE_E_IO, "cannot write to a worker process: %s", strerror(errno));
        }
    }
    return HONE_OK;
}

hone_status hn_proc_read(hn_proc *p, void *data, size_t n, int64_t deadline_ns, hn_diag *dg)
{
    char *at = data;
    while (n) {
        const ssize_t got = read(p->out_fd, at, n);
        if (got == 0) return gone(dg);
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        } else if (errno == EAGAIN) {
            HN_TRY(wait_ready(p->out_fd, POLLIN, deadline_ns, dg));
        } else if (errno != EINTR) {
            return HN_RAISE(dg, HONE_E_IO, "cannot read from a worker process: %s", strerror(errno));
        }
    }
    return HONE_OK;
}

static void describe(const siginfo_t *info, char *dst, size_t n)
{
    if (info->si_code == CLD_EXITED) {
        snprintf(dst, n, "exit status %d", info->si_status);
        return;
    }
    const char *name = sigabbrev_np(info->si_status);
    snprintf(dst, n, "signal %d (SIG%s)", info->si_status, name ? name : "?");
}

/* True once the process has ended; it stays unreaped, so its group id cannot be reused meanwhile. */
static bool has_ended(pid_t pid, int flags, siginfo_t *info)
{
    memset(info, 0, sizeof *info);
    while (waitid(P_PID, (id_t)pid, info, WEXITED | WNOWAIT | flags) != 0)
        if (errno != EINTR) return true;
    return info->si_pid == pid;
}

void hn_proc_end(hn_proc *p, char *ret_how, size_t n)
{
    enum { GRACE_NS = 200 * 1000 * 1000 }; /* a program whose stdin closes may leave by itself */
    siginfo_t info;
    if (p->pid <= 0) return;
    close(p->in_fd);
    close(p->out_fd);
    bool ended = has_ended(p->pid, WNOHANG, &info);
    for (const int64_t until = hn_now_ns() + GRACE_NS; !ended && hn_now_ns() < until;) {
        hn_sleep_ns(500 * 1000);
        ended = has_ended(p->pid, WNOHANG, &info);
    }
    kill(-p->pid, SIGKILL);
    if (!ended) {
        kill(p->pid, SIGKILL);
        has_ended(p->pid, 0, &info);
    }
    if (ret_how && n) describe(&info, ret_how, n);
    reap(p->pid);
    *p = (hn_proc){ .pid = 0, .in_fd = -1, .out_fd = -1 };
}

int64_t hn_peak_rss_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long long kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld kB", &kb) == 1) break;
    if (f) fclose(f);
    return (int64_t)kb * 1024;
}
