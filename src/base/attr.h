/* Compiler attributes under one spelling. */
#ifndef HN_BASE_ATTR_H
#define HN_BASE_ATTR_H

#define HN_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#define HN_MUST_USE                   __attribute__((warn_unused_result))
#define HN_CLEANUP(fn)                __attribute__((cleanup(fn)))
#define HN_API                        __attribute__((visibility("default")))
#define HN_UNUSED                     __attribute__((unused))
#define HN_NORETURN                   __attribute__((noreturn))
#define HN_LIKELY(x)                  __builtin_expect(!!(x), 1)
#define HN_UNLIKELY(x)                __builtin_expect(!!(x), 0)
#define HN_COUNT(a)                   ((int)(sizeof(a) / sizeof((a)[0])))

#define HN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define HN_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
