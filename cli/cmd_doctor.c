/* hone doctor: what this machine offers and why something is off. */
#include "cli.h"

#include <string.h>

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    char *text = NULL;
    if (!cli_parse(&cli_doctor, argc, argv, &o, &status)) return status;
    if (hone_doctor_json(&text, &err)) return cli_fail(&o, err);
    if (o.json) {
        printf("%s\n", text);
    } else {
        cJSON *j = cJSON_Parse(text);
        const cJSON *x;
        cJSON_ArrayForEach(x, j)
        {
            char *v = cJSON_IsString(x) ? NULL : cJSON_PrintUnformatted(x);
            printf("%-16s %s\n", x->string, v ? v : cJSON_GetStringValue(x));
            cJSON_free(v);
        }
        cJSON_Delete(j);
    }
    hone_string_free(text);
    return 0;
}

const cli_command cli_doctor = {
    "doctor", "say what this machine offers, and what is missing",
    "Usage: hone doctor [--json]\n"
    "Status 0: nothing is wrong that keeps models from being built and run here.\n",
    run, CLI_DOCTOR,
};
