#include "import_holds.h"

#include "import/import.h"
#include "ir/ir.h"

#include <stdio.h>

static bool is_valid(const hn_graph *g, char *why, size_t why_n)
{
    hn_diags bad = { 0 };
    const bool valid = g && hn_validate(g, true, &bad);
    if (!valid) snprintf(why, why_n, "imported, but not valid: %s", bad.n > 0 ? bad.at[0].message : "no graph");
    hn_diags_done(&bad);
    return valid;
}

static bool is_refused(hone_status s, const hn_graph *g, const hn_diag *dg, char *why, size_t why_n)
{
    const bool clear = !g && dg->message[0] && s != HONE_E_INTERNAL;
    if (!clear) snprintf(why, why_n, "refused with status %d, %s graph and the message \"%s\"", s, g ? "a" : "no", dg->message);
    return clear;
}

bool fuzz_import_holds(const void *bytes, size_t n, char *why, size_t why_n)
{
    hn_arena *a = hn_arena_create();
    hn_diag dg = { 0 };
    hn_diags problems = { 0 };
    hn_graph *g = NULL;
    if (!a) return true; /* no memory proves nothing */
    const hone_status s = hn_import_mem(a, bytes, n, NULL, NULL, &g, &problems, &dg);
    const bool holds = s == HONE_OK ? is_valid(g, why, why_n) : is_refused(s, g, &dg, why, why_n);
    hn_diags_done(&problems);
    hn_arena_destroy(a);
    return holds;
}
