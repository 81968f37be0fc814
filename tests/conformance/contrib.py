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
from onnx import helper, numpy_helper

import run as conformance

MS = "com.microsoft"
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


class Model:
    """One node of com.microsoft. feed: inputs of the model by name; const: initializers by name; both in the node's order."""

    def __init__(self, op, operands, outputs=("y",), want=None, **attrs):
        self.op, self.operands, self.outputs, self.want, self.attrs = op, operands, outputs, want, attrs

    def save(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        feed, init, names = {}, [], []
        for i, x in enumerate(self.operands):
            name = f"x{i}" if x is not None else ""
            names.append(name)
            if isinstance(x, Const):
                init.append(x.tensor(name))
            elif x is not None:
                feed[name] = x
        node = helper.make_node(self.op, names, list(self.outputs), domain=MS, **self.attrs)
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feed.items()]
        outs = [onnx.ValueInfoProto(name=o) for o in self.outputs if o]
        graph = helper.make_graph([node], "g", ins, outs, init)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)], ir_version=10)
        if self.want is None:
            o = ort.SessionOptions()
            o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            got = ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"]).run(None, feed)
        else:
            got = self.want
        for out, v in zip(outs, got):
            out.CopyFrom(helper.make_tensor_value_info(out.name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape))
        del graph.output[:]
        graph.output.extend(outs)
        model = helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        for i, (n, v) in enumerate(feed.items()):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(v, n).SerializeToString())
        for i, (out, v) in enumerate(zip(outs, got)):
            (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(v, out.name).SerializeToString())


class Const:
    """An initializer; type: another ONNX type than the array's, for 4 bits."""

    def __init__(self, value, type=None, shape=None):
        self.value, self.type, self.shape = np.ascontiguousarray(value), type, shape

    def tensor(self, name):
        if self.type is None:
            return numpy_helper.from_array(self.value, name)
        return helper.make_tensor(name, self.type, self.shape, self.value.tobytes(), raw=True)


def floats(r, *shape):
    return r.standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- attention ----
def qattention(r, past=False, mask=None, per_column=False, **attrs):
    b, s, hidden, heads = 2, 3, 8, 2
    x, w = r.integers(0, 256, (b, s, hidden), np.uint8), r.integers(-128, 128, (hidden, 3 * hidden), np.int8)
    scale = floats(r, 3 * hidden) ** 2 * 0.01 + 0.001 if per_column else np.float32(0.02)
    old = floats(r, 2, b, heads, 4, hidden // heads) if past else None
    return Model("QAttention", [x, Const(w), Const(floats(r, 3 * hidden)), Const(np.float32(0.01)), Const(np.asarray(scale, np.float32)),
                                mask, Const(np.uint8(120)), Const(np.zeros(3 * hidden, np.int8) if per_column else np.int8(3)), old],
                 ("y", "present") if past else ("y",), num_heads=heads, **attrs)


@case
def qattention_plain(r):
    return qattention(r)


@case
def qattention_causal(r):
    return qattention(r, unidirectional=1)


@case
def qattention_per_column(r):
    return qattention(r, per_column=True)


@case
def qattention_masked(r):
    return qattention(r, mask=np.array([[1, 1, 0], [1, 1, 1]], np.int32))


@case
def qattention_cache(r):
    return qattention(r, past=True, unidirectional=1)


@case
def attention_cache(r):
    b, s, hidden, heads = 1, 2, 8, 2
    return Model("Attention", [floats(r, b, s, hidden), floats(r, hidden, 3 * hidden), floats(r, 3 * hidden), None,
                               floats(r, 2, b, heads, 3, hidden // heads)], ("y", "present"), num_heads=heads, unidirectional=1)


# ---- attention over a cache ----
def tables(r, n, half):
    at = r.uniform(0, 6.28, (n, half))
    return np.cos(at).astype(np.float32), np.sin(at).astype(np.float32)


def cached(r, before, room, heads, d):
    """A cache [b, h, room, d] of which sequence i holds before[i] tokens; zeros behind them, as runtimes leave there."""
    x = floats(r, len(before), heads, room, d)
    for i, n in enumerate(before):
        x[i, :, n:] = 0
    return x


def gqa(r, s=1, before=None, room=0, rotary=False, packed=False, open_total=False, bias=False, sink=False, positions=False, new=None,
        **attrs):
    """Sequences that hold before[i] tokens get s more (of which new[i] count); room: of the cache, 0: without one."""
    heads, kv, d = 4, 2, 16 # its kernel wants sixteens
    before = before or [0]
    b, added = len(before), new or [s] * len(before)
    q, k, v = floats(r, b, s, heads * d), floats(r, b, s, kv * d), floats(r, b, s, kv * d)
    total = max(n + m for n, m in zip(before, added)) if not new else max(before) + s
    lengths = np.array([n + m - 1 for n, m in zip(before, added)], np.int32)
    past = [cached(r, before, room, kv, d), cached(r, before, room, kv, d)] if room else [None, None]
    cos, sin = tables(r, 40, d // 2) if rotary else (None, None)
    place = np.array([[n + i for i in range(s)] for n in before], np.int64) if positions else None
    score = floats(r, 1, heads, s, total) if bias else None
    count = np.array(total, np.int32)
    operands = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
    operands += [*past, lengths, count if open_total else Const(count), None if cos is None else Const(cos),
                 None if sin is None else Const(sin), place, score, Const(floats(r, heads)) if sink else None]
    if new:
        operands += [None] * 4 + [np.array(new, np.int32)]
    while operands[-1] is None:
        operands.pop()
    return Model("GroupQueryAttention", operands, ("y", "k", "v"), num_heads=heads, kv_num_heads=kv, do_rotary=int(rotary), **attrs)


@case
def gqa_prompt(r):
    return gqa(r, s=5)


@case
def gqa_growing(r):
    return gqa(r, before=[6], room=6, rotary=True)


@case
def gqa_growing_open_total(r):
    return gqa(r, before=[6], room=6, rotary=True, open_total=True)


@case
def gqa_shared(r):
    return gqa(r, before=[6], room=16, rotary=True)


@case
def gqa_shared_open_total(r):
    return gqa(r, before=[6], room=16, rotary=True, open_total=True)


@case
def gqa_shared_full(r):
    return gqa(r, before=[15], room=16)


@case
def gqa_shared_prompt(r):
    return gqa(r, s=5, before=[0], room=16, rotary=True, packed=True)


@case
def gqa_shared_more_of_a_prompt(r):
    return gqa(r, s=3, before=[4], room=16, rotary=True)


@case
def gqa_shared_batch(r):
    return gqa(r, before=[6, 2, 11], room=16, rotary=True)


@case
def gqa_shared_batch_open_total(r):
    return gqa(r, before=[6, 2, 11], room=16, rotary=True, open_total=True)


@case
def gqa_growing_batch(r):
    return gqa(r, before=[6, 6], room=6, rotary=True, open_total=True)


@case
def gqa_window(r):
    return gqa(r, before=[9], room=16, local_window_size=4)


@case
def gqa_window_batch(r):
    return gqa(r, before=[9, 3], room=16, local_window_size=4, rotary=True)


@case
def gqa_window_prompt(r):
    return gqa(r, s=7, local_window_size=3)


@case
def gqa_softcap(r):
    return gqa(r, before=[6], room=16, softcap=2.0, rotary=True, rotary_interleaved=1)


@case
def gqa_bias(r):
    return gqa(r, before=[6], room=16, bias=True, rotary=True)


@case
def gqa_sink(r):
    return gqa(r, before=[6, 3], room=16, sink=True, rotary=True, local_window_size=4)


@case
def gqa_smooth(r):
    return gqa(r, s=4, smooth_softmax=1)


@case
def gqa_positions(r):
    return gqa(r, before=[6, 4], room=16, rotary=True, positions=True)


@case
def gqa_both_ways(r):
    return gqa(r, s=5, before=[3], room=8, causal=0)


@case
def gqa_counted_queries(r):
    return gqa(r, s=3, before=[4, 1], room=16, new=[3, 3], rotary=True)


@case
def gqa_scale(r):
    return gqa(r, before=[3], room=8, scale=0.5)


def decoder(r, room, before, beams=0, bias=False, mask=False, cross=False):
    b, heads, d = (2 * beams if beams else 2), 2, 8
    x = [floats(r, b, 1, heads * d) for _ in range(3)]
    past, length = [cached(r, [before] * b, room, heads, d) for _ in range(2)], np.array([before], np.int32)
    keys = before + 1
    if cross:
        x[1:], past, length, keys = past, [None, None], None, room
    operands = [*x, r.integers(0, 2, (b, keys), np.int32) | (np.arange(keys) == 0).astype(np.int32) if mask else None, None, *past, length]
    operands += [Const(np.array([beams], np.int32)), r.integers(0, beams, (2, beams, room), np.int32)] if beams else [None, None]
    operands += [Const(floats(r, 3 * heads * d)) if bias else None]
    return Model("DecoderMaskedMultiHeadAttention", operands, ("y",) if cross else ("y", "k", "v"), num_heads=heads,
                 past_present_share_buffer=int(not cross))


@case
def decoder_attention(r):
    return decoder(r, 9, 5)


@case
def decoder_attention_masked_with_bias(r):
    return decoder(r, 9, 5, bias=True, mask=True)


@case
def decoder_attention_first(r):
    return decoder(r, 9, 0)


@case
def decoder_attention_of_beams(r):
    return decoder(r, 9, 5, beams=3)


@case
def decoder_attention_across(r):
    return decoder(r, 9, 0, cross=True)


def attend(q, k, v, seen=None, bias=0.0):
    """[..., s, d] over [..., t, d] in float64."""
    score = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias
    score = score if seen is None else np.where(seen, score, -np.inf)
    e = np.exp(score - score.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def merged(y):
    """[b, h, s, d] as [b, s, h * d]."""
    b, h, s, d = y.shape
    return np.ascontiguousarray(y.transpose(0, 2, 1, 3).reshape(b, s, h * d)).astype(np.float32)


@case
def multi_head_cache(r):
    x, past = [floats(r, 2, 3, 16) for _ in range(3)], [floats(r, 2, 2, 4, 8) for _ in range(2)]
    return Model("MultiHeadAttention", [*x, None, None, None, *past], ("y", "k", "v"), num_heads=2, unidirectional=1)


@case
def multi_head_packed(r):
    x = floats(r, 2, 3, 2, 3, 8) # [b, s, heads, 3, d]
    q, k, v = (x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    return Model("MultiHeadAttention", [x], want=[merged(attend(q, k, v))], num_heads=2)


@case
def multi_head_packed_keys(r):
    q, x = floats(r, 2, 3, 16), floats(r, 2, 5, 2, 2, 8)
    k, v = (x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
    y = attend(q.reshape(2, 3, 2, 8).transpose(0, 2, 1, 3), k, v)
    return Model("MultiHeadAttention", [q, x], want=[merged(y)], num_heads=2)


# ---- batches without their padding ----
COUNTS, LONGEST = np.array([1, 3, 4], np.int32), 4


def token_offset():
    own = np.arange(LONGEST)[None] < COUNTS[:, None]
    rows = np.arange(own.size).reshape(own.shape)
    return np.concatenate([rows[own], rows[~own]]).reshape(own.shape).astype(np.int32), rows[own]


def begins():
    return np.concatenate([[0], np.cumsum(COUNTS)]).astype(np.int32)


@case
def remove_padding(r):
    x, (offset, rows) = floats(r, 3, LONGEST, 6), token_offset()
    return Model("RemovePadding", [x, COUNTS], ("y", "offset", "begins", "longest"),
                 want=[x.reshape(-1, 6)[rows], offset, begins(), np.array([4], np.int32)])


@case
def restore_padding(r):
    offset, rows = token_offset()
    x, y = floats(r, len(rows), 6), np.zeros((3 * LONGEST, 6), np.float32)
    y[rows] = x
    return Model("RestorePadding", [x, offset], want=[y.reshape(3, LONGEST, 6)])


def attend_texts(q, k, v, heads, bias=None):
    """Each text by itself; packed [n, heads * d]."""
    out, at = [], begins()
    for i, n in enumerate(COUNTS):
        parts = [x[at[i]:at[i + 1]].reshape(n, heads, -1).transpose(1, 0, 2) for x in (q, k, v)]
        out.append(attend(*parts, bias=0.0 if bias is None else bias[i % len(bias), :, :n, :n]).transpose(1, 0, 2).reshape(n, -1))
    return np.concatenate(out).astype(np.float32)


@case
def packed_attention(r):
    offset, rows = token_offset()
    x, w, b, bias = floats(r, len(rows), 6), floats(r, 6, 24) * 0.4, floats(r, 24), floats(r, 1, 2, LONGEST, LONGEST)
    qkv = x.astype(np.float64) @ w + b
    return Model("PackedAttention", [x, Const(w), Const(b), offset, begins(), bias],
                 want=[attend_texts(*np.split(qkv, 3, -1), 2, bias)], num_heads=2)


@case
def packed_multi_head_attention(r):
    offset, rows = token_offset()
    q, k, v, b = floats(r, len(rows), 8), floats(r, len(rows), 8), floats(r, len(rows), 12), floats(r, 28)
    return Model("PackedMultiHeadAttention", [q, k, v, Const(b), offset, begins()],
                 want=[attend_texts(q + b[:8], k + b[8:16], v + b[16:], 2)], num_heads=2)


@case
def packed_multi_head_attention_in_one(r):
    offset, rows = token_offset()
    x = floats(r, len(rows), 2, 3, 4)
    return Model("PackedMultiHeadAttention", [x, None, None, None, offset, begins()],
                 want=[attend_texts(*(x[:, :, i].reshape(len(rows), 8) for i in range(3)), 2)], num_heads=2)


@case
def gated_relative_position_bias(r):
    b, s, h, d = 2, 5, 3, 4
    q, qb, pos, w = floats(r, b, s, h * d), floats(r, h * d), floats(r, 1, h, s, s), floats(r, d, 8)
    bias, eco = floats(r, 8), floats(r, 1, h, 1, 1)
    x = (q + qb).astype(np.float64).reshape(b, s, h, d).transpose(0, 2, 1, 3)
    g = sigmoid((x @ w + bias).reshape(b, h, s, 2, 4).sum(-1))
    y = (g[..., :1] * (g[..., 1:] * eco - 1) + 2) * pos
    return Model("GatedRelativePositionBias", [q, qb, pos, Const(w), Const(bias), eco], want=[y.astype(np.float32)], num_heads=h)


# ---- small sums ----
@case
def cdist(r):
    return Model("CDist", [floats(r, 4, 6), floats(r, 5, 6)], metric="euclidean")


@case
def cdist_squared(r):
    return Model("CDist", [floats(r, 4, 6), floats(r, 5, 6)], metric="sqeuclidean")


def complex_mul(r, conj):
    a, b = floats(r, 2, 3, 2), floats(r, 3, 2)
    x, y = a[..., 0] + 1j * a[..., 1].astype(np.complex128), b[..., 0] + 1j * b[..., 1].astype(np.complex128)
    z = x * (np.conj(y) if conj else y)
    return Model("ComplexMulConj" if conj else "ComplexMul", [a, b], want=[np.stack([z.real, z.imag], -1).astype(np.float32)])


@case
def complex_product(r):
    return complex_mul(r, False)


@case
def complex_product_conjugated(r):
    return complex_mul(r, True)


@case
def rfft(r):
    x = floats(r, 2, 3, 12)
    z = np.fft.rfft(x.astype(np.float64))
    return Model("Rfft", [x], want=[np.stack([z.real, z.imag], -1).astype(np.float32)], signal_ndim=1, normalized=0, onesided=1)


@case
def irfft(r):
    z = np.fft.rfft(floats(r, 2, 3, 12).astype(np.float64))
    x = np.stack([z.real, z.imag], -1).astype(np.float32)
    y = np.fft.irfft(x[..., 0] + 1j * x[..., 1].astype(np.complex128))
    return Model("Irfft", [x], want=[y.astype(np.float32)], signal_ndim=1, normalized=0, onesided=1)


@case
def expand_dims(r):
    return Model("ExpandDims", [floats(r, 2, 3), Const(np.array(-2, np.int32))])


@case
def unfold(r):
    return Model("UnfoldTensor", [floats(r, 2, 9, 3)], dim=1, size=4, step=2)


@case
def mul_integer(r):
    a, b = r.integers(-128, 128, (3, 4), np.int8), r.integers(-128, 128, (4,), np.int8)
    return Model("MulInteger", [a, Const(np.int8(3)), b, Const(np.int8(-7))], want=[(a.astype(np.int32) - 3) * (b.astype(np.int32) + 7)])


@case
def reduce_sum_integer(r):
    x = r.integers(0, 256, (3, 4, 5), np.uint8)
    return Model("ReduceSumInteger", [x], want=[x.astype(np.uint32).sum(1, keepdims=True, dtype=np.uint32)], axes=[1], keepdims=1)


@case
def matmul_integer16(r):
    return Model("MatMulInteger16", [r.integers(-3000, 3000, (3, 5), np.int16), r.integers(-3000, 3000, (5, 4), np.int16)])


def fused_matmul(r, a, b, **attrs):
    return Model("FusedMatMul", [floats(r, *a), floats(r, *b)], **attrs)


@case
def fused_matmul_rows_outside(r):
    return fused_matmul(r, (4, 2, 3, 5), (2, 3, 5, 6), transBatchA=1, alpha=0.5)


@case
def fused_matmul_both_outside(r):
    return fused_matmul(r, (5, 2, 3, 4), (6, 2, 3, 5), transBatchA=1, transA=1, transBatchB=1, transB=1)


@case
def fused_matmul_activation(r):
    a, b = floats(r, 3, 4), floats(r, 4, 5)
    return Model("FusedMatMulActivation", [a, b], want=[np.maximum(a.astype(np.float64) @ b, 0).astype(np.float32)], activation="Relu")


@case
def all_finite(r):
    x = floats(r, 2, 3)
    x[1, 2] = np.inf
    return Model("IsAllFinite", [floats(r, 4), x], want=[np.array(False)])


@case
def no_nan(r):
    x = floats(r, 2, 3)
    x[1, 2] = np.inf
    return Model("IsAllFinite", [floats(r, 4), x], want=[np.array(True)], isnan_only=1)


# ---- gates ----
@case
def swiglu(r):
    gate, up = floats(r, 2, 3, 8) * 3, floats(r, 2, 3, 8) * 3
    g, u = np.minimum(gate, 2.5).astype(np.float64), np.clip(up, -2.5, 2.5).astype(np.float64)
    return Model("SwiGLU", [gate, up], want=[(g * sigmoid(1.702 * g) * (u + 1)).astype(np.float32)], activation_alpha=1.702,
                 activation_beta=1.0, limit=2.5)


@case
def swiglu_in_one(r):
    x = floats(r, 2, 3, 16)
    g, u = x[..., :8].astype(np.float64), x[..., 8:]
    return Model("SwiGLU", [x], want=[(g * sigmoid(g) * u).astype(np.float32)])


@case
def gated_rms_norm(r):
    return Model("GatedRMSNorm", [floats(r, 2, 3, 16), Const(floats(r, 8)), floats(r, 2, 3, 16)], activation="silu", epsilon=1e-5)


@case
def gated_add(r):
    return Model("GatedAdd", [floats(r, 2, 3, 8), floats(r, 2, 3, 8), floats(r, 2, 3, 1)])


@case
def scaled_silu(r):
    return Model("ScaledSiLU", [floats(r, 2, 3, 8)], alpha=1.5)


@case
def linear_attention_gate(r):
    return Model("LinearAttentionGate", [floats(r, 2, 3, 4), Const(floats(r, 4)), Const(floats(r, 4)), floats(r, 2, 3, 4)], ("d", "b"))


@case
def linear_attention(r):
    return Model("LinearAttention", [floats(r, 1, 3, 16), floats(r, 1, 3, 16) * 0.3, floats(r, 1, 3, 16), floats(r, 1, 2, 8, 8),
                                     floats(r, 1, 3, 2) * 0.1, sigmoid(floats(r, 1, 3, 2))], ("y", "state"), q_num_heads=2, kv_num_heads=2,
                 update_rule="gated_delta")


@case
def causal_conv(r):
    return Model("CausalConvWithState", [floats(r, 2, 5, 7), Const(floats(r, 5, 1, 4)), Const(floats(r, 5)), floats(r, 2, 5, 3)],
                 ("y", "state"), activation="silu")


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


# ---- bias by distance ----
def distance_bias(r, both):
    buckets, heads, q, k, farthest = 32, 3, 40, 50, 20
    table = floats(r, buckets, heads)
    ahead = np.arange(k)[None, :] - np.arange(q)[:, None]
    n = buckets // 2 if both else buckets
    away = np.abs(ahead) if both else np.maximum(-ahead, 0)
    far = n // 2 + (np.log(np.maximum(away, 1) / (n // 2)) / np.log(farthest / (n // 2)) * (n - n // 2)).astype(np.int64)
    bucket = np.where(away < n // 2, away, np.minimum(far, n - 1)) + (np.where(ahead > 0, n, 0) if both else 0)
    return Model("RelativePositionBias", [Const(table), Const(np.array([q], np.int64)), Const(np.array([k], np.int64))],
                 want=[np.ascontiguousarray(table[bucket].transpose(2, 0, 1)[None])], max_distance=farthest, is_bidirectional=int(both))


@case
def distance_bias_both_ways(r):
    return distance_bias(r, True)


@case
def distance_bias_backwards(r):
    return distance_bias(r, False)


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


# ---- standard ops under this domain ----
@case
def trilu(r):
    return Model("Trilu", [floats(r, 2, 4, 5), np.array(1, np.int64)], upper=0)


@case
def pad(r):
    return Model("Pad", [floats(r, 2, 3), Const(np.array([0, 1, 1, 2], np.int64)), Const(np.array([0.5], np.float32))], mode="constant")


@case
def gather_nd(r):
    return Model("GatherND", [floats(r, 3, 4), np.array([[1, 2], [0, 3]], np.int64)])


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
