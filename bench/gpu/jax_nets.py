"""The transformers of suite.py as jax functions of the same weights, for the peer `jax` of `make bench-gpu`.

Each takes the state of the torch module, by torch's names, and the inputs; sizes are read off the weights. Convolutional networks
have no form here: the bench says so in their rows.
"""

import jax
from jax import numpy as jnp


def linear(p, name, x):
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def layer_norm(p, name, x, eps):
    y = x.astype(jnp.float32)
    y = (y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + eps)
    return (y * p[f"{name}.weight"].astype(jnp.float32) + p[f"{name}.bias"].astype(jnp.float32)).astype(x.dtype)


def attend(q, k, v, causal=False):
    """[batch, places, heads, width]; cuDNN's kernel where it takes the type and the machine has it."""
    try:
        if q.dtype in (jnp.float16, jnp.bfloat16) and jax.default_backend() == "gpu":
            return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn")
    except (ValueError, NotImplementedError, RuntimeError):
        pass
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal)


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)


def count_layers(p):
    return 1 + max(int(name.split(".")[1]) for name in p if name.startswith("layers."))


def feed(p, at, x, approximate):
    return linear(p, f"{at}.down", jax.nn.gelu(linear(p, f"{at}.up", x), approximate=approximate))


def bert(p, heads, ids):
    x = p["word.weight"][ids] + p["place.weight"][jnp.arange(ids.shape[1])] + p["kind.weight"][jnp.zeros_like(ids)]
    x = layer_norm(p, "norm", x, 1e-12)
    for i in range(count_layers(p)):
        at = f"layers.{i}"
        q, k, v = (heads_of(linear(p, f"{at}.{f}", x), heads) for f in "qkv")
        x = layer_norm(p, f"{at}.norm1", x + linear(p, f"{at}.out", attend(q, k, v).reshape(x.shape)), 1e-12)
        x = layer_norm(p, f"{at}.norm2", x + feed(p, at, x, approximate=False), 1e-12)
    return x, jnp.tanh(linear(p, "pool", x[:, 0]))


def joined_layers(p, heads, x, eps, causal, approximate):
    """ViT's and GPT-2's: norms first, queries, keys and values in one product."""
    for i in range(count_layers(p)):
        at = f"layers.{i}"
        q, k, v = (heads_of(t, heads) for t in jnp.split(linear(p, f"{at}.qkv", layer_norm(p, f"{at}.norm1", x, eps)), 3, -1))
        x = x + linear(p, f"{at}.out", attend(q, k, v, causal).reshape(x.shape))
        x = x + feed(p, at, layer_norm(p, f"{at}.norm2", x, eps), approximate)
    return x


def vit(p, heads, image):
    w = p["patch.weight"]
    x = jax.lax.conv_general_dilated(image, w, w.shape[2:], "VALID") + p["patch.bias"][:, None, None]
    x = x.reshape(*x.shape[:2], -1).transpose(0, 2, 1)
    kind = jnp.broadcast_to(p["kind"], (x.shape[0], 1, x.shape[2]))
    x = joined_layers(p, heads, jnp.concatenate([kind, x], 1) + p["place"], 1e-6, False, False)
    return (linear(p, "head", layer_norm(p, "norm", x, 1e-6)[:, 0]),)


def gpt2(p, heads, ids):
    x = p["word.weight"][ids] + p["place.weight"][jnp.arange(ids.shape[1])]
    x = joined_layers(p, heads, x, 1e-5, True, True)
    return (layer_norm(p, "norm", x, 1e-5) @ p["word.weight"].T,)


def rms_norm(p, name, x):
    y = x.astype(jnp.float32)
    y = y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)
    return y.astype(x.dtype) * p[f"{name}.weight"]


def rotate(x):
    n, size = x.shape[1], x.shape[3]
    turn = 10000.0 ** (-jnp.arange(0, size, 2, dtype=jnp.float32) / size)
    angle = jnp.tile(jnp.outer(jnp.arange(n, dtype=jnp.float32), turn), 2)[:, None, :]
    half = jnp.concatenate([-x[..., size // 2:], x[..., :size // 2]], -1)
    return x * jnp.cos(angle).astype(x.dtype) + half * jnp.sin(angle).astype(x.dtype)


def llama_block(p, heads, x):
    shared = heads * p["k.weight"].shape[0] // p["q.weight"].shape[0]
    y = rms_norm(p, "norm1", x)
    q, k = rotate(heads_of(linear(p, "q", y), heads)), rotate(heads_of(linear(p, "k", y), shared))
    x = x + linear(p, "out", attend(q, k, heads_of(linear(p, "v", y), shared), True).reshape(x.shape))
    y = rms_norm(p, "norm2", x)
    return (x + linear(p, "down", jax.nn.silu(linear(p, "gate", y)) * linear(p, "up", y)),)


NETS = {"bert_base_s128": bert, "vit_b_16": vit, "gpt2_s512": gpt2, "llama_block": llama_block}


def make(name, net, inputs):
    """A call of the compiled network, weights and inputs on jax's device, its results there too."""
    if name not in NETS:
        raise ValueError(f"{name} has no form for jax")
    to_jax = lambda t: jnp.asarray(t.detach().cpu().numpy())  # noqa: E731
    p = {k: to_jax(v) for k, v in net.state_dict().items()}
    heads = next(m.heads for m in net.modules() if hasattr(m, "heads"))
    given = [to_jax(x) for x in inputs]
    run = jax.jit(lambda p, *x: NETS[name](p, heads, *x))
    return lambda: jax.block_until_ready(run(p, *given))
