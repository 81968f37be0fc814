/* The timing cache: measured nanoseconds by content key, in a text file that people can read, merge and commit. */
#include "build/build_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    hn_digest key;
    double ns;
    const char *note;
} entry;

struct hn_timing {
    hn_arena *a;
    const char *path;
    HN_VEC(entry) at;
    int loaded; /* entries that came from the file */
    int *slot;  /* open addressing by key, entry + 1; a power of two of them, at least twice the entries. A cache grows for months */
    int n_slot;
};

static const char magic[] = "hone-timing 1\n";

/* ---- entries by key ---- */
/* The slot that holds the key, or the free one where it belongs. Keys are digests: their own bits scatter them. */
static int *slot_of(const hn_timing *t, hn_digest key)
{
    uint64_t i = key.lo;
    for (;; i++) {
        int *s = &t->slot[i & (uint64_t)(t->n_slot - 1)];
        if (!*s || hn_digest_eq(t->at.at[*s - 1].key, key)) return s;
    }
}

static bool grow_slots(hn_timing *t)
{
    const int n = t->n_slot ? 2 * t->n_slot : 1024;
    int *p = HN_NEW_N(t->a, int, n);
    if (!p) return false;
    t->slot = p;
    t->n_slot = n;
    for (int i = 0; i < t->at.n; i++) *slot_of(t, t->at.at[i].key) = i + 1;
    return true;
}

static void add(hn_timing *t, entry e)
{
    if (2 * (t->at.n + 1) > t->n_slot && !grow_slots(t)) return;
    int *s = slot_of(t, e.key);
    if (!*s && hn_vec_push(t->a, &t->at, e)) *s = t->at.n;
}

/* "<digest> <ns> <note>": a damaged line loses itself alone. */
static void load_line(hn_timing *t, char *line)
{
    char *sp = strchr(line, ' ');
    if (!sp) return;
    *sp = 0;
    entry e = { 0 };
    char *end;
    if (!hn_digest_parse(line, &e.key)) return;
    e.ns = strtod(sp + 1, &end);
    if (end == sp + 1 || !(e.ns > 0)) return;
    e.note = *end == ' ' ? hn_arena_strdup(t->a, end + 1) : "";
    add(t, e);
}

static void load(hn_timing *t, const hn_bytes *file)
{
    const char *at = (const char *)file->at + sizeof magic - 1, *end = (const char *)file->at + file->n;
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        if (!nl) break; /* a half-written last line */
        char *line = hn_arena_strndup(t->a, at, (size_t)(nl - at));
        if (line) load_line(t, line);
        at = nl + 1;
    }
    t->loaded = t->at.n;
}

/* A place that cannot be written is told before the work, not after it. */
static hone_status start_file(hn_timing *t, hn_diag *dg)
{
    const char *slash = strrchr(t->path, '/');
    if (slash && slash != t->path) HN_TRY(hn_make_dirs(hn_arena_strndup(t->a, t->path, (size_t)(slash - t->path)), dg));
    return hn_append_file(t->path, magic, sizeof magic - 1, dg);
}

hone_status hn_timing_open(hn_arena *a, const char *path, bool read_only, hn_timing **ret, hn_diag *dg)
{
    hn_timing *t = HN_NEW(a, hn_timing);
    if (!t) return HN_NOMEM(dg);
    t->a = a;
    t->path = path;
    if (hn_file_exists(path)) {
        hn_bytes file = { 0 };
        HN_TRY(hn_map_file(path, &file, dg));
        const bool ours = file.n >= sizeof magic - 1 && memcmp(file.at, magic, sizeof magic - 1) == 0;
        if (ours) load(t, &file);
        hn_unmap(&file);
        if (!ours) {
            hn_hint(dg, "name another --timing-cache, or delete the file to start a new one");
            return HN_RAISE(dg, HONE_E_FORMAT, "\"%s\" is no timing cache of this version", path);
        }
    } else if (!read_only) {
        HN_TRY_IN(dg, start_file(t, dg), "starting the timing cache");
    }
    *ret = t;
    return HONE_OK;
}

bool hn_timing_get(const hn_timing *t, hn_digest key, double *ret_ns)
{
    const int i = t && t->n_slot ? *slot_of(t, key) : 0;
    if (i) *ret_ns = t->at.at[i - 1].ns;
    return i != 0;
}

void hn_timing_put(hn_timing *t, hn_digest key, double ns, const char *note)
{
    if (t) add(t, (entry){ key, ns, note });
}

/* Times are whole nanoseconds, peaks multiples of an eighth: ten digits give back what was measured. */
static double peak(hn_timing *t, const char *name, const hn_target *of, double usual, double measured)
{
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_str(&h, name);
    const hn_digest fp = hn_target_fingerprint(of);
    hn_hasher_bytes(&h, &fp, sizeof fp);
    const hn_digest key = hn_hasher_end(&h);
    double v = 0;
    if (hn_timing_get(t, key, &v) && isfinite(v)) return v;
    if (measured <= 0) return usual;
    v = fmax(round(8 * measured), 1) / 8;
    hn_timing_put(t, key, v, name);
    return v;
}

void hn_timing_settle_peaks(hn_timing *t, hn_target *target, bool frozen)
{
    hn_target usual = *target, measured = { 0 };
    if (strcmp(target->name, "host") != 0) return;
    hn_target_usual_peaks(&usual);
    const bool known = peak(t, "peak_gflops", target, 0, 0) > 0 && peak(t, "bandwidth_gbs", target, 0, 0) > 0;
    if (!known && !frozen) hn_target_detect(&measured, /* measure= */ true);
    target->peak_gflops = peak(t, "peak_gflops", target, usual.peak_gflops, measured.peak_gflops);
    target->bandwidth_gbs = peak(t, "bandwidth_gbs", target, usual.bandwidth_gbs, measured.bandwidth_gbs);
}

/* Append only what is new, in one write: several processes may share the file. */
hone_status hn_timing_save(hn_timing *t, hn_diag *dg)
{
    if (!t || t->loaded == t->at.n) return HONE_OK;
    hn_str s = { 0 };
    char text[HN_DIGEST_TEXT];
    for (int i = t->loaded; i < t->at.n; i++)
        hn_str_addf(&s, "%s %.10g %s\n", hn_digest_text(t->at.at[i].key, text), t->at.at[i].ns, t->at.at[i].note);
    const hone_status r = s.oom ? HN_NOMEM(dg) : hn_append_file(t->path, s.s, s.n, dg);
    if (r == HONE_OK) t->loaded = t->at.n;
    hn_str_done(&s);
    return r;
}
