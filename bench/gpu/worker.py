"""One contestant of `make bench-gpu` in a process of its own, driven by JSON lines (docs/benchmarking.md, "Worker protocol").

    worker.py ours|eager|eager_graph|reduce_overhead|max_autotune|jax|torch

`load` takes model, batch, small, dtype and device; `ours` an engine and the shapes of its results as well. Inputs and outputs stay
where the network runs. One of torch's is asked for `export` (the network as ONNX) and `reference` (float64 outputs), too.
"""

import copy
import ctypes
import json
import os
import pathlib
import sys
import time
import warnings

import numpy as np
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import contest  # noqa: E402  beside this file in a kit, one folder up in the repository
import suite    # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def tuple_of(y):
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def part(y):
    """First and last of a batch: what is compared, for float64 takes its time and no network here mixes its samples."""
    return y if y.shape[0] <= 2 else y[[0, -1]]


def whole(y, n):
    """A batch of n with what part() left, first and last in turn, in an array."""
    return np.resize(y, (n, *y.shape[1:])) if len(y) == 2 else y


class Torch:
    def load(self, cmd):
        """The network; with "export", written there as ONNX before anything is compiled, and "reference", run in float64."""
        self.device, self.dtype = cmd["device"], getattr(torch, cmd["dtype"])
        self.model = suite.MODELS[cmd["model"]]
        torch.backends.cudnn.benchmark = True
        self.net = suite.build(cmd["model"], cmd["small"], self.dtype, self.device)
        self.inputs = suite.inputs(cmd["model"], cmd["batch"], cmd["small"], self.dtype, self.device)
        return {"version": torch.__version__, **self.make(cmd)}

    def make(self, cmd):
        """What everyone is compared with, where it is asked for."""
        if "export" not in cmd:
            return {}
        how, want, made = self.export(cmd["export"]), self.reference(), {}
        if cmd.get("batches"):
            folder, x, n = cmd["reference"] + "_batch", [part(x).cpu().numpy() for x in self.inputs], cmd["batch"]
            made = {"batch_inputs": save([whole(v, n) for v in x], folder, "x"),
                    "batch_files": save([whole(v, n).astype("f4" if v.dtype.kind == "f" else v.dtype) for v in want], folder)}
        return {"exported": how, "results": self.results(), "files": save(want, cmd["reference"]), **made}

    def best_storage(self):
        if self.model.image and self.device == "cuda":
            self.net = self.net.to(memory_format=torch.channels_last)
            self.inputs = [x.contiguous(memory_format=torch.channels_last) for x in self.inputs]

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def outputs(self):
        with torch.inference_mode():
            self.call()
            return [part(y).float().cpu().numpy() for y in tuple_of(self.result)]

    def export(self, path):
        """By tracing, which is quick; by torch.export where tracing fails."""
        names = dict(input_names=[f"x{i}" for i in range(len(self.inputs))], opset_version=17)
        with torch.no_grad():
            names["output_names"] = [f"y{i}" for i in range(len(tuple_of(self.net(*self.inputs))))]
            # Batch norms stay as they are: folded into weights of halves they would be other weights than the reference's.
            plain = {"training": torch.onnx.TrainingMode.PRESERVE}
            ways = [{**plain, "dynamo": False}, {"dynamo": True}] if torch.__version__ >= "2.5" else [plain]
            if ways == [plain]:
                names["opset_version"] = 14
            said = []
            for way in ways:
                try:
                    torch.onnx.export(self.net, tuple(self.inputs), path, **names, **way)
                    return "export" if way.get("dynamo") else "trace"
                except Exception as e:  # whatever an exporter dies of
                    said.append(f"{type(e).__name__}: {str(e)[:300]}")
        raise RuntimeError("; ".join(said))

    def results(self):
        """Shape and type of each output."""
        with torch.inference_mode():
            return [[list(y.shape), str(y.dtype).split(".")[1]] for y in tuple_of(self.net(*self.inputs))]

    def reference(self):
        """The same weights and inputs, computed in float64."""
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = False
        net = copy.deepcopy(self.net).double()
        with torch.inference_mode():
            y = net(*[x.double() if x.is_floating_point() else x for x in map(part, self.inputs)])
        torch.backends.cudnn.benchmark = True
        return [t.cpu().numpy() for t in tuple_of(y)]


class Eager(Torch):
    def load(self, cmd):
        loaded = super().load(cmd)
        self.best_storage()
        self.call()
        return loaded

    @torch.inference_mode()
    def call(self):
        self.result = self.net(*self.inputs)
        self.wait()


class EagerGraph(Eager):
    """The whole network as one CUDA graph."""

    def load(self, cmd):
        loaded = super().load(cmd)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode(), torch.cuda.stream(side):
            for _ in range(3):
                self.net(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(self.graph):
            self.result = self.net(*self.inputs)
        self.call = self.replay
        return loaded

    def replay(self):
        self.graph.replay()
        torch.cuda.synchronize()


class Compiled(Eager):
    mode = None

    def load(self, cmd):
        loaded = Torch.load(self, cmd)
        self.best_storage()
        self.net = torch.compile(self.net, mode=self.mode)
        for _ in range(4):  # compiles, warms up, records
            self.call()
        return loaded


class ReduceOverhead(Compiled):
    mode = "reduce-overhead"


class MaxAutotune(Compiled):
    mode = "max-autotune"


class Jax:
    """The same weights through jax.jit, where jax and a form of the network for it are here."""

    def load(self, cmd):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others are on this GPU
        os.environ.setdefault("JAX_PLATFORMS", "cuda" if cmd["device"] == "cuda" else "cpu")
        import jax
        import jax_nets
        dtype = getattr(torch, cmd["dtype"])
        net = suite.build(cmd["model"], cmd["small"], dtype, "cpu")
        inputs = suite.inputs(cmd["model"], cmd["batch"], cmd["small"], dtype, "cpu")
        self.run = jax_nets.make(cmd["model"], net, inputs)
        self.call()
        return {"version": jax.__version__}

    def call(self):
        self.result = self.run()

    def outputs(self):
        self.call()
        return [part(np.asarray(y)).astype(np.float32) for y in self.result]


class Ours:
    """An engine through the C interface, on torch's memory."""

    def load(self, cmd):
        self.device = cmd["device"]
        self.inputs = suite.inputs(cmd["model"], cmd["batch"], cmd["small"], getattr(torch, cmd["dtype"]), self.device)
        self.lib = ctypes.CDLL(cmd["library"])
        self.lib.hone_error_message.restype = self.lib.hone_version.restype = ctypes.c_char_p
        self.lib.hone_error_message.argtypes = [ctypes.c_void_p]
        self.engine, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        t0 = time.perf_counter_ns()
        self.ask("hone_engine_open", cmd["engine"].encode(), None, ctypes.byref(self.engine))
        self.ask("hone_context_create", self.engine, None, ctypes.byref(self.context))
        for i, x in enumerate(self.inputs):
            self.bind(f"x{i}", x)
        self.result = [torch.zeros(shape, dtype=getattr(torch, t), device=self.device) for shape, t in cmd["results"]]
        for i, y in enumerate(self.result):
            self.bind(f"y{i}", y)
        if self.device == "cuda":
            torch.cuda.synchronize()
        self.call()
        return {"version": self.lib.hone_version().decode(), "first_ns": time.perf_counter_ns() - t0}

    def ask(self, name, *args):
        err = ctypes.c_void_p()
        if getattr(self.lib, name)(*args, ctypes.byref(err)) != 0:
            raise RuntimeError((self.lib.hone_error_message(err) or b"").decode())

    def bind(self, name, x):
        io = self.lib.hone_engine_find_io(self.engine, name.encode())
        if io < 0:
            raise RuntimeError(f'the engine has no "{name}"')
        if name[0] == "x":
            self.ask("hone_context_set_shape", self.context, io, x.dim(), (ctypes.c_int64 * 10)(*x.shape))
        self.ask("hone_context_bind", self.context, io, ctypes.c_void_p(x.data_ptr()), ctypes.c_size_t(x.numel() * x.element_size()))

    def call(self):
        self.ask("hone_context_run", self.context)

    def outputs(self):
        for y in self.result:
            y.fill_(float("nan"))
        if self.device == "cuda":
            torch.cuda.synchronize()
        self.call()
        return [part(y).float().cpu().numpy() for y in self.result]

    def profile(self):
        """Times of each step, waiting after every one: where the time goes, not how much there is."""
        text = ctypes.c_void_p()
        self.ask("hone_context_set_profiling", self.context, ctypes.c_bool(True))
        for _ in range(5):
            self.call()
        self.ask("hone_context_profile_json", self.context, ctypes.byref(text))
        steps = json.loads(ctypes.cast(text, ctypes.c_char_p).value.decode())
        self.ask("hone_context_set_profiling", self.context, ctypes.c_bool(False))
        return steps


KINDS = {"ours": Ours, "torch": Torch, "eager": Eager, "eager_graph": EagerGraph, "reduce_overhead": ReduceOverhead,
         "max_autotune": MaxAutotune, "jax": Jax}


def save(arrays, folder, prefix="y"):
    os.makedirs(folder, exist_ok=True)
    files = {}
    for i, a in enumerate(arrays):
        files[f"{prefix}{i}"] = os.path.join(folder, f"{prefix}{i}.npy")
        np.save(files[f"{prefix}{i}"], a)
    return files


def answer(it, cmd):
    what = cmd["cmd"]
    if what == "load":
        t0 = time.perf_counter_ns()
        return {**it.load(cmd), "load_ns": time.perf_counter_ns() - t0}
    if what == "block":
        return {"times_ns": contest.call_times(it.call, float(cmd["seconds"]))}
    if what == "outputs":
        return {"files": save(it.outputs(), cmd["dir"])}
    if what == "profile":
        return {"steps": it.profile()}
    raise ValueError(f'unknown command "{what}"')


def main():
    # Answers go to the real stdout; whatever the libraries print goes to stderr.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    it = KINDS[sys.argv[1]]()
    for line in sys.stdin:
        cmd = json.loads(line)
        if cmd["cmd"] == "quit":
            break
        try:
            reply = {"ok": True, **answer(it, cmd)}
        except Exception as e:  # the race goes on without this one
            reply = {"ok": False, "error": f"{type(e).__name__}: {str(e)[:600]}"}
        print(json.dumps(reply), file=out, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
