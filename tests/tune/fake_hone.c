/* Stands in for the hone program in tests of the tuner: builds nothing, and behaves as the route says.
 *
 * An engine is a file that holds its route. What a setting does:
 *   -region:chain=0     a fifth faster          -region:epilogue=0  a third slower
 *   -region:prologue=0  the default's payload   -math:winograd=1    twice as fast, error 1e-3
 *   -region:outputs=1   a tenth slower
 *   -tactic:rank@region:a=1  a seventh faster
 *   -region:views=0     what $FAKE_FAULT says: crash, hang, oom, nan, fail, crash_running, hang_running
 * A build reads region:chain and region:epilogue, and layout:image as well once chains are off.
 * $FAKE_LOG gets a line per build, $FAKE_STARTS one per process that runs engines, $FAKE_BUILDERS one per process that
 * builds one route after another;
 * $FAKE_EFFECTS is "SETTING FACTOR SETTING FACTOR ..." of times, $FAKE_READS names further knobs that builds read (,"a","b").
 * $FAKE_RUNNERS_UP is what builds say of candidates that nearly won; $FAKE_SLOW_MS delays each build; $FAKE_PROCESS makes every other process slower by this share,
 * $FAKE_NOISE scales the noise of times (default 1).
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUTE = 8192 };

static const char *fault(const char *route)
{
    const char *f = getenv("FAKE_FAULT");
    return f && strstr(route, "-region:views=0") ? f : "";
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void use_up_memory(void)
{
    enum { PIECE = 64 << 20, MOST = 256 };
    for (int i = 0; i < MOST; i++)
        if (!malloc(PIECE)) break;
    puts("{\"status\":\"E_NOMEM\",\"message\":\"out of memory\"}");
    exit(1);
}

static void log_line(const char *variable, const char *line)
{
    const char *path = getenv(variable);
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\n", line);
    fclose(f);
}

static int build_one(const char *route, const char *out)
{
    unsigned payload = 5381;
    log_line("FAKE_LOG", route);
    const char *slow = getenv("FAKE_SLOW_MS"), *f = fault(route);
    if (slow) usleep((unsigned)atoi(slow) * 1000);
    if (is(f, "crash")) abort();
    while (is(f, "hang")) sleep(1);
    if (is(f, "oom")) use_up_memory();
    if (is(f, "fail")) {
        puts("{\"error\":{\"message\":\"no tactic\",\"status\":6}}");
        return 6;
    }
    FILE *e = out ? fopen(out, "w") : NULL;
    if (!e) return 3;
    fputs(route, e);
    fclose(e);
    for (const char *c = route; *c; c++) payload = payload * 33 + (unsigned char)*c;
    if (is(route, "-region:prologue=0")) payload = 5381;
    const char *runners = getenv("FAKE_RUNNERS_UP"), *reads = getenv("FAKE_READS");
    printf("{\"payload\":\"%032x\",\"knobs\":[\"region:chain\",\"region:epilogue\"%s%s],\"runners_up\":{%s}}\n", payload,
           strstr(route, "-region:chain=0") ? ",\"layout:image\"" : "", reads ? reads : "", runners ? runners : "");
    return 0;
}

static bool cut(const char *line, const char *key, char *ret, size_t n)
{
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\"%s\":\"", key);
    const char *at = strstr(line, pattern);
    if (!at) return false;
    at += strlen(pattern);
    const size_t len = strcspn(at, "\"");
    if (len >= n) return false;
    memcpy(ret, at, len);
    ret[len] = 0;
    return true;
}

/* One build a line. */
static int build_standing(void)
{
    char *line = NULL, route[ROUTE] = "", out[4096];
    size_t cap = 0;
    log_line("FAKE_BUILDERS", "");
    while (getline(&line, &cap, stdin) > 0) {
        if (!cut(line, "route", route, sizeof route) || !cut(line, "engine", out, sizeof out)) return 2;
        build_one(route, out);
        fflush(stdout);
    }
    return 0;
}

static int build(int argc, char **argv)
{
    char route[ROUTE] = "", *out = NULL;
    for (int i = 2; i + 1 < argc; i++) {
        if (is(argv[i], "--worker")) return build_standing();
        if (is(argv[i], "-o")) out = argv[i + 1];
        if (!is(argv[i], "--set")) continue;
        if (*route) strcat(route, " ");
        strncat(route, argv[i + 1], sizeof route / 2 - 1);
    }
    return build_one(route, out);
}

/* ---- running ---- */
static double unit(void)
{
    return (double)rand() / RAND_MAX;
}

/* The product of the factors of those settings that the route has. */
static double effects(const char *route)
{
    char setting[128];
    double product = 1, factor;
    int n;
    for (const char *at = getenv("FAKE_EFFECTS"); at && sscanf(at, "%127s %lf%n", setting, &factor, &n) == 2; at += n)
        if (strstr(route, setting)) product *= factor;
    return product;
}

/* Placement fixes a bias for each loading; a slow walk and spikes come on top: the noise of real machines, only worse. */
static double time_of(const char *route, double bias)
{
    static double walk;
    const char *n = getenv("FAKE_NOISE");
    const double noise = n ? atof(n) : 1;
    double t = 100000 * effects(route);
    if (strstr(route, "-region:chain=0")) t *= 0.8;
    if (strstr(route, "-tactic:rank@region:a=1")) t *= 0.86;
    if (strstr(route, "-region:outputs=1")) t *= 1.1;
    if (strstr(route, "-region:epilogue=0")) t *= 1.33;
    if (strstr(route, "-math:winograd=1")) t *= 0.5;
    walk = 0.9 * walk + 0.01 * (unit() - 0.5);
    return t * (1 + noise * (bias + walk + 0.02 * (unit() - 0.5) + (unit() < 0.02 ? unit() : 0)));
}

static void load(const char *path, char *route, size_t n)
{
    FILE *f = fopen(path, "r");
    const size_t got = f ? fread(route, 1, n - 1, f) : 0;
    route[got] = 0;
    if (f) fclose(f);
    puts(f ? "{\"ok\":true}" : "{\"ok\":false,\"error\":\"no such engine\"}");
}

/* The model of the tests is y = x + x over one element that is 1. */
static void outputs(const char *dir, const char *route)
{
    char path[4096 + 16];
    float y = 2;
    if (strstr(route, "-math:winograd=1")) y *= 1.001F;
    if (is(fault(route), "nan")) y = NAN;
    mkdir(dir, 0777);
    snprintf(path, sizeof path, "%s/output_1.npy", dir);
    FILE *f = fopen(path, "w");
    if (!f) exit(3);
    char head[129];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 57);
    head[127] = '\n';
    fwrite(head, 1, 128, f);
    fwrite(&y, 1, sizeof y, f);
    fclose(f);
    puts("{\"ok\":true}");
}

static int worker(void)
{
    char *line = NULL, route[ROUTE] = "", text[4096];
    size_t cap = 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    srand((unsigned)now.tv_nsec ^ (unsigned)getpid());
    const char *own = getenv("FAKE_PROCESS");
    const double of_process = own && getpid() % 2 ? atof(own) : 0;
    double bias = 0;
    log_line("FAKE_STARTS", "");
    while (getline(&line, &cap, stdin) > 0) {
        if (strstr(line, "\"load\"") && cut(line, "engine", text, sizeof text)) {
            load(text, route, sizeof route);
            bias = 0.02 * (unit() - 0.5);
        } else if (strstr(line, "\"outputs\"") && cut(line, "dir", text, sizeof text)) {
            outputs(text, route);
        } else if (strstr(line, "\"block\"")) {
            if (is(fault(route), "crash_running")) abort();
            while (is(fault(route), "hang_running")) sleep(1);
            printf("{\"ok\":true,\"times_ns\":[");
            for (int i = 0; i < 5; i++) printf("%s%.0f", i ? "," : "", time_of(route, bias) * (1 + of_process));
            puts("]}");
        } else {
            puts("{\"ok\":true}");
        }
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && is(argv[1], "build")) return build(argc, argv);
    return worker();
}
