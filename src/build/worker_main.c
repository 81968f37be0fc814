/* hone-worker: does for a build what may end a process: compiles kernels, or times them on a GPU. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "build/heat.h"
#include "codegen/codegen.h"

int main(int argc, char **argv)
{
    enum { NO_STREAM = 71 };
    /* stdout carries replies alone: whatever else is printed goes to stderr */
    const int reply_fd = dup(STDOUT_FILENO);
    if (reply_fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return NO_STREAM;
    signal(SIGPIPE, SIG_IGN);
    return argc > 1 && strcmp(argv[1], "race") == 0 ? hn_heat_serve(STDIN_FILENO, reply_fd) : hn_worker_serve(reply_fd);
}
