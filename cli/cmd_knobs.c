/* hone knobs: what can be turned. */
#include "cli.h"

#include <string.h>

static void print_knob(const cJSON *k)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(k, "name"));
    const char *help = cJSON_GetStringValue(cJSON_GetObjectItem(k, "help"));
    if (!help) help = cJSON_GetStringValue(cJSON_GetObjectItem(k, "doc"));
    const cJSON *d = cJSON_GetObjectItem(k, "default"), *domain = cJSON_GetObjectItem(k, "domain");
    char *dt = cJSON_PrintUnformatted(d), *dom = domain ? cJSON_PrintUnformatted(domain) : NULL;
    printf("-%s=%s  %s\n    %s\n", name ? name : "?", dt ? dt : "?", dom ? dom : "", help ? help : "");
    cJSON_free(dt);
    cJSON_free(dom);
}

static bool wanted(const cJSON *k, const char *want)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(k, "name"));
    if (!want) return true;
    return name && strcmp(name, want[0] == '-' ? want + 1 : want) == 0;
}

static void print_one(const cli_options *o, const cJSON *k)
{
    if (o->names) printf("%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(k, "name")));
    else if (o->json) cli_print_json(cJSON_Duplicate(k, true));
    else print_knob(k);
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    if (!cli_parse(&cli_knobs, argc, argv, &o, &status)) return status;
    char *text = hone_knobs_json();
    if (!text) return HONE_E_NOMEM;
    if (o.json && !o.positional) {
        printf("%s\n", text);
        hone_string_free(text);
        return 0;
    }
    cJSON *j = cJSON_Parse(text);
    const cJSON *list = cJSON_IsArray(j) ? j : cJSON_GetObjectItem(j, "knobs"), *k;
    int shown = 0;
    cJSON_ArrayForEach(k, list)
    {
        if (!wanted(k, o.positional)) continue;
        print_one(&o, k);
        shown++;
    }
    cJSON_Delete(j);
    hone_string_free(text);
    if (shown) return 0;
    return cli_misuse(&o, "there is no knob \"%s\"; hone knobs lists them", o.positional ? o.positional : "");
}

const cli_command cli_knobs = {
    "knobs", "list the compiler's knobs",
    "Usage: hone knobs [KNOB]\n"
    "Each with its default, its domain and what it decides. Set them with --set '-knob=value'; a setting for some nodes\n"
    "alone is -knob@/path/*=value.\n",
    run, CLI_KNOBS,
};
