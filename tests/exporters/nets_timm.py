"""timm: image models of many ideas, made small by their own arguments."""

from nets import Library

lib = Library("timm")

IMAGE = {"x": "f32[batch,3,height,width] image"}
SIZES = ({"batch": 1, "height": 64, "width": 64}, {"batch": 3, "height": 96, "width": 64})
BATCHES = ({"batch": 1}, {"batch": 3})


def image(name, model, size=None, derive=(), opset=17, **options):
    """size: the network takes pictures of this size alone."""
    def make():
        import timm
        return timm.create_model(model, pretrained=False, num_classes=10, **options)
    inputs = {"x": f"f32[batch,3,{size},{size}] image"} if size else IMAGE
    lib.add(name, make, inputs, BATCHES if size else SIZES, derive=derive, opset=opset)


image("timm_convnext", "convnext_atto", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64))
image("timm_efficientnet", "efficientnet_lite0", derive=("qdq",))
image("mobilenet_v4", "mobilenetv4_conv_small_050", derive=("qdq", "sim"))
image("mobilenet_v4_hybrid", "mobilenetv4_hybrid_medium_075")
image("eva02", "eva02_tiny_patch14_224", 64, img_size=64, patch_size=16, embed_dim=48, depth=2, num_heads=4)
image("ghostnet", "ghostnet_050")
image("repvgg", "repvgg_a0")
image("hrnet", "hrnet_w18_small")
image("levit", "levit_128s", 224)
image("cait", "cait_xxs24_224", 64, img_size=64, depth=2, embed_dim=48, num_heads=4)
image("xcit", "xcit_nano_12_p16_224", 64, img_size=64, depth=2)
image("edgenext", "edgenext_xx_small", 64)
image("fastvit", "fastvit_t8", 64)
image("efficientformer", "efficientformer_l1", 224)
image("sequencer", "sequencer2d_s", 64, img_size=64, layers=(1, 1, 1, 1), embed_dims=(24, 48, 48, 48))
image("coatnet", "coatnet_nano_rw_224", 64, img_size=64)
image("resnest", "resnest14d")
image("tiny_vit", "tiny_vit_5m_224", 224)


# Those whose named configurations take no sizes of ours.
@lib.net("poolformer", IMAGE, SIZES)
def poolformer():
    import torch
    from timm.models.metaformer import GroupNorm1, MetaFormer
    return MetaFormer(num_classes=10, depths=(1, 1, 1, 1), dims=(16, 32, 48, 64), downsample_norm=None, mlp_act=torch.nn.GELU,
                      mlp_bias=True, norm_layers=GroupNorm1, layer_scale_init_values=1e-5, res_scale_init_values=None, use_mlp_head=False)


@lib.net("volo", {"x": "f32[batch,3,64,64] image"}, BATCHES, opset=18)
def volo():
    from timm.models.volo import VOLO
    return VOLO(layers=(1, 1, 1, 1), img_size=64, num_classes=10, embed_dims=(32, 48, 48, 48), num_heads=(2, 4, 4, 4))
