/* The timing cache: measured nanoseconds by content key, in a text file that people can read, merge and commit. */
#include "build/build_int.h"

#include <inttypes.h>
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
};

static const char magic[] = "hone-timing 1\n";

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
    if (!hn_timing_get(t, e.key, &(double){ 0 })) hn_vec_push(t->a, &t->at, e);
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

hone_status hn_timing_open(hn_arena *a, const char *path, hn_timing **ret, hn_diag *dg)
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
    }
    *ret = t;
    return HONE_OK;
}

bool hn_timing_get(const hn_timing *t, hn_digest key, double *ret_ns)
{
    for (int i = 0; t && i < t->at.n; i++)
        if (hn_digest_eq(t->at.at[i].key, key)) {
            *ret_ns = t->at.at[i].ns;
            return true;
        }
    return false;
}

void hn_timing_put(hn_timing *t, hn_digest key, double ns, const char *note)
{
    if (t && !hn_timing_get(t, key, &(double){ 0 })) hn_vec_push(t->a, &t->at, ((entry){ key, ns, note }));
}

/* Append only what is new, in one write: several processes may share the file. */
hone_status hn_timing_save(hn_timing *t, hn_diag *dg)
{
    if (!t || t->loaded == t->at.n) return HONE_OK;
    hn_str s = { 0 };
    char text[HN_DIGEST_TEXT];
    if (!hn_file_exists(t->path)) hn_str_add(&s, magic);
    for (int i = t->loaded; i < t->at.n; i++)
        hn_str_addf(&s, "%s %.1f %s\n", hn_digest_text(t->at.at[i].key, text), t->at.at[i].ns, t->at.at[i].note);
    const hone_status r = s.oom ? HN_NOMEM(dg) : hn_append_file(t->path, s.s, s.n, dg);
    if (r == HONE_OK) t->loaded = t->at.n;
    hn_str_done(&s);
    return r;
}
