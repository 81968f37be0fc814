#!/usr/bin/python3
"""Export the seeded networks of bench/models.toml with Debian's torch into .cache/models.

Runs under /usr/bin/python3 with python3-torch, python3-torchvision and python3-onnx (scripts/deps.sh export).
Weights are random but seeded: the same files on every Debian 12, none of them stored anywhere.
"""

import argparse
import os
import sys
import tempfile
import warnings

import models as table

OPSET = 13


def unet(torch, width=32, classes=2):
    """The classic U-Net, four levels down, transposed convolutions up; 256x256 in and out."""
    nn = torch.nn

    def two(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                             nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            w = [width << k for k in range(5)]
            self.down = nn.ModuleList([two(i, o) for i, o in zip([3] + w[:-1], w)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(w[k], w[k - 1], 2, 2) for k in range(4, 0, -1)])
            self.merge = nn.ModuleList([two(w[k], w[k - 1]) for k in range(4, 0, -1)])
            self.head = nn.Conv2d(w[0], classes, 1)

        def forward(self, x):
            kept = []
            for k, block in enumerate(self.down):
                x = block(x if k == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for k in range(4):
                x = self.merge[k](torch.cat([self.up[k](x), kept[3 - k]], 1))
            return self.head(x)

    return UNet()


def settle_batch_norms(torch, net):
    """Give batch norms statistics as training leaves them: untouched ones would be folded to nothing."""
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(m.running_var, 0.5, 1.5)
            torch.nn.init.normal_(m.running_mean, 0, 0.1)
            torch.nn.init.uniform_(m.weight, 0.8, 1.2)
            torch.nn.init.normal_(m.bias, 0, 0.1)


def build(torch, name):
    import torchvision
    make = {"resnet50": lambda: torchvision.models.resnet50(weights=None),
            "mobilenet_v3": lambda: torchvision.models.mobilenet_v3_large(weights=None),
            "efficientnet_b0": lambda: torchvision.models.efficientnet_b0(weights=None),
            "unet256": lambda: unet(torch)}[name]
    torch.manual_seed(20260101)
    net = make()
    settle_batch_norms(torch, net)
    return net.eval()


def export(torch, model):
    (_, dims), = model.shapes().items()
    net = build(torch, model.name)
    model.path.parent.mkdir(parents=True, exist_ok=True)
    fd, part = tempfile.mkstemp(dir=model.path.parent, prefix=".part-")
    os.close(fd)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, torch.zeros(dims), part, opset_version=OPSET, input_names=["x"], output_names=["y"])
    os.chmod(part, 0o644)
    os.replace(part, model.path)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", metavar="NAME[,NAME]")
    ap.add_argument("--force", action="store_true", help="export again what is there")
    args = ap.parse_args()
    wanted = [m for m in table.select(args.only.split(",") if args.only else None) if m.source == "export"]
    todo = [m for m in wanted if args.force or not m.path.exists()]
    if not todo:
        return 0
    try:
        import torch
    except ImportError as e:
        print(f"error: {e}; scripts/deps.sh export installs Debian's torch for /usr/bin/python3", file=sys.stderr)
        return 1
    for m in todo:
        export(torch, m)
        print(f"exported {m.name:20} {m.path.stat().st_size / 1e6:7.1f} MB  opset {OPSET}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
