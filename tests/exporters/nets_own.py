"""Networks written out here: recurrent, generative, audio, graphs; what the libraries do not hold."""

from nets import OPSETS, Library

lib = Library("own")

SEQUENCES = ({"batch": 1, "seq": 6}, {"batch": 3, "seq": 11})
SIGNAL = {"x": "f32[batch,seq,16] normal(0, 1)"}
IMAGES = ({"batch": 1, "height": 32, "width": 32}, {"batch": 2, "height": 48, "width": 64})


def recurrent(name, **options):
    @lib.net(name, SIGNAL, SEQUENCES, debian=True, derive=("dynamic", *OPSETS, "loose") if name == "lstm" else ())
    def make():
        import torch

        class Tagger(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = getattr(torch.nn, name.split("_")[0].upper())(16, 24, num_layers=2, batch_first=True, **options)
                self.head = torch.nn.Linear(24 * (2 if options.get("bidirectional") else 1), 5)

            def forward(self, x):
                y, state = self.cell(x)
                return self.head(y), state[0] if isinstance(state, tuple) else state
        return Tagger()


recurrent("lstm", bidirectional=True)
recurrent("gru", bidirectional=True)
recurrent("rnn")


@lib.net("unet", {"x": "f32[batch,3,height,width] image"}, IMAGES, debian=True, derive=("qdq", "qdq_s8", "qdq_16", "qdq_w4", "qdq_f8", "sim", "slim", "ort_fp16", *OPSETS, "loose"))
def unet():
    import torch
    from torch import nn

    def two(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                             nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([two(3, 8), two(8, 16), two(16, 32)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
            self.merge = nn.ModuleList([two(32, 16), two(16, 8)])
            self.head = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            kept = []
            for k, block in enumerate(self.down):
                x = block(x if k == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for k in range(2):
                x = self.merge[k](torch.cat([self.up[k](x), kept[1 - k]], 1))
            return self.head(x)
    return UNet()


@lib.net("transformer", {"x": "f32[batch,seq,32] normal(0, 1)", "y": "f32[batch,out,32] normal(0, 1)"},
         ({"batch": 1, "seq": 6, "out": 4}, {"batch": 2, "seq": 9, "out": 7}))
def transformer():
    import torch
    return torch.nn.Transformer(32, 4, 2, 2, 64, batch_first=True, norm_first=True)


@lib.net("upscaler", {"x": "f32[batch,1,height,width] image"}, IMAGES, debian=True, derive=("ort_fp16", *OPSETS, "loose"))
def upscaler():
    """Sub-pixel convolution beside a bicubic picture."""
    import torch
    from torch import nn

    class Upscaler(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.PReLU(16), nn.Conv2d(16, 16, 3, padding=1), nn.PReLU(16),
                                      nn.Conv2d(16, 4, 3, padding=1), nn.PixelShuffle(2))

        def forward(self, x):
            return self.body(x) + nn.functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
    torch.manual_seed(1)
    return Upscaler()


@lib.net("pyramid", {"x": "f32[batch,3,height,width] image"}, IMAGES, derive=("opset9", "opset11"), opset=10)
def pyramid():
    """Features resized to those of the level above: exporters before opset 11 divide the scales out of shapes."""
    import torch
    from torch import nn

    class Pyramid(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 2, 1)])
            self.up = nn.ModuleList([nn.Conv2d(8, 8, 1) for _ in range(2)])

        def forward(self, x):
            levels = []
            for d in self.down:
                x = torch.relu(d(x))
                levels.append(x)
            for mode, up, skip in zip(("nearest", "bilinear"), self.up, levels[-2::-1]):
                x = skip + nn.functional.interpolate(up(x), size=skip.shape[2:], mode=mode)
            return x
    torch.manual_seed(1)
    return Pyramid()


@lib.net("generator", {"z": "f32[batch,16,1,1] normal(0, 1)"}, ({"batch": 1}, {"batch": 3}), debian=True)
def generator():
    from torch import nn
    return nn.Sequential(nn.ConvTranspose2d(16, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1),
                         nn.InstanceNorm2d(16, affine=True), nn.LeakyReLU(0.2), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())


@lib.net("wavenet", {"x": "f32[batch,1,seq] audio"}, ({"batch": 1, "seq": 256}, {"batch": 2, "seq": 400}), debian=True)
def wavenet():
    """Dilated causal convolutions, gated, with weight normalisation."""
    import torch
    from torch import nn

    class WaveNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(1, 16, 1)
            self.wide = nn.ModuleList([nn.utils.weight_norm(nn.Conv1d(16, 32, 2, dilation=1 << k)) for k in range(5)])
            self.skip = nn.ModuleList([nn.Conv1d(16, 16, 1) for _ in range(5)])
            self.last = nn.Conv1d(16, 8, 1)

        def forward(self, x):
            x, total = self.first(x), 0
            for k, (wide, skip) in enumerate(zip(self.wide, self.skip)):
                a, b = wide(nn.functional.pad(x, (1 << k, 0))).chunk(2, 1)
                y = torch.tanh(a) * torch.sigmoid(b)
                total, x = total + skip(y), x + y
            return self.last(torch.relu(total))
    return WaveNet()


@lib.net("spectrogram", {"x": "f32[batch,samples] audio"}, ({"batch": 1, "samples": 1024}, {"batch": 2, "samples": 1600}))
def spectrogram():
    """Short-time transform, mel filters, logarithm, convolution, GRU."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.hann_window(128))
            self.mel = nn.Linear(65, 20, bias=False)
            nn.init.uniform_(self.mel.weight, 0, 0.1)
            self.conv = nn.Conv1d(20, 16, 3, stride=2)
            self.gru = nn.GRU(16, 16, batch_first=True)

        def forward(self, x):
            s = torch.view_as_real(torch.stft(x, 128, 64, window=self.window, center=False, return_complex=True))
            power = (s * s).sum(-1).transpose(1, 2)
            y = self.conv(torch.log(self.mel(power) + 1e-4).transpose(1, 2))
            return self.gru(torch.relu(y).transpose(1, 2))[0]
    return Net()


@lib.net("graph", {"x": "f32[nodes,16] normal(0, 1)", "edge": "i64[2,edges] int(0, 5)"},
         ({"nodes": 6, "edges": 9}, {"nodes": 8, "edges": 14}))
def graph():
    """Messages along edges: gather, scatter with addition and maximum, softmax over a node's neighbours."""
    import torch
    from torch import nn

    class GraphNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.message = nn.ModuleList([nn.Linear(32, 16), nn.Linear(32, 16)])
            self.score = nn.ModuleList([nn.Linear(32, 1), nn.Linear(32, 1)])
            self.update = nn.ModuleList([nn.Linear(48, 16), nn.Linear(48, 16)])

        def forward(self, x, edge):
            source, target = edge[0], edge[1]
            for k in range(2):
                both = torch.cat([x[source], x[target]], 1)
                weight = torch.exp(self.score[k](both))
                total = torch.zeros(x.shape[0], 1).index_add(0, target, weight)
                sent = self.message[k](both) * weight / total[target]
                summed = torch.zeros_like(x).index_add(0, target, sent)
                most = torch.full_like(x, -1.0).scatter_reduce(0, target.unsqueeze(1).expand_as(sent), sent, "amax")
                x = x + torch.tanh(self.update[k](torch.cat([x, summed, most], 1)))
            return x.mean(0, keepdim=True), x
    return GraphNet()
