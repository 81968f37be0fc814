/* The trial store: one SQLite file, safe for several processes, one transaction a trial: a kill loses at most the trial in
 * flight. */
#include "tune/tune_int.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hn_store {
    sqlite3 *db;
    char *key; /* model, device, knob registry and version together */
    char *path;
};

static hone_status raise(hn_store *s, const char *doing, hn_diag *dg)
{
    const int code = sqlite3_errcode(s->db);
    const bool damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
    if (damaged) hn_hint(dg, "Name another store, or move this file away to start a new one; what is readable, hone trials exports.");
    return HN_RAISE(dg, damaged ? HONE_E_FORMAT : HONE_E_IO, "trial store \"%s\": %s failed: %s", s->path, doing,
                    sqlite3_errmsg(s->db));
}

static const char schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS trial(key TEXT NOT NULL, route TEXT NOT NULL, outcome INTEGER NOT NULL, reason TEXT,"
    " payload TEXT, ratio REAL, lo REAL, hi REAL, err REAL, at TEXT DEFAULT CURRENT_TIMESTAMP, knobs TEXT,"
    " clock_mhz INTEGER, PRIMARY KEY(key, route));";

/* Stores of earlier versions lack the knobs that a trial's build read, and the clock. Another process may be adding them just now. */
static bool add_columns(hn_store *s)
{
    static const char *const later[] = { "knobs TEXT", "clock_mhz INTEGER" };
    for (int i = 0; i < HN_COUNT(later); i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "ALTER TABLE trial ADD COLUMN %s", later[i]);
        if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK && !strstr(sqlite3_errmsg(s->db), "duplicate column"))
            return false;
    }
    return true;
}

enum { PATIENCE_MS = 10000, NAP_MS = 10 };

/* Turning the journal to WAL takes the whole file and asks nobody to wait: of processes that open a new store at once all but one
 * are told that it is busy, whatever the busy timeout. */
static int make_table(hn_store *s)
{
    int r = SQLITE_BUSY;
    for (int waited = 0; r == SQLITE_BUSY && waited < PATIENCE_MS; waited += NAP_MS) {
        r = sqlite3_exec(s->db, schema, NULL, NULL, NULL);
        if (r == SQLITE_BUSY) sqlite3_sleep(NAP_MS);
    }
    return r;
}

hone_status hn_store_open(const char *path, const char *key, hn_store **ret, hn_diag *dg)
{
    hn_store *s = calloc(1, sizeof *s);
    if (!s || !(s->key = strdup(key)) || !(s->path = strdup(path))) {
        hn_store_close(s);
        return HN_NOMEM(dg);
    }
    hone_status r = HONE_OK;
    if (sqlite3_open(path, &s->db) != SQLITE_OK) r = raise(s, "opening", dg);
    if (r == HONE_OK) sqlite3_busy_timeout(s->db, PATIENCE_MS);
    if (r == HONE_OK && make_table(s) != SQLITE_OK) r = raise(s, "making its table", dg);
    if (r == HONE_OK && !add_columns(s)) r = raise(s, "extending its table", dg);
    if (r != HONE_OK) {
        hn_store_close(s);
        return r;
    }
    *ret = s;
    return HONE_OK;
}

void hn_store_close(hn_store *s)
{
    if (!s) return;
    sqlite3_close(s->db);
    free(s->key);
    free(s->path);
    free(s);
}

hone_status hn_store_put(hn_store *s, const hn_trial *t, hn_diag *dg)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO trial(key,route,outcome,reason,payload,ratio,lo,hi,err,knobs,clock_mhz)"
                                  " VALUES(?,?,?,?,?,?,?,?,?,?,?)", -1, &q, NULL) != SQLITE_OK)
        return raise(s, "preparing", dg);
    sqlite3_bind_text(q, 1, s->key, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, t->route, -1, SQLITE_STATIC);
    sqlite3_bind_int(q, 3, (int)t->outcome);
    sqlite3_bind_text(q, 4, t->reason, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 5, t->payload, -1, SQLITE_STATIC);
    sqlite3_bind_double(q, 6, t->ratio);
    sqlite3_bind_double(q, 7, t->lo);
    sqlite3_bind_double(q, 8, t->hi);
    sqlite3_bind_double(q, 9, t->err);
    sqlite3_bind_text(q, 10, t->knobs, -1, SQLITE_STATIC);
    sqlite3_bind_int(q, 11, t->clock_mhz);
    const bool ok = sqlite3_step(q) == SQLITE_DONE;
    sqlite3_finalize(q);
    return ok ? HONE_OK : raise(s, "writing a trial", dg);
}

static const char *text_at(sqlite3_stmt *q, int column, hn_arena *a)
{
    const char *s = (const char *)sqlite3_column_text(q, column);
    return hn_arena_strdup(a, s ? s : "");
}

/* JSON has no infinity: what was one comes back from an import as NULL. */
static double real_at(sqlite3_stmt *q, int column, double if_null)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL ? if_null : sqlite3_column_double(q, column);
}

hone_status hn_store_get(hn_store *s, hn_arena *a, const char *route, hn_trial *ret, bool *ret_found, hn_diag *dg)
{
    sqlite3_stmt *q = NULL;
    *ret_found = false;
    if (sqlite3_prepare_v2(s->db, "SELECT outcome,reason,payload,ratio,lo,hi,err,knobs,clock_mhz FROM trial WHERE key=? AND route=?", -1,
                           &q, NULL) != SQLITE_OK)
        return raise(s, "reading a trial", dg);
    sqlite3_bind_text(q, 1, s->key, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, route, -1, SQLITE_STATIC);
    const int r = sqlite3_step(q);
    if (r == SQLITE_ROW) {
        *ret = (hn_trial){ .route = route, .outcome = (hn_outcome)sqlite3_column_int(q, 0), .ratio = real_at(q, 3, 0),
                           .lo = real_at(q, 4, 0), .hi = real_at(q, 5, HUGE_VAL), .err = real_at(q, 6, HUGE_VAL),
                           .clock_mhz = sqlite3_column_int(q, 8) };
        ret->reason = text_at(q, 1, a);
        ret->knobs = text_at(q, 7, a);
        const char *payload = (const char *)sqlite3_column_text(q, 2);
        strncpy(ret->payload, payload ? payload : "", sizeof ret->payload - 1);
        *ret_found = true;
    }
    sqlite3_finalize(q);
    return r == SQLITE_ROW || r == SQLITE_DONE ? HONE_OK : raise(s, "reading a trial", dg);
}

/* ---- JSON lines ---- */
static const char *const column[] = { "key", "route", "outcome", "reason", "payload", "ratio", "lo", "hi", "err", "at",
                                    "knobs", "clock_mhz" };
static const char export_sql[] = "SELECT key,route,outcome,reason,payload,ratio,lo,hi,err,at,knobs,clock_mhz FROM trial ORDER BY rowid";
/* SQLite reads the JSON: its parser is there already. */
static const char import_sql[] =
    "INSERT INTO trial(key,route,outcome,reason,payload,ratio,lo,hi,err,at,knobs,clock_mhz) SELECT j->>'key',j->>'route',"
    "j->>'outcome',j->>'reason',j->>'payload',j->>'ratio',j->>'lo',j->>'hi',j->>'err',j->>'at',j->>'knobs',j->>'clock_mhz'"
    " FROM (SELECT ? AS j) WHERE true ON CONFLICT(key, route) DO NOTHING"; /* what else is wrong is said */

static void print_row(sqlite3_stmt *q, hn_str *out)
{
    hn_json j;
    hn_json_init(&j, out, false);
    hn_json_object(&j);
    for (int i = 0; i < HN_COUNT(column); i++) {
        hn_json_key(&j, column[i]);
        if (sqlite3_column_type(q, i) == SQLITE_INTEGER) hn_json_i64(&j, sqlite3_column_int64(q, i));
        else if (sqlite3_column_type(q, i) == SQLITE_FLOAT) hn_json_f64(&j, sqlite3_column_double(q, i));
        else hn_json_str(&j, (const char *)sqlite3_column_text(q, i));
    }
    hn_json_object_end(&j);
    hn_str_add(out, "\n");
}

hone_status hn_tune_store_export(const char *path, hn_str *out, hn_diag *dg)
{
    hn_store *s = NULL;
    sqlite3_stmt *q = NULL;
    if (!hn_file_exists(path)) return HN_RAISE(dg, HONE_E_NOTFOUND, "there is no trial store \"%s\"", path);
    HN_TRY(hn_store_open(path, "", &s, dg));
    int r = sqlite3_prepare_v2(s->db, export_sql, -1, &q, NULL);
    if (r == SQLITE_OK)
        while ((r = sqlite3_step(q)) == SQLITE_ROW) print_row(q, out);
    const hone_status status = r == SQLITE_DONE ? HONE_OK : raise(s, "reading", dg);
    sqlite3_finalize(q);
    hn_store_close(s);
    return status == HONE_OK && out->oom ? HN_NOMEM(dg) : status;
}

static hone_status import_line(hn_store *s, const char *line, size_t n, int number, hn_diag *dg)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, import_sql, -1, &q, NULL) != SQLITE_OK) return raise(s, "preparing", dg);
    sqlite3_bind_text(q, 1, line, (int)n, SQLITE_STATIC);
    const int r = sqlite3_step(q);
    sqlite3_finalize(q);
    if (r == SQLITE_DONE) return HONE_OK;
    return HN_RAISE(dg, HONE_E_FORMAT, "line %d is no trial: %s", number, sqlite3_errmsg(s->db));
}

static hone_status import_lines(hn_store *s, const char *lines, int *ret_added, hn_diag *dg)
{
    for (int number = 1; *lines; number++) {
        const size_t n = strcspn(lines, "\n");
        if (n) {
            HN_TRY(import_line(s, lines, n, number, dg));
            *ret_added += sqlite3_changes(s->db);
        }
        lines += n + (lines[n] == '\n');
    }
    return HONE_OK;
}

hone_status hn_tune_store_import(const char *path, const char *lines, int *ret_added, hn_diag *dg)
{
    hn_store *s = NULL;
    *ret_added = 0;
    HN_TRY(hn_store_open(path, "", &s, dg));
    hone_status r = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK ? HONE_OK : raise(s, "locking", dg);
    if (r == HONE_OK) r = import_lines(s, lines, ret_added, dg);
    if (r != HONE_OK) *ret_added = 0;
    if (sqlite3_exec(s->db, r == HONE_OK ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK && r == HONE_OK)
        r = raise(s, "writing", dg);
    hn_store_close(s);
    return r;
}
