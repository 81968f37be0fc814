"""The networks of `make bench-gpu` as torch modules with seeded weights: made where the GPU is, stored nowhere.

`small` makes a few layers of the same structure, for machines without a GPU.
"""

import dataclasses
import math
import typing

import torch
from torch import nn
from torch.nn import functional as F

SEED = 20260101


# ---- attention, as each torch offers it ----
def attend(q, k, v, causal=False):
    # Tracing writes a float32 mask for causal attention whatever the network computes in: spelled out, the types stay.
    traced = causal and torch.onnx.is_in_onnx_export()
    if hasattr(F, "scaled_dot_product_attention") and not traced:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n = q.shape[-2]
        scores = scores + torch.full((n, n), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
    return scores.softmax(-1) @ v


def split_heads(x, heads):
    b, n, width = x.shape
    return x.reshape(b, n, heads, width // heads).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).flatten(2)


# ---- BERT ----
class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

    def forward(self, x):
        q, k, v = (split_heads(f(x), self.heads) for f in (self.q, self.k, self.v))
        x = self.norm1(x + self.out(join_heads(attend(q, k, v))))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, words=30522, places=512):
        super().__init__()
        self.word, self.place, self.kind = nn.Embedding(words, width), nn.Embedding(places, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.layers = nn.ModuleList([BertLayer(width, heads) for _ in range(layers)])
        self.pool = nn.Linear(width, width)

    def forward(self, ids):
        place = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.word(ids) + self.place(place) + self.kind(torch.zeros_like(ids)))
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pool(x[:, 0]))


# ---- ViT ----
class VitLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)

    def forward(self, x):
        q, k, v = (split_heads(t, self.heads) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(join_heads(attend(q, k, v)))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, side=224, patch=16, width=768, heads=12, layers=12, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.kind = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2 + 1, width))
        self.layers = nn.ModuleList([VitLayer(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.kind.expand(x.shape[0], -1, -1), x], 1) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


# ---- GPT-2 ----
class GptLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        q, k, v = (split_heads(t, self.heads) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(join_heads(attend(q, k, v, causal=True)))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, width=768, heads=12, layers=12, words=50257, places=1024):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(places, width)
        self.layers = nn.ModuleList([GptLayer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.word.weight)


# ---- a block as Llama's: root-mean-square norms, rotated places, shared keys, a gated product ----
class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        return y.to(x.dtype) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width=2048, heads=32, shared=8, hidden=8192):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, shared * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)

    def rotate(self, x):
        n, size = x.shape[-2], x.shape[-1]
        turn = 10000.0 ** (-torch.arange(0, size, 2, device=x.device, dtype=torch.float32) / size)
        angle = torch.outer(torch.arange(n, device=x.device, dtype=torch.float32), turn)
        angle = torch.cat([angle, angle], -1)
        half = torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1)
        return x * angle.cos().to(x.dtype) + half * angle.sin().to(x.dtype)

    def spread(self, x):
        b, h, n, size = x.shape
        return x.unsqueeze(2).expand(b, h, self.heads // h, n, size).reshape(b, self.heads, n, size)

    def forward(self, x):
        y = self.norm1(x)
        q = self.rotate(split_heads(self.q(y), self.heads))
        k = self.spread(self.rotate(split_heads(self.k(y), self.shared)))
        v = self.spread(split_heads(self.v(y), self.shared))
        x = x + self.out(join_heads(attend(q, k, v, causal=True)))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


# ---- U-Net ----
class UNet(nn.Module):
    def __init__(self, width=32, classes=2):
        super().__init__()
        w = [width << k for k in range(5)]
        self.down = nn.ModuleList([self.two(i, o) for i, o in zip([3] + w[:-1], w)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(w[k], w[k - 1], 2, 2) for k in range(4, 0, -1)])
        self.merge = nn.ModuleList([self.two(w[k], w[k - 1]) for k in range(4, 0, -1)])
        self.head = nn.Conv2d(w[0], classes, 1)

    @staticmethod
    def two(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
                             nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for k in range(4):
            x = self.merge[k](torch.cat([self.up[k](x), kept[3 - k]], 1))
        return self.head(x)


# ---- a detector built as YOLOv8n is ----
def conv(i, o, k=1, s=1):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o, eps=1e-3), nn.SiLU())


class Split(nn.Module):
    """Half of the channels go through a chain of residual pairs; every stage is kept and joined."""

    def __init__(self, i, o, n, residual):
        super().__init__()
        self.half, self.residual = o // 2, residual
        self.first, self.last = conv(i, o), conv((2 + n) * (o // 2), o)
        self.pair = nn.ModuleList([nn.Sequential(conv(o // 2, o // 2, 3), conv(o // 2, o // 2, 3)) for _ in range(n)])

    def forward(self, x):
        part = list(self.first(x).split(self.half, 1))
        for p in self.pair:
            y = p(part[-1])
            part.append(part[-1] + y if self.residual else y)
        return self.last(torch.cat(part, 1))


class Pyramid(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last = conv(c, c // 2), conv(2 * c, c)

    def forward(self, x):
        part = [self.first(x)]
        for _ in range(3):
            part.append(F.max_pool2d(part[-1], 5, 1, 2))
        return self.last(torch.cat(part, 1))


class Yolo(nn.Module):
    def __init__(self, classes=80, bins=16):
        super().__init__()
        self.classes, self.bins = classes, bins
        self.a = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), Split(32, 32, 1, True), conv(32, 64, 3, 2), Split(64, 64, 2, True))
        self.b = nn.Sequential(conv(64, 128, 3, 2), Split(128, 128, 2, True))
        self.c = nn.Sequential(conv(128, 256, 3, 2), Split(256, 256, 1, True), Pyramid(256))
        self.up1, self.up2 = Split(384, 128, 1, False), Split(192, 64, 1, False)
        self.down1, self.mix1 = conv(64, 64, 3, 2), Split(192, 128, 1, False)
        self.down2, self.mix2 = conv(128, 128, 3, 2), Split(384, 256, 1, False)
        size = (64, 128, 256)
        self.box = nn.ModuleList([nn.Sequential(conv(i, 64, 3), conv(64, 64, 3), nn.Conv2d(64, 4 * bins, 1)) for i in size])
        self.kind = nn.ModuleList([nn.Sequential(conv(i, 80, 3), conv(80, 80, 3), nn.Conv2d(80, classes, 1)) for i in size])

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = self.c(b)
        m = self.up1(torch.cat([F.interpolate(c, scale_factor=2.0, mode="nearest"), b], 1))
        s = self.up2(torch.cat([F.interpolate(m, scale_factor=2.0, mode="nearest"), a], 1))
        m = self.mix1(torch.cat([self.down1(s), m], 1))
        c = self.mix2(torch.cat([self.down2(m), c], 1))
        box = torch.cat([f(y).flatten(2) for f, y in zip(self.box, (s, m, c))], 2)
        kind = torch.cat([f(y).flatten(2) for f, y in zip(self.kind, (s, m, c))], 2)
        bin_ = torch.arange(self.bins, device=x.device, dtype=x.dtype)
        share = box.reshape(box.shape[0], 4, self.bins, -1).softmax(2)
        return torch.cat([(share * bin_.view(1, 1, -1, 1)).sum(2), kind.sigmoid()], 1)


# ---- the table ----
@dataclasses.dataclass
class Model:
    name: str
    make: typing.Callable[[bool], nn.Module]
    inputs: typing.Callable[[int, bool], list]  # (batch, small) -> tensors, seeded by the caller
    image: bool = False                         # channels last is the faster storage for torch


def picture(side, small_side=64):
    return lambda batch, small: [torch.randn(batch, 3, small_side if small else side, small_side if small else side)]


def tokens(words, n, small_n=16):
    return lambda batch, small: [torch.randint(0, 97 if small else words, (batch, small_n if small else n))]


def vision(name, **small_options):
    def make(small):
        import torchvision
        return getattr(torchvision.models, name)(weights=None, **(small_options if small else {}))
    return make


MODELS = {m.name: m for m in [
    Model("resnet50", vision("resnet50"), picture(224), image=True),
    Model("efficientnet_b0", vision("efficientnet_b0"), picture(224), image=True),
    Model("mobilenet_v3", vision("mobilenet_v3_large"), picture(224), image=True),
    Model("convnext_tiny", vision("convnext_tiny"), picture(224), image=True),
    Model("vit_b_16", lambda small: Vit(64, 16, 32, 2, 2, 10) if small else Vit(), picture(224)),
    Model("bert_base_s128", lambda small: Bert(32, 2, 2, 97, 64) if small else Bert(), tokens(30522, 128)),
    Model("gpt2_s512", lambda small: Gpt2(32, 2, 2, 97, 64) if small else Gpt2(), tokens(50257, 512)),
    Model("llama_block", lambda small: LlamaBlock(64, 4, 2, 96) if small else LlamaBlock(),
          lambda batch, small: [torch.randn(batch, 16 if small else 512, 64 if small else 2048)]),
    Model("unet256", lambda small: UNet(4) if small else UNet(), picture(256), image=True),
    Model("yolov8n", lambda small: Yolo(), picture(640), image=True),
]}


def settle(net, inputs):
    """Batch norms with the statistics of what runs through them: activations then stay in half's range at every depth. Other
    weights as their layers draw them."""
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    if not norms:
        return
    for m in norms:
        m.momentum = None
        m.train()
        nn.init.uniform_(m.weight, 0.8, 1.2)
        nn.init.normal_(m.bias, 0, 0.1)
    with torch.no_grad():
        net(*inputs)


def inputs(name, batch, small, dtype, device):
    """The same numbers for everyone who asks with these arguments, as the module that build() makes."""
    torch.manual_seed(SEED + 1)
    made = MODELS[name].inputs(batch, small)
    return [x.to(device=device, dtype=dtype) if x.is_floating_point() else x.to(device) for x in made]


def build(name, small, dtype, device):
    model = MODELS[name]
    torch.manual_seed(SEED)
    net = model.make(small).eval()
    settle(net, model.inputs(2, small))
    return net.eval().to(device=device, dtype=dtype)
