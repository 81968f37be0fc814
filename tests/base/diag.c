#include "harness.h"

#include <string.h>

static hone_status inner(hn_diag *dg)
{
    hn_hint(dg, "try %d", 3);
    return HN_RAISE(dg, HONE_E_SHAPE, "axis %d is out of range for rank %d", 3, 3);
}

static hone_status outer(hn_diag *dg)
{
    HN_TRY_IN(dg, inner(dg), "node \"%s\" (Softmax)", "sm");
    return HONE_OK;
}

TEST(diag_message_frames_and_hint)
{
    hn_diag dg = { 0 };
    char text[256];
    CHECK_EQ(outer(&dg), HONE_E_SHAPE);
    CHECK_EQ(dg.n_frame, 1);
    CHECK(dg.line > 0 && strstr(dg.file, "diag.c"));
    CHECK_STR(hn_diag_format(&dg, text, sizeof text),
              "axis 3 is out of range for rank 3\n  in node \"sm\" (Softmax)\n  hint: try 3");
    CHECK_STR(hn_diag_format(&dg, text, 7), "axis 3");
    CHECK_STR(hn_diag_format(&dg, text, 1), "");
    hn_diag_clear(&dg);
    CHECK_EQ(dg.code, HONE_OK);
    CHECK_STR(hn_diag_format(&dg, text, sizeof text), "");
    CHECK_EQ(outer(NULL), HONE_E_SHAPE);
}

TEST(diag_long_text_is_cut_at_a_character)
{
    hn_diag dg = { 0 };
    char name[2048];
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xC3\xA9", 3);
    HN_RAISE(&dg, HONE_E_MODEL, "x%s", name);
    const size_t n = strlen(dg.message);
    CHECK(n == sizeof dg.message - 1 || n == sizeof dg.message - 2);
    CHECK_EQ((unsigned char)dg.message[n - 1], 0xA9);
    for (int i = 0; i < 400; i++)
        hn_diag_frame(&dg, "frame\n%d", i);
    CHECK_EQ(dg.n_frame, 400);
    CHECK(strlen(dg.frames) < sizeof dg.frames);
    CHECK(strncmp(dg.frames, "frame 0\nframe 1\n", 16) == 0);
}

TEST(diag_statuses_have_names_and_texts)
{
    CHECK_STR(hn_status_name(HONE_E_SHAPE), "E_SHAPE");
    CHECK_STR(hn_status_text(HONE_OK), "success");
    CHECK_STR(hn_status_name((hone_status)999), "E_UNKNOWN");
    CHECK(hn_status_text((hone_status)-1) != NULL);
}

TEST(diags_keep_a_thousand_and_count_the_rest)
{
    hn_diags list = { 0 };
    for (int i = 0; i < 1500; i++) {
        hn_diag dg = { 0 };
        HN_RAISE(&dg, HONE_E_MODEL, "problem %d", i);
        hn_diags_add(&list, &dg);
    }
    CHECK_EQ(list.n, 1001);
    CHECK_STR(list.at[999].message, "problem 999");
    CHECK_STR(list.at[1000].message, "500 more problems are not listed");
    hn_diags_done(&list);
    CHECK_EQ(list.n, 0);
}
