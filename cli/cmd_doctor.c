/* hone doctor: what this machine offers and what is wrong with it. */
#include "cli.h"

#include <string.h>

static const char *text(const cJSON *j, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(j, key));
    return s ? s : "";
}

static void print_finding(const cJSON *f)
{
    printf("%s: %s\n    %s\n    %s\n", text(f, "grade"), text(f, "what"), text(f, "why"), text(f, "todo"));
}

static void print_all(const cJSON *j)
{
    const cJSON *x, *findings = cJSON_GetObjectItem(j, "findings");
    cJSON_ArrayForEach(x, j)
    {
        if (x == findings || strcmp(x->string, "broken") == 0) continue;
        char *v = cJSON_IsString(x) ? NULL : cJSON_PrintUnformatted(x);
        printf("%-16s %s\n", x->string, v ? v : cJSON_GetStringValue(x));
        cJSON_free(v);
    }
    printf("\n");
    cJSON_ArrayForEach(x, findings) print_finding(x);
    if (cJSON_GetArraySize(findings) == 0) printf("nothing is wrong\n");
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    char *report = NULL;
    if (!cli_parse(&cli_doctor, argc, argv, &o, &status)) return status;
    if (hone_doctor_json(&report, &err)) return cli_fail(&o, err);
    cJSON *j = cJSON_Parse(report);
    hone_string_free(report);
    const bool broken = cJSON_GetNumberValue(cJSON_GetObjectItem(j, "broken")) > 0;
    if (o.json) {
        cli_print_json(j);
    } else {
        print_all(j);
        cJSON_Delete(j);
    }
    return broken ? HONE_E_NOTFOUND : 0;
}

const cli_command cli_doctor = {
    "doctor", "say what this machine offers, and what is missing",
    "Usage: hone doctor [--json]\n"
    "Status 18: something that building or running needs is not there; what is merely slow is listed too.\n",
    run, CLI_DOCTOR,
};
