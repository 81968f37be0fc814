/* hone knobs: what can be turned. */
#include "cli.h"

#include <string.h>

static const char *text_of(const cJSON *k, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(k, key));
    return s ? s : "";
}

static void print_knob(const cJSON *k)
{
    const bool node = strcmp(text_of(k, "scope"), "node") == 0, numbers = cJSON_IsTrue(cJSON_GetObjectItem(k, "changes_numbers"));
    printf("-%s=%s  (%s)%s%s\n    %s\n", text_of(k, "name"), text_of(k, "default"), text_of(k, "domain"),
           node ? ", may differ by node" : "", numbers ? ", changes numbers" : "", text_of(k, "doc"));
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
    if (o.stats && !o.n_word) return cli_misuse(&o, "--stats wants models or trial stores");
    if (o.stats) return cli_knob_stats(&o);
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
    "       hone knobs --stats MODEL.onnx|TRIALS.db ...\n"
    "Each with its default, its domain and what it decides. Set them with --set '-knob=value'; a setting for some nodes\n"
    "alone is -knob@/path/*=value.\n",
    run, CLI_KNOBS,
};
