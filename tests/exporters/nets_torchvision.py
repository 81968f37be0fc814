"""torchvision: classification, detection with suppression, segmentation, video."""

from nets import OPSETS, Library

lib = Library("torchvision")

IMAGE = {"x": "f32[batch,3,height,width] image"}
SQUARE = {"x": "f32[batch,3,64,64] image"}
SIZES = ({"batch": 1, "height": 64, "width": 64}, {"batch": 3, "height": 96, "width": 80})
BATCHES = ({"batch": 1}, {"batch": 3})


def classifier(name, inputs=None, sizes=SIZES, derive=(), debian=False, runs=1, **options):
    def make():
        import torchvision
        return getattr(torchvision.models, name)(weights=None, num_classes=10, **options)
    lib.add(name, make, inputs or IMAGE, sizes, derive=derive, debian=debian, runs=runs)


classifier("resnet18", derive=("qdq", "qoperator", "slim", "sim", "fp16"), debian=True)
classifier("mobilenet_v2", derive=("qdq", "qdq_s8", "sim"), debian=True)
classifier("mobilenet_v3_small", derive=("qdq", "slim", "fp16", *OPSETS, "loose"), debian=True)
classifier("efficientnet_b0", debian=True, derive=("qoperator",), runs=4)
classifier("squeezenet1_1", debian=True)
classifier("shufflenet_v2_x0_5", debian=True, derive=("sim",))
classifier("mnasnet0_5")
classifier("regnet_y_400mf")
classifier("googlenet", init_weights=False, aux_logits=False)
classifier("inception_v3", init_weights=False, aux_logits=False,
           sizes=({"batch": 1, "height": 96, "width": 96}, {"batch": 2, "height": 128, "width": 96}))


@lib.net("densenet", IMAGE, SIZES, debian=True)
def densenet():
    from torchvision.models import DenseNet
    return DenseNet(growth_rate=8, block_config=(2, 3, 3, 2), num_init_features=16, num_classes=10)


@lib.net("vgg_bn", IMAGE, SIZES)
def vgg_bn():
    import torch
    from torchvision.models import vgg
    net = vgg.VGG(vgg.make_layers([16, "M", 32, "M", 64, "M"], batch_norm=True), num_classes=10, init_weights=False)
    net.classifier = torch.nn.Sequential(torch.nn.Linear(64 * 49, 64), torch.nn.ReLU(True), torch.nn.Dropout(),
                                         torch.nn.Linear(64, 10))
    return net


@lib.net("convnext", IMAGE, SIZES, debian=True, derive=("slim", "qdq", "ort_fp16", "loose"))
def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    return ConvNeXt([CNBlockConfig(24, 48, 2), CNBlockConfig(48, 96, 2), CNBlockConfig(96, None, 2)], num_classes=10)


@lib.net("vit", SQUARE, BATCHES, debian=True, derive=("transformer",))
def vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)


@lib.net("swin", SQUARE, BATCHES, debian=True)
def swin():
    from torchvision.models import SwinTransformer
    return SwinTransformer([4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=10)


@lib.net("swin_v2", SQUARE, BATCHES)
def swin_v2():
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2
    return SwinTransformer([4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=10,
                           block=SwinTransformerBlockV2, downsample_layer=PatchMergingV2)


@lib.net("maxvit", SQUARE, BATCHES)
def maxvit():
    from torchvision.models import MaxVit
    return MaxVit(input_size=(64, 64), stem_channels=16, partition_size=4, block_channels=[16, 32], block_layers=[1, 1],
                  head_dim=8, stochastic_depth_prob=0.0, num_classes=10)


def segmenter(name, classifier_of):
    @lib.net(name, IMAGE, SIZES)
    def make():
        from torchvision.models._utils import IntermediateLayerGetter
        from torchvision.models.resnet import Bottleneck, ResNet
        from torchvision.models import segmentation
        body = ResNet(Bottleneck, [1, 1, 1, 1], width_per_group=16, replace_stride_with_dilation=[False, True, True])
        body = IntermediateLayerGetter(body, return_layers={"layer4": "out"})
        return only(getattr(segmentation, classifier_of[0])(body, classifier_of[1](2048, 5)), "out")


def fcn_head(channels, classes):
    from torchvision.models.segmentation.fcn import FCNHead
    return FCNHead(channels, classes)


def deeplab_head(channels, classes):
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead
    return DeepLabHead(channels, classes, atrous_rates=(2, 3, 4))


def only(module, key):
    """The module with one entry of its dictionary as the result."""
    import torch

    class Only(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)[key]
    return Only()


segmenter("fcn", ("FCN", fcn_head))
segmenter("deeplabv3", ("DeepLabV3", deeplab_head))


@lib.net("lraspp", IMAGE, SIZES)
def lraspp():
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large
    return only(lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5), "out")


@lib.net("r3d", {"x": "f32[batch,3,frames,32,32] normal(0, 1)"}, ({"batch": 1, "frames": 8}, {"batch": 2, "frames": 12}))
def r3d():
    from torchvision.models.video import resnet
    return resnet.VideoResNet(resnet.BasicBlock, [resnet.Conv3DSimple] * 4, [1, 1, 1, 1], resnet.BasicStem, num_classes=10)


@lib.net("r2plus1d", {"x": "f32[batch,3,8,32,32] normal(0, 1)"}, BATCHES)
def r2plus1d():
    from torchvision.models.video import resnet
    return resnet.VideoResNet(resnet.BasicBlock, [resnet.Conv2Plus1D] * 4, [1, 1, 1, 1], resnet.R2Plus1dStem, num_classes=10)


@lib.net("swin3d", {"x": "f32[batch,3,8,32,32] normal(0, 1)"}, BATCHES)
def swin3d():
    from torchvision.models.video.swin_transformer import SwinTransformer3d
    return SwinTransformer3d([2, 4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4, 4], num_classes=10)


# ---- detection ----
def detector(make):
    """One image in, (boxes, scores, labels, ...) out."""
    import torch
    model = make()

    class Detector(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            return tuple(self.model([x])[0].values())
    return Detector()


def detection(name, make, **options):
    # The new exporter works for minutes and then refuses what fasterrcnn and retinanet do with the number of boxes.
    lib.add(name, lambda: detector(make), {"x": "f32[3,height,width] uniform(0, 1)"},
            ({"height": 96, "width": 96}, {"height": 128, "width": 96}), dynamo=False, **options)


def small_backbone():
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    return resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)


def mobile_backbone():
    from torchvision.models import mobilenet_v3_small
    from torchvision.models.detection.backbone_utils import _mobilenet_extractor
    return _mobilenet_extractor(mobilenet_v3_small(weights=None), True, 6)


def anchors(levels):
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    return AnchorGenerator(tuple((16 << k,) for k in range(levels)), ((0.5, 1.0, 2.0),) * levels)


SMALL_IMAGES = {"min_size": 96, "max_size": 128}
FEW_BOXES = {"rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20, "box_detections_per_img": 10, "box_score_thresh": 0.05}


def faster_rcnn():
    from torchvision.models.detection import FasterRCNN
    return FasterRCNN(mobile_backbone(), num_classes=5, rpn_anchor_generator=anchors(3), **SMALL_IMAGES, **FEW_BOXES)


def mask_rcnn():
    from torchvision.models.detection import MaskRCNN
    return MaskRCNN(small_backbone(), num_classes=5, rpn_anchor_generator=anchors(5), **SMALL_IMAGES, **FEW_BOXES)


def keypoint_rcnn():
    from torchvision.models.detection import KeypointRCNN
    return KeypointRCNN(small_backbone(), num_classes=2, rpn_anchor_generator=anchors(5), num_keypoints=5, **SMALL_IMAGES,
                        **FEW_BOXES)


def decided(model):
    """Scores as trained: untrained ones lie so close together that rounding picks the boxes."""
    import torch
    with torch.no_grad():
        model.head.classification_head.cls_logits.weight.mul_(40)
    return model


def retinanet():
    from torchvision.models.detection import RetinaNet
    return decided(RetinaNet(mobile_backbone(), 5, anchor_generator=anchors(3), score_thresh=0.0, topk_candidates=50,
                             detections_per_img=10, **SMALL_IMAGES))


def fcos():
    from torchvision.models.detection import FCOS
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    return decided(FCOS(mobile_backbone(), 5, anchor_generator=AnchorGenerator(((8,), (16,), (32,)), ((1.0,),) * 3),
                        score_thresh=0.02, topk_candidates=50, detections_per_img=10, **SMALL_IMAGES))


def ssdlite():
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    import torch
    model = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5, score_thresh=0.05, topk_candidates=50,
                                          detections_per_img=10)
    for m in model.modules(): # as they are, features vanish on the way and most boxes have one score
        if isinstance(m, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(m.weight)
    with torch.no_grad():
        for block in model.head.classification_head.module_list:
            block[-1].weight.mul_(0.1) # scores below 1
    return model


detection("fasterrcnn", faster_rcnn)
detection("maskrcnn", mask_rcnn)
detection("keypointrcnn", keypoint_rcnn)
detection("retinanet", retinanet)
detection("fcos", fcos)
detection("ssdlite", ssdlite, runs=3)
