/* hone tune: search build routes, keep the proven winner. */
#include "cli.h"

#include <string.h>

static double number(const cJSON *j, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(j, key));
}

static double seconds_of(const cJSON *trial)
{
    const cJSON *c = cJSON_GetObjectItem(trial, "cost");
    return c ? number(c, "build_s") + number(c, "judge_s") + number(c, "race_s") : 0;
}

static void print_trials(const cJSON *list)
{
    const cJSON *t;
    cJSON_ArrayForEach(t, list)
    {
        const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(t, "reason"));
        const char *route = cJSON_GetStringValue(cJSON_GetObjectItem(t, "route"));
        const double ratio = number(t, "ratio");
        char text[16] = "", cost[16] = "";
        const double s = seconds_of(t);
        if (ratio > 0) snprintf(text, sizeof text, "%.4f", ratio);
        if (s > 0) snprintf(cost, sizeof cost, "%.1f s", s);
        printf("%-13s %8s %8s  %s%s%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(t, "outcome")), text, cost,
               *route ? route : "(the default)", why && *why ? ": " : "", why ? why : "");
    }
}

/* What the screening says of the changes that the winner has. */
static void print_effects(const cJSON *list)
{
    const cJSON *e;
    cJSON_ArrayForEach(e, list)
        if (cJSON_IsTrue(cJSON_GetObjectItem(e, "taken")))
            printf("%+6.2f%% +- %.2f  %s\n", 100 * number(e, "gain"), 100 * number(e, "sd"),
                   cJSON_GetStringValue(cJSON_GetObjectItem(e, "setting")));
}

static void print_summary(const cli_options *o, cJSON *j)
{
    const cJSON *list = cJSON_GetObjectItem(j, "trial_list");
    const char *route = cJSON_GetStringValue(cJSON_GetObjectItem(j, "route"));
    const char *note = cJSON_GetStringValue(cJSON_GetObjectItem(j, "note"));
    print_trials(list);
    if (o->dry_run) {
        printf("%d routes would be tried (more where one of them opens further knobs)\n", cJSON_GetArraySize(list));
        return;
    }
    if (note && *note) printf("note: %s\n", note);
    if (route && *route) {
        print_effects(cJSON_GetObjectItem(j, "effects"));
        printf("%.0f trials; route: %s\nspeed-up %.3f, %.0f%% interval %.3f to %.3f%s\n", number(j, "trials"), route,
               number(j, "speedup"), 100 * number(j, "confidence"), number(j, "speedup_lo"), number(j, "speedup_hi"),
               cJSON_IsTrue(cJSON_GetObjectItem(j, "confirmed")) ? "" : ", not confirmed");
    } else
        printf("%.0f trials; route: the default, as nothing was proven faster\n", number(j, "trials"));
    printf("engine: %s\n", o->output);
}

/* Prints the result; its exit status says whether the search was stopped. */
static int conclude(const cli_options *o, const char *report)
{
    cJSON *j = cJSON_Parse(report);
    const bool stopped = cJSON_IsTrue(cJSON_GetObjectItem(j, "stopped"));
    if (!o->json) print_summary(o, j);
    if (o->json) cli_print_json(j);
    else cJSON_Delete(j);
    return stopped ? HONE_E_CANCELLED : 0;
}

/* Files for some inputs and outputs; the others stay empty, and are made up or evaluated. */
static hone_status given_tensors(const cli_options *o, hone_tensor *in, hone_tensor *reference, hone_error **err)
{
    hone_model *m = NULL;
    hone_status s = hone_model_load(o->positional, &o->model, &m, err);
    if (s == HONE_OK) s = cli_model_files(o, m, in, err);
    if (s == HONE_OK) s = cli_model_references(o, m, reference, err);
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
    if (!o.judge != !o.judge_bounded)
        return cli_misuse(&o, "--judge COMMAND and --accuracy judge=BOUND need each other");
    t.build = &o.build;
    t.expression = o.expression;
    t.strategy = o.strategy;
    t.budget_s = o.budget_s;
    t.max_trials = o.max_trials;
    t.store = o.store;
    t.resume = o.resume;
    t.metric = o.metric;
    t.threshold = o.threshold;
    t.accuracy = o.accuracy;
    t.n_accuracy = o.n_accuracy;
    t.judge = o.judge;
    t.judge_bound = o.judge_bound;
    t.trial_timeout_s = o.trial_timeout_s;
    t.trial_memory_bytes = o.trial_memory_bytes;
    t.seed = (uint64_t)o.seed;
    t.dry_run = o.dry_run;
    hone_tensor in[CLI_MAX_IO] = { 0 }, reference[CLI_MAX_IO] = { 0 };
    if ((o.n_input || o.n_reference) && given_tensors(&o, in, reference, &err)) {
        cli_free_tensors(in, CLI_MAX_IO);
        cli_free_tensors(reference, CLI_MAX_IO);
        return cli_fail(&o, err);
    }
    if (o.n_input) t.input = in;
    if (o.n_reference) t.reference = reference;
    const hone_status s = hone_tune(o.positional, &o.model, &t, o.output, &r, &err);
    cli_free_tensors(in, CLI_MAX_IO);
    cli_free_tensors(reference, CLI_MAX_IO);
    if (s) return cli_fail(&o, err);
    const int end = conclude(&o, hone_report_json(r));
    hone_report_free(r);
    return end;
}

const cli_command cli_tune = {
    "tune", "search build routes by measuring whole engines; keep the proven winner",
    "Usage: hone tune MODEL.onnx -o ENGINE [--budget S]\n\n"
    "An interrupt (Ctrl-C) ends the search: the best engine proven so far is at ENGINE, the exit status is 13.\n",
    run, CLI_TUNE,
};
