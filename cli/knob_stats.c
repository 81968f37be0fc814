/* hone knobs --stats: which knobs a set of models reads, how many engines they make of it, what trials proved of them. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_KNOBS = 512, MAX_VALUES = 4, MAX_ENGINES = 64, DIGEST_CHARS = 33 };

/** What is known of one knob. */
typedef struct stat_row {
    const cJSON *knob; /* its registry entry */
    int models, nodes; /* that read it */
    int engines;       /* different ones that its values gave, over all models */
    double ratio, lo, hi;
    char *setting, *where; /* of the largest proven effect; NULL: none */
} stat_row;

typedef struct stats {
    const cli_options *o;
    cJSON *registry;
    stat_row row[MAX_KNOBS];
    int n;
    char engine[32]; /* scratch file */
    cJSON *names;    /* model digest -> file */
} stats;

static const char *text_of(const cJSON *x, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(x, key));
    return s ? s : "";
}

static double number_of(const cJSON *x, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(x, key);
    return cJSON_IsNumber(n) ? cJSON_GetNumberValue(n) : 0;
}

static stat_row *find_row(stats *s, const char *name, size_t n)
{
    for (int i = 0; i < s->n; i++) {
        const char *have = text_of(s->row[i].knob, "name");
        if (strlen(have) == n && memcmp(have, name, n) == 0) return &s->row[i];
    }
    return NULL;
}

/* ---- values to try ---- */
typedef struct values {
    char text[MAX_VALUES][32];
    int n;
} values;

static void add_value(values *v, const cJSON *knob, const char *text, size_t n)
{
    char word[32] = "";
    if (n >= sizeof word || v->n == MAX_VALUES) return;
    memcpy(word, text, n);
    if (strcmp(word, text_of(knob, "default")) == 0) return;
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->text[i], word) == 0) return;
    memcpy(v->text[v->n++], word, sizeof word);
}

/* First, last and one between, the default left out. */
static values values_of(const cJSON *knob)
{
    values v = { 0 };
    const char *domain = text_of(knob, "domain"), *dots = strstr(domain, "..");
    if (strncmp(domain, "pow2 ", 5) == 0) domain += 5;
    if (dots) {
        add_value(&v, knob, domain, (size_t)(dots - domain));
        add_value(&v, knob, dots + 2, strlen(dots + 2));
        if (atoll(domain) < 1) add_value(&v, knob, "1", 1);
        if (atoll(domain) < 4 && atoll(dots + 2) > 4) add_value(&v, knob, "4", 1);
        return v;
    }
    int bars = 0, at = 0;
    for (const char *p = domain; *p; p++) bars += *p == '|';
    for (const char *p = domain; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL, at++)
        if (at <= 1 || at == (bars + 1) / 2 || at == bars) add_value(&v, knob, p, strcspn(p, "|"));
    return v;
}

/* ---- models ---- */
/* A build by the cost model alone: the same on every machine, and quick. */
static hone_status build(const stats *s, hone_model *m, const char *setting, hone_report **ret, hone_error **err)
{
    char route[1024];
    hone_build_options b = s->o->build;
    snprintf(route, sizeof route, "%s %s", s->o->build.route ? s->o->build.route : "", setting);
    b.route = route;
    b.frozen = true;
    b.timing_cache = "";
    b.progress = NULL;
    return hone_build(m, &b, s->engine, ret, err);
}

typedef char payloads[MAX_ENGINES][DIGEST_CHARS];

static bool is_new(payloads seen, int *n, const char *payload)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(seen[i], payload) == 0) return false;
    if (*n < MAX_ENGINES) snprintf(seen[(*n)++], DIGEST_CHARS, "%s", payload);
    return true;
}

/* Engines that the values of one knob give, the default's among them. */
static hone_status count_engines(stats *s, hone_model *m, stat_row *row, const char *dflt, hone_error **err)
{
    payloads seen;
    int n = 0;
    const values v = values_of(row->knob);
    is_new(seen, &n, dflt);
    for (int i = 0; i < v.n; i++) {
        char setting[128];
        hone_report *r = NULL;
        snprintf(setting, sizeof setting, "-%s=%s", text_of(row->knob, "name"), v.text[i]);
        const hone_status status = build(s, m, setting, &r, err);
        if (status != HONE_OK) return status;
        cJSON *j = cJSON_Parse(hone_report_json(r));
        is_new(seen, &n, text_of(j, "payload"));
        cJSON_Delete(j);
        hone_report_free(r);
    }
    row->engines += n - 1;
    return HONE_OK;
}

static int nodes_that_read(const cJSON *report, const char *name)
{
    const cJSON *r;
    int n = 0;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(report, "knobs_read")) n += strcmp(text_of(r, "knob"), name) == 0;
    return n;
}

static hone_status look_at(stats *s, hone_model *m, const char *path, hone_error **err)
{
    hone_report *r = NULL;
    hone_status status = build(s, m, "", &r, err);
    if (status != HONE_OK) return status;
    cJSON *j = cJSON_Parse(hone_report_json(r));
    cJSON_AddStringToObject(s->names, text_of(j, "model_digest"), path);
    const double start = cli_now();
    for (int i = 0; i < s->n && status == HONE_OK; i++) {
        stat_row *row = &s->row[i];
        const int nodes = nodes_that_read(j, text_of(row->knob, "name"));
        const double elapsed = cli_now() - start;
        if (nodes == 0) continue;
        cli_progress(NULL, path, i, s->n, elapsed, i ? elapsed * (s->n - i) / i : 0);
        row->models++;
        row->nodes += nodes;
        status = count_engines(s, m, row, text_of(j, "payload"), err);
    }
    cJSON_Delete(j);
    hone_report_free(r);
    return status;
}

static hone_status add_model(stats *s, const char *path, hone_error **err)
{
    hone_model *m = NULL;
    hone_status status = hone_model_load(path, &s->o->model, &m, err);
    if (status == HONE_OK) status = look_at(s, m, path, err);
    hone_model_free(m);
    return status;
}

/* ---- trial stores ---- */
/* The only setting that a has and b has not, when b has none that a lacks; NULL otherwise. */
static const char *one_more(const char *a, const char *b)
{
    const char *more = NULL;
    size_t n_a = 0, n_b = 0;
    for (const char *p = b; *(p += strspn(p, " ")); p += strcspn(p, " ")) n_b++;
    for (const char *p = a; *(p += strspn(p, " ")); p += strcspn(p, " ")) {
        const size_t n = strcspn(p, " ");
        bool shared = false;
        n_a++;
        for (const char *q = b; *(q += strspn(q, " ")) && !shared; q += strcspn(q, " "))
            shared = strcspn(q, " ") == n && memcmp(p, q, n) == 0;
        if (!shared && more) return NULL;
        if (!shared) more = p;
    }
    return n_a == n_b + 1 ? more : NULL;
}

static double strength(double lo, double hi)
{
    return lo > 1 ? log(lo) : hi > 0 && hi < 1 ? -log(hi) : 0;
}

/* The file of a trial's model where it was given, else "". */
static const char *model_of(const stats *s, const cJSON *trial)
{
    char digest[DIGEST_CHARS] = "";
    const char *key = text_of(trial, "key");
    memcpy(digest, key, strnlen(key, DIGEST_CHARS - 1));
    return text_of(s->names, digest);
}

enum { FASTER = 1, SAME_ENGINE = 3 }; /* outcomes as the store numbers them */

static void take_effect(stats *s, const cJSON *trial, const char *setting)
{
    const size_t n = strcspn(setting, " "), n_name = strcspn(setting, "=@");
    stat_row *row = n_name > 1 ? find_row(s, setting + 1, n_name - 1) : NULL;
    const double lo = number_of(trial, "lo"), hi = number_of(trial, "hi");
    if (row && !*model_of(s, trial)) row->engines += (int)number_of(trial, "outcome") != SAME_ENGINE;
    if (!row || strength(lo, hi) <= (row->setting ? strength(row->lo, row->hi) : 0)) return;
    const char *path = model_of(s, trial);
    free(row->setting);
    free(row->where);
    row->ratio = number_of(trial, "ratio");
    row->lo = lo;
    row->hi = hi;
    row->setting = strndup(setting, n);
    row->where = *path ? strdup(path) : strndup(text_of(trial, "key"), DIGEST_CHARS - 1);
}

/* The knobs that a model's build read; models that stand on the command line have been counted. */
static void add_readers(stats *s, const cJSON *trial)
{
    if (*model_of(s, trial)) return;
    for (const char *p = text_of(trial, "knobs"); *(p += strspn(p, " ")); p += strcspn(p, " ")) {
        stat_row *row = find_row(s, p, strcspn(p, " "));
        if (row) row->models++;
    }
}

/*
 * A trial's ratio is against what led at the time: the last trial before it that was proven faster. Its effect belongs to one
 * knob when its route is the leader's and one setting more.
 */
static void add_trials(stats *s, const cJSON *trials)
{
    const cJSON *t;
    const char *leader = "", *key = "";
    cJSON *seen = cJSON_CreateObject();
    cJSON_ArrayForEach(t, trials)
    {
        if (strcmp(key, text_of(t, "key")) != 0) leader = "";
        key = text_of(t, "key");
        if (!cJSON_GetObjectItem(seen, key)) add_readers(s, t);
        cJSON_AddTrueToObject(seen, key);
        const char *setting = one_more(text_of(t, "route"), leader);
        if (setting) take_effect(s, t, setting);
        if ((int)number_of(t, "outcome") == FASTER) leader = text_of(t, "route");
    }
    cJSON_Delete(seen);
}

static hone_status add_store(stats *s, const char *path, hone_error **err)
{
    char *lines = NULL;
    const hone_status status = hone_trials_export(path, &lines, err);
    if (status != HONE_OK) return status;
    cJSON *all = cJSON_CreateArray();
    for (const char *p = lines; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        cJSON *t = cJSON_ParseWithLength(p, strcspn(p, "\n"));
        if (t) cJSON_AddItemToArray(all, t);
    }
    add_trials(s, all);
    cJSON_Delete(all);
    hone_string_free(lines);
    return HONE_OK;
}

static bool is_store(const char *path)
{
    char head[16] = "";
    FILE *f = fopen(path, "rb");
    if (f) (void)!fread(head, 1, sizeof head - 1, f);
    if (f) fclose(f);
    return memcmp(head, "SQLite format 3", 15) == 0;
}

/* ---- output ---- */
static void print_row(const stat_row *r)
{
    printf("%-26s %6d %6d %8d  ", text_of(r->knob, "name"), r->models, r->nodes, r->engines);
    if (r->setting) printf("%.3f [%.3f, %.3f] %s, %s\n", r->ratio, r->lo, r->hi, r->setting, r->where);
    else printf("-\n");
}

static void print_table(const stats *s)
{
    int read = 0, real = 0, proven = 0;
    printf("%-26s %6s %6s %8s  %s\n", "knob", "models", "nodes", "engines", "proven: time before over time with it");
    for (int i = 0; i < s->n; i++) {
        print_row(&s->row[i]);
        read += s->row[i].models > 0;
        real += s->row[i].engines > 0;
        proven += s->row[i].setting != NULL;
    }
    printf("%d knobs; %d read, %d make another engine of a model, %d with a proven effect\n", s->n, read, real, proven);
}

static cJSON *json_row(const stat_row *r)
{
    cJSON *j = cJSON_CreateObject(), *e = NULL;
    cJSON_AddStringToObject(j, "name", text_of(r->knob, "name"));
    cJSON_AddNumberToObject(j, "models", r->models);
    cJSON_AddNumberToObject(j, "nodes", r->nodes);
    cJSON_AddNumberToObject(j, "engines", r->engines);
    if (!r->setting) return j;
    e = cJSON_AddObjectToObject(j, "effect");
    cJSON_AddNumberToObject(e, "ratio", r->ratio);
    cJSON_AddNumberToObject(e, "lo", r->lo);
    cJSON_AddNumberToObject(e, "hi", r->hi);
    cJSON_AddStringToObject(e, "setting", r->setting);
    cJSON_AddStringToObject(e, "where", r->where);
    return j;
}

static void print_stats(const stats *s)
{
    if (!s->o->json) {
        print_table(s);
        return;
    }
    cJSON *j = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(j, "knobs");
    for (int i = 0; i < s->n; i++) cJSON_AddItemToArray(list, json_row(&s->row[i]));
    cli_print_json(j);
}

/* ---- the command ---- */
static void list_knobs(stats *s)
{
    char *text = hone_knobs_json();
    const cJSON *k;
    s->registry = text ? cJSON_Parse(text) : NULL;
    hone_string_free(text);
    cJSON_ArrayForEach(k, cJSON_GetObjectItem(s->registry, "knobs"))
        if (cJSON_IsTrue(cJSON_GetObjectItem(k, "tunable")) && s->n < MAX_KNOBS) s->row[s->n++].knob = k;
}

/* Models first: a store names its models by digest alone. */
static hone_status add_all(stats *s, char *const *path, int n, hone_error **err)
{
    for (int stores = 0; stores < 2; stores++)
        for (int i = 0; i < n; i++) {
            if (is_store(path[i]) != (stores == 1)) continue;
            const hone_status status = stores ? add_store(s, path[i], err) : add_model(s, path[i], err);
            if (status != HONE_OK) return status;
        }
    return HONE_OK;
}

int cli_knob_stats(const cli_options *o)
{
    stats *s = calloc(1, sizeof *s);
    hone_error *err = NULL;
    if (!s) return HONE_E_NOMEM;
    s->o = o;
    s->names = cJSON_CreateObject();
    strcpy(s->engine, "/tmp/hone-knobs-XXXXXX");
    const int fd = mkstemp(s->engine);
    if (fd < 0) {
        free(s);
        return cli_misuse(o, "no temporary file can be made for engines");
    }
    close(fd);
    list_knobs(s);
    const hone_status status = add_all(s, o->word, o->n_word, &err);
    remove(s->engine); /* before a reader of the output can go away */
    if (status == HONE_OK) print_stats(s);
    for (int i = 0; i < s->n; i++) {
        free(s->row[i].setting);
        free(s->row[i].where);
    }
    cJSON_Delete(s->registry);
    cJSON_Delete(s->names);
    free(s);
    return status == HONE_OK ? 0 : cli_fail(o, err);
}
