#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/os.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hn_log_fn sink;
static void *sink_user;
static atomic_int max_level = -1; /* below every level while there is no sink */

void hn_log_set(hn_log_fn fn, void *user, hn_log_level level)
{
    pthread_mutex_lock(&lock);
    sink = fn;
    sink_user = user;
    atomic_store(&max_level, fn ? (int)level : -1);
    pthread_mutex_unlock(&lock);
}

bool hn_log_on(hn_log_level level)
{
    return (int)level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

void hn_log(hn_log_level level, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    if (!hn_log_on(level)) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&lock);
    const hn_log_fn fn = sink;
    void *const user = sink_user;
    pthread_mutex_unlock(&lock); /* the sink may log or change the sink */
    if (fn) fn(user, level, text);
}
