"""Cases of com.microsoft's small sums and gates, and of standard ops under its domain."""

import numpy as np

from contrib_case import Const, Model, case, floats, sigmoid


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
