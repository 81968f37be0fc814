"""Cases of com.microsoft's attention: packed operands, caches, batches without their padding, biases by distance."""

import numpy as np

from contrib_case import Const, Model, case, floats, sigmoid


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
