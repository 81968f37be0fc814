/*
 * Test harness: TEST(name) { ... } registers a case; each runs in a child process with a time limit and is
 * reported through cmocka. A failed check ends its case at once.
 *
 *     test_X [--filter SUBSTRING] [--case NAME] [--list] [--timeout SECONDS] [--no-fork]
 *
 * $HONE_TEST_TIMEOUT sets the limit as well (seconds a case, default 60; 0 lifts it). --no-fork is for
 * debuggers.
 */
#ifndef HN_TESTS_HARNESS_H
#define HN_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/diag.h"

/** What a case is given as `t`. */
typedef struct hn_test {
    const char *name;
    const char *file;
    void (*fn)(struct hn_test *t);
    struct hn_test *next; /* registration list */
    hn_arena *arena;      /* made before the case runs and destroyed after it */
} hn_test;

void hn_test_register(hn_test *t);

#define TEST(id)                                                                                             \
    static void test_fn_##id(hn_test *t);                                                                    \
    static hn_test test_case_##id = { #id, __FILE__, test_fn_##id, NULL, NULL };                             \
    __attribute__((constructor)) static void test_register_##id(void)                                        \
    {                                                                                                        \
        hn_test_register(&test_case_##id);                                                                   \
    }                                                                                                        \
    static void test_fn_##id(hn_test *t HN_UNUSED)

/** Says where and why, then ends the case. */
HN_NORETURN void hn_test_fail(const char *file, int line, const char *fmt, ...) HN_PRINTF(3, 4);
HN_NORETURN void hn_test_skip(const char *fmt, ...) HN_PRINTF(1, 2);
/** A line that is printed only if this case fails later (which seed, which shape); the newest replaces the
 * last. */
void hn_test_note(const char *fmt, ...) HN_PRINTF(1, 2);

void hn_check_eq(const char *file, int line, const char *sa, const char *sb, int64_t a, int64_t b);
void hn_check_str(const char *file, int line, const char *sa, const char *sb, const char *a, const char *b);
void hn_check_near(const char *file, int line, const char *sa, double a, double b, double tol);
void hn_check_ok(const char *file, int line, const char *expr, hone_status s, const hn_diag *dg);
void hn_check_err(const char *file, int line, const char *expr, hone_status s, hone_status want, hn_diag *dg,
                  const char *part);

#define FAIL(...)   hn_test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...)   hn_test_skip(__VA_ARGS__)
#define CHECK(cond) ((cond) ? (void)0 : hn_test_fail(__FILE__, __LINE__, "%s", "CHECK(" #cond ")"))
/** Integers, compared and printed as int64. */
#define CHECK_EQ(a, b) hn_check_eq(__FILE__, __LINE__, #a, #b, (int64_t)(a), (int64_t)(b))
/** Texts, either may be NULL. */
#define CHECK_STR(a, b) hn_check_str(__FILE__, __LINE__, #a, #b, (a), (b))
/** |a - b| <= tol; equal infinities and two NaN pass. */
#define CHECK_NEAR(a, b, tol) hn_check_near(__FILE__, __LINE__, #a, (a), (b), (tol))
/** A status that must be HONE_OK; prints the diagnosis otherwise. */
#define CHECK_OK(expr, dg) hn_check_ok(__FILE__, __LINE__, #expr, (expr), (dg))
/** A status that must be `want` with a diagnosis whose text holds `part` (NULL: any text); clears the
 * diagnosis. */
#define CHECK_ERR(expr, want, dg, part) hn_check_err(__FILE__, __LINE__, #expr, (expr), (want), (dg), (part))

#endif
