#!/usr/bin/env python3
"""com.microsoft's ops against ONNX Runtime: small models with random operands, its outputs as what ours have to be.

Each case becomes a folder as the suites have them, under build/conformance/contrib, and runs the four ways of run.py. Needs
onnx and onnxruntime (scripts/peers.py fuzz makes a Python that has both). What ONNX Runtime's CPU build cannot run (GroupNorm,
BiasAdd, ...) is held against NumPy instead.
"""

import argparse
import pathlib
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnxruntime as ort

import contrib_attention  # noqa: F401: its cases
import contrib_math  # noqa: F401: its cases
import run as conformance
from contrib_case import CASES, Const, Model, case, floats, sigmoid


# ---- products of few bits ----
def nbits(r, zero=None, group=False):
    k, n, block = 64, 6, 16
    blocks = k // block
    q, scale = r.integers(0, 256, (n, blocks, block // 2), np.uint8), np.abs(floats(r, n, blocks)) * 0.1
    at = np.sort(r.integers(0, blocks, k)).astype(np.int32) if group else (np.arange(k) // block).astype(np.int32)
    if group:
        at = r.permutation(at)
    x = floats(r, 3, k)
    w = np.stack([q & 15, q >> 4], -1).reshape(n, k).astype(np.float64)
    z = np.full((n, blocks), 8.0)
    if zero == "float":
        z = r.uniform(5, 11, (n, blocks)).astype(np.float32)
    given = None if zero is None else Const(z.astype(np.float32))
    y = x @ ((w - z[:, at]) * scale[:, at]).T
    return Model("MatMulNBits", [x, Const(q), Const(scale), given, Const(at) if group else None], want=[y.astype(np.float32)], K=k, N=n,
                 bits=4, block_size=block)


@case
def nbits_float_zeros(r):
    return nbits(r, zero="float")


@case
def nbits_by_group_index(r):
    return nbits(r, group=True)


@case
def nhwc_conv(r):
    x, w, b = floats(r, 1, 5, 6, 3), floats(r, 4, 3, 2, 2), floats(r, 4)
    y = np.zeros((1, 4, 5, 4))
    for i in range(4):
        for j in range(5):
            y[0, i, j] = np.einsum("hwc,mchw->m", x[0, i:i + 2, j:j + 2].astype(np.float64), w) + b
    return Model("NhwcConv", [x, Const(w), Const(b)], want=[y.astype(np.float32)])


# ---- lookups ----
def lookup(r, data, scales, zero=None, **attrs):
    return Model("GatherBlockQuantized", [Const(data) if isinstance(data, np.ndarray) else data, np.array([[2, 0], [4, 1]], np.int64),
                                          Const(scales), zero], **attrs)


@case
def gather_block_u8_packed(r):
    return lookup(r, r.integers(0, 256, (5, 16), np.uint8), floats(r, 5, 2), block_size=16, quantize_axis=1, gather_axis=0)


@case
def gather_block_u8_packed_zeros(r):
    return lookup(r, r.integers(0, 256, (5, 16), np.uint8), floats(r, 5, 2), Const(r.integers(0, 256, (5, 1), np.uint8)), block_size=16,
                  quantize_axis=1, gather_axis=0)


@case
def gather_block_8_bits(r):
    return lookup(r, r.integers(0, 256, (5, 32), np.uint8), floats(r, 5, 2), Const(r.integers(0, 256, (5, 2), np.uint8)), bits=8,
                  block_size=16, quantize_axis=1, gather_axis=0)


@case
def gather_block_int4(r):
    return lookup(r, Const(r.integers(0, 256, (5, 16), np.uint8), onnx.TensorProto.INT4, (5, 32)), floats(r, 5, 2), block_size=16,
                  quantize_axis=1, gather_axis=0)


@case
def gather_block_uint4_columns(r):
    return lookup(r, Const(r.integers(0, 256, (32, 4), np.uint8), onnx.TensorProto.UINT4, (32, 8)), floats(r, 2, 8),
                  Const(r.integers(0, 256, (2, 4), np.uint8), onnx.TensorProto.UINT4, (2, 8)), block_size=16, quantize_axis=0, gather_axis=1)


@case
def q_embed_norm(r):
    ids, kinds = np.array([[1, 3, 0], [2, 2, 1]], np.int32), np.array([[0, 1, 1], [0, 0, 1]], np.int32)
    table = [Const(r.integers(0, 256, n, np.uint8)) for n in ((5, 8), (4, 8), (2, 8), (8,), (8,))]
    scale = [Const(np.float32(s)) for s in (0.02, 0.01, 0.03, 0.01, 0.005)]
    zero = [Const(np.uint8(z)) for z in (128, 100, 140, 20, 130)]
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    return Model("QEmbedLayerNormalization", [ids, kinds, *table, mask, *scale, *zero], ("y", "kept"), epsilon=1e-5)


# ---- quantised reductions ----
@case
def qlinear_reduce_mean(r):
    x = r.integers(0, 256, (2, 3, 8), np.uint8)
    y = np.clip(np.rint((x.astype(np.float64) - 100).mean(2, keepdims=True) * 0.02 / 0.017) + 90, 0, 255).astype(np.uint8)
    return Model("QLinearReduceMean", [x, Const(np.float32(0.02)), Const(np.uint8(100)), Const(np.float32(0.017)), Const(np.uint8(90))],
                 want=[y], axes=[2], keepdims=1)


# ---- what diffusion models are fused to ----
def group_norm(x, gamma, beta, groups, eps, swish):
    n, h, w, c = x.shape
    g = x.astype(np.float64).reshape(n, h * w, groups, c // groups)
    g = (g - g.mean((1, 3), keepdims=True)) / np.sqrt(g.var((1, 3), keepdims=True) + eps)
    y = g.reshape(x.shape) * gamma + beta
    return (y * sigmoid(y) if swish else y).astype(np.float32)


@case
def group_norm_swish(r):
    x, gamma, beta = floats(r, 2, 3, 4, 8), floats(r, 8), floats(r, 8)
    return Model("GroupNorm", [x, Const(gamma), Const(beta)], want=[group_norm(x, gamma, beta, 4, 1e-5, True)], groups=4, activation=1,
                 epsilon=1e-5, channels_last=1)


@case
def group_norm_channels_first(r):
    x, gamma, beta = floats(r, 2, 3, 4, 8), floats(r, 8), floats(r, 8)
    y = group_norm(x, gamma, beta, 2, 1e-3, False).transpose(0, 3, 1, 2)
    return Model("GroupNorm", [np.ascontiguousarray(x.transpose(0, 3, 1, 2)), Const(gamma), Const(beta)], want=[np.ascontiguousarray(y)],
                 groups=2, activation=0, epsilon=1e-3, channels_last=0)


@case
def skip_group_norm(r):
    x, gamma, beta, skip, bias = floats(r, 2, 3, 4, 8), floats(r, 8), floats(r, 8), floats(r, 2, 8), floats(r, 8)
    s = x + skip[:, None, None, :] + bias
    return Model("SkipGroupNorm", [x, Const(gamma), Const(beta), skip, Const(bias)], ("y", "s"),
                 want=[group_norm(s, gamma, beta, 4, 1e-5, False), s], groups=4, activation=0, epsilon=1e-5, channels_last=1)


@case
def bias_add(r):
    x, b, skip = floats(r, 2, 5, 8), floats(r, 8), floats(r, 2, 5, 8)
    return Model("BiasAdd", [x, b, skip], want=[x + b + skip])


@case
def bias_split_gelu(r):
    import math
    x, b = floats(r, 2, 5, 16), floats(r, 16)
    s = (x + b).astype(np.float64)
    g = s[..., 8:] * 0.5 * (1 + np.vectorize(math.erf)(s[..., 8:] / np.sqrt(2)))
    return Model("BiasSplitGelu", [x, b], want=[(s[..., :8] * g).astype(np.float32)])


@case
def bias_softmax(r):
    x, b = floats(r, 2, 3, 4, 5), floats(r, 2, 1, 1, 5)
    e = np.exp((x + b).astype(np.float64))
    return Model("BiasSoftmax", [x, b], want=[(e / e.sum(-1, keepdims=True)).astype(np.float32)], axis=3, is_inner_broadcast=1)


@case
def bias_softmax_of_two_axes(r):
    x, b = floats(r, 2, 3, 4, 5), floats(r, 1, 3, 4, 5)
    e = np.exp((x + b).astype(np.float64))
    return Model("BiasSoftmax", [x, b], want=[(e / e.sum((2, 3), keepdims=True)).astype(np.float32)], axis=2, is_inner_broadcast=0)


# ---- four bits by a table ----
def bnb4(r, kind):
    k, n, block = 32, 8, 16
    return Model("MatMulBnb4", [floats(r, 3, k), Const(r.integers(0, 256, n * k // 2, np.uint8)), Const(np.abs(floats(r, n * k // block)))],
                 K=k, N=n, block_size=block, quant_type=kind)


@case
def bnb4_floats(r):
    return bnb4(r, 0)


@case
def bnb4_quantiles(r):
    return bnb4(r, 1)


# ---- mixtures of experts ----
E, HIDDEN, INTER, TOKENS = 4, 32, 16, 5


def moe(r, activation, width=1, bias=True, k=2, third=False, **attrs):
    w = [floats(r, E, INTER * width, HIDDEN) * 0.3, floats(r, E, INTER * width) if bias else None, floats(r, E, HIDDEN, INTER) * 0.3,
         floats(r, E, HIDDEN) if bias else None]
    return Model("MoE", [floats(r, TOKENS, HIDDEN), floats(r, TOKENS, E), *(None if x is None else Const(x) for x in w)],
                 activation_type=activation, k=k, **attrs)


@case
def moe_relu(r):
    return moe(r, "relu", k=1)


@case
def moe_gelu_normalised(r):
    return moe(r, "gelu", normalize_routing_weights=1)


@case
def moe_silu(r):
    return moe(r, "silu", bias=False, k=3)


@case
def moe_swiglu(r):
    return moe(r, "swiglu", width=2, normalize_routing_weights=1, swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
               swiglu_limit=7.0)


def qmoe(r, bits, block=0, zeros=False, width=1, **attrs):
    pack = 8 // bits

    def weights(rows, n):
        q = r.integers(0, 256, (E, rows, n // pack), np.uint8)
        scale = np.abs(floats(r, E, rows, n // block)) if block else np.abs(floats(r, E, rows))
        return Const(q), Const((scale * 0.05 / (1 << (bits - 4))).astype(np.float32))

    def zero(rows, n):
        per = max(1, n // block) if block else 1
        shape = (E, rows, (per + pack - 1) // pack) if block else (E, (rows + pack - 1) // pack)
        return Const(r.integers(0, 256, shape, np.uint8)) if zeros else None

    w1, s1 = weights(INTER * width, HIDDEN)
    w2, s2 = weights(HIDDEN, INTER)
    operands = [floats(r, TOKENS, HIDDEN), floats(r, TOKENS, E), w1, s1, Const(floats(r, E, INTER * width)), w2, s2, None]
    if zeros:
        operands += [None, None, None, zero(INTER * width, HIDDEN), zero(HIDDEN, INTER)]
    extra = {"block_size": block} if block else {}
    return Model("QMoE", operands, k=2, expert_weight_bits=bits, **extra, **attrs)


@case
def qmoe_4_bits(r):
    return qmoe(r, 4, activation_type="silu", normalize_routing_weights=1)


@case
def qmoe_8_bits(r):
    return qmoe(r, 8, activation_type="gelu", normalize_routing_weights=1) # which its CPU kernel always does


@case
def qmoe_4_bits_blocks(r):
    return qmoe(r, 4, block=16, activation_type="relu", normalize_routing_weights=1)


@case
def qmoe_zero_points(r):
    return qmoe(r, 4, block=16, zeros=True, activation_type="silu", normalize_routing_weights=1)


@case
def qmoe_swiglu(r):
    return qmoe(r, 4, width=2, activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0,
                normalize_routing_weights=1)


# ---- the run ----
def make(folder, only=""):
    """{case: folder}, {case: why ONNX Runtime does not run it}."""
    ort.set_default_logger_severity(4)
    shutil.rmtree(folder, ignore_errors=True)
    out, refused = {}, {}
    for name, f in sorted(CASES.items()):
        if only not in name:
            continue
        try:
            f(np.random.default_rng(zlib.crc32(name.encode()))).save(folder / name)
            out[name] = str(folder / name)
        except Exception as e: # whatever onnxruntime raises
            refused[name] = str(e).strip().splitlines()[0][:200]
    return out, refused


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--only", metavar="TEXT", default="")
    ap.add_argument("--ways", default=",".join(conformance.WAYS))
    ap.add_argument("--program", type=pathlib.Path)
    args = ap.parse_args()
    cases, refused = make(conformance.ROOT / "build" / "conformance" / "contrib", args.only)
    program = args.program or conformance.find_program(conformance.ROOT / "build" / "release")
    bad = 0
    for way in args.ways.split(","):
        got = conformance.run_all([str(program), *conformance.WAYS[way]], cases, 2, 120)
        for c, (verdict, reason) in sorted(got.items()):
            if verdict != "pass":
                bad += 1
                print(f"      {c}, {way}: {verdict}: {reason}")
    for c, why in refused.items():
        print(f"      {c}: ONNX Runtime {ort.__version__} does not run it: {why}")
    print(f"contrib: {len(cases)} passed, {bad + len(refused)} failed, 0 skipped" if not bad and not refused
          else f"contrib: {len(cases)} cases, {bad + len(refused)} failed, 0 skipped")
    return 1 if bad or refused else 0


if __name__ == "__main__":
    sys.exit(main())
