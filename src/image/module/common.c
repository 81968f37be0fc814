#include <stdio.h>

#include "image/module/module.h"

bool hn_image_fail(char *why, const char *text)
{
    snprintf(why, HN_IMAGE_WHY, "%.*s", HN_IMAGE_WHY - 1, text);
    return false;
}

void hn_image_to_rgb(const uint8_t *from, int64_t pixels, int channels, uint8_t *ret)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int k = 0; k < 3; k++)
            ret[3 * i + k] = from[i * channels + (channels >= 3 ? k : 0)];
}
