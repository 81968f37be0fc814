/* libhone-image.so: the formats whose libraries were there when it was built. */
#include "base/attr.h"
#include "base/os.h"
#include "image/module/module.h"

static const hn_image_codec *const codecs[] = {
#ifdef HN_WITH_PNG
    &hn_image_png,
#endif
#ifdef HN_WITH_JPEG
    &hn_image_jpeg,
#endif
#ifdef HN_WITH_TIFF
    &hn_image_tiff,
#endif
#ifdef HN_WITH_WEBP
    &hn_image_webp,
#endif
#ifdef HN_WITH_JPEG2000
    &hn_image_jpeg2000,
#endif
};

__attribute__((visibility("default"))) const hn_image_module *hone_image_module(void)
{
    static const hn_image_module m = { HN_IMAGE_MODULE_ABI, HN_COUNT(codecs), codecs };
    return &m;
}
