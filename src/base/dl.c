/* Shared libraries that may or may not be there. */
#include "base/dl.h"

#include <dlfcn.h>
#include <glob.h>
#include <string.h>
#include <unistd.h>

/* The newest file that matches, or the text itself where it is no pattern. */
static bool resolve(const char *path, hn_str *ret)
{
    glob_t g;
    bool found = false;

    hn_str_clear(ret);
    if (!strchr(path, '*')) {
        hn_str_add(ret, path);
        return true;
    }
    if (glob(path, 0, NULL, &g) == 0 && g.gl_pathc > 0) {
        hn_str_add(ret, g.gl_pathv[g.gl_pathc - 1]);
        found = true;
    }
    globfree(&g);
    return found;
}

static void note(hn_str *tried, const char *name)
{
    const char *why = dlerror();

    if (tried->n) hn_str_add(tried, "; ");
    hn_str_add(tried, why ? why : name);
}

hone_status hn_dl_open(const char *what, const char *const *path, int n_path, void **ret, hn_str *ret_path,
                       hn_diag *dg)
{
    hn_str name = { 0 }, tried = { 0 };
    void *lib = NULL;

    for (int i = 0; i < n_path && !lib; i++) {
        if (!path[i] || !resolve(path[i], &name)) continue;
        lib = dlopen(hn_str_get(&name), RTLD_NOW | RTLD_LOCAL);
        if (!lib) note(&tried, hn_str_get(&name));
    }
    hone_status s = HONE_OK;
    if (!lib) {
        hn_hint(dg, "tried: %.300s", hn_str_get(&tried));
        s = HN_RAISE(dg, HONE_E_NOTFOUND, "%s was not found", what);
    } else {
        *ret = lib;
        if (ret_path) hn_str_add(ret_path, hn_str_get(&name));
    }
    hn_str_done(&name);
    hn_str_done(&tried);
    return s;
}

hone_status hn_dl_bind(const char *what, void *lib, const hn_dl_fn *fn, int n_fn, hn_diag *dg)
{
    for (int i = 0; i < n_fn; i++) {
        void *at = dlsym(lib, fn[i].name);
        if (!at && !fn[i].optional)
            return HN_RAISE(dg, HONE_E_VERSION, "%s lacks \"%s\": it is too old", what, fn[i].name);
        memcpy(fn[i].to, &at, sizeof(at)); /* object to function pointer, which C leaves to POSIX */
    }
    return HONE_OK;
}

void hn_dl_find(const char *const *path, int n_path, hn_str *ret)
{
    for (int i = 0; i < n_path; i++) {
        if (!path[i] || !strchr(path[i], '/') || !resolve(path[i], ret)) continue;
        if (access(hn_str_get(ret), R_OK) == 0) return;
    }
    hn_str_clear(ret);
}
