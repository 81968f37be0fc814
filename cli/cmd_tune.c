/* hone tune: search build routes, keep the proven winner. */
#include "cli.h"

#include <string.h>

static void print_summary(const cli_options *o, const char *report, const char *engine)
{
    cJSON *j = cJSON_Parse(report);
    if (o->json) {
        cli_print_json(j);
        return;
    }
    const char *route = cJSON_GetStringValue(cJSON_GetObjectItem(j, "route"));
    const cJSON *t, *s = cJSON_GetObjectItem(j, "speedup");
    cJSON_ArrayForEach(t, cJSON_GetObjectItem(j, "trial_list"))
    {
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(t, "reason"));
        printf("%-12s %8.4f  %s%s%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(t, "outcome")),
               cJSON_GetNumberValue(cJSON_GetObjectItem(t, "ratio")), cJSON_GetStringValue(cJSON_GetObjectItem(t, "route")),
               why && *why ? ": " : "", why ? why : "");
    }
    printf("%.0f trials; route: %s\n", cJSON_GetNumberValue(cJSON_GetObjectItem(j, "trials")),
           route && *route ? route : "(the default: nothing was proven faster)");
    if (s)
        printf("speed-up %.3f, 95%% interval %.3f to %.3f\n", cJSON_GetNumberValue(s),
               cJSON_GetNumberValue(cJSON_GetObjectItem(j, "speedup_lo")),
               cJSON_GetNumberValue(cJSON_GetObjectItem(j, "speedup_hi")));
    if (engine) printf("engine: %s\n", engine);
    cJSON_Delete(j);
}

/* Files for some inputs; the others stay empty and are made up. */
static hone_status given_inputs(const cli_options *o, hone_tensor *in, hone_error **err)
{
    hone_model *m = NULL;
    hone_status s = hone_model_load(o->positional, &o->model, &m, err);
    if (s == HONE_OK) s = cli_model_files(o, m, in, err);
    hone_model_free(m);
    return s;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    hone_report *r = NULL;
    hone_tune_options t = HONE_TUNE_OPTIONS_INIT;
    if (!cli_parse(&cli_tune, argc, argv, &o, &status)) return status;
    if (!o.positional || (!o.output && !o.dry_run))
        return cli_misuse(&o, "usage: hone tune MODEL.onnx -o ENGINE [--budget SECONDS]");
    t.build = o.build;
    t.expression = o.expression;
    t.strategy = o.strategy;
    t.budget_s = o.budget_s;
    t.max_trials = o.max_trials;
    t.store = o.store;
    t.resume = o.resume;
    t.metric = o.metric;
    t.threshold = o.threshold;
    t.seed = (uint64_t)o.seed;
    t.dry_run = o.dry_run;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    if (o.n_input && given_inputs(&o, in, &err)) return cli_fail(&o, err);
    if (o.n_input) t.input = in;
    const hone_status s = hone_tune(o.positional, &o.model, &t, o.output, &r, &err);
    cli_free_tensors(in, CLI_MAX_IO);
    if (s) return cli_fail(&o, err);
    print_summary(&o, hone_report_json(r), o.dry_run ? NULL : o.output);
    hone_report_free(r);
    return 0;
}

const cli_command cli_tune = {
    "tune", "search build routes by measuring whole engines; keep the proven winner",
    "Usage: hone tune MODEL.onnx -o ENGINE [--budget S]\n",
    run, CLI_TUNE,
};
