"""One peer with one model, in a process of its own, driven by JSON lines (docs/benchmarking.md, "Worker protocol").

    python peer_worker.py ort|openvino
"""

import json
import os
import sys
import time

import numpy as np

import contest


class Ort:
    """ONNX Runtime: all optimisations, sequential execution, inputs bound once.

    plain: without them, as the model's types say; with them it keeps float32 between operations on halves.
    """

    def __init__(self, plain=False):
        self.plain = plain

    def load(self, model, threads, shapes):
        import onnxruntime as ort
        so = ort.SessionOptions()
        so.intra_op_num_threads = threads
        so.inter_op_num_threads = 1
        so.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        level = ort.GraphOptimizationLevel
        so.graph_optimization_level = level.ORT_DISABLE_ALL if self.plain else level.ORT_ENABLE_ALL
        so.log_severity_level = 4
        self.ort = ort
        self.session = ort.InferenceSession(model, so, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]
        return ort.__version__

    def set_inputs(self, arrays):
        self.binding = self.session.io_binding()
        self.values = {n: self.ort.OrtValue.ortvalue_from_numpy(a) for n, a in arrays.items()}
        for n, v in self.values.items():
            self.binding.bind_ortvalue_input(n, v)
        for n in self.names:
            self.binding.bind_output(n, "cpu")
        session, binding = self.session, self.binding
        self.call = lambda: session.run_with_iobinding(binding)

    def outputs(self):
        self.call()
        return dict(zip(self.names, self.binding.copy_outputs_to_cpu()))


class OpenVino:
    """OpenVINO: latency hint, float32 arithmetic, one stream.

    exact: without it OpenVINO may quantise activations unasked; with it, it may not.
    """

    def __init__(self, exact=False):
        self.exact = exact

    def load(self, model, threads, shapes):
        import openvino as ov
        core = ov.Core()
        net = core.read_model(model)
        if shapes:
            net.reshape({self.input_key(net, n): ov.PartialShape(list(s)) for n, s in shapes.items()})
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
                  "INFERENCE_PRECISION_HINT": "f32"}
        if self.exact:
            config["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = "0"
        self.ov = ov
        self.compiled = core.compile_model(net, "CPU", config)
        self.request = self.compiled.create_infer_request()
        self.names = [self.name_of(o, i) for i, o in enumerate(self.compiled.outputs)]
        return ov.__version__

    @staticmethod
    def input_key(net, name):
        return next(p for p in net.inputs if name in p.get_names())

    @staticmethod
    def name_of(port, i):
        names = sorted(port.get_names())
        return names[0] if names else f"output_{i}"

    def set_inputs(self, arrays):
        self.held = {n: self.ov.Tensor(a, shared_memory=True) for n, a in arrays.items()}
        for port in self.compiled.inputs:
            name = next(n for n in arrays if n in port.get_names())
            self.request.set_tensor(port, self.held[name])
        # The binding under Python's wrapper: no dictionary of copies at each call, and no thread switch.
        infer = super(type(self.request), self.request).infer
        try:
            infer({}, True, False)
            self.call = lambda: infer({}, True, False)
        except TypeError:
            self.call = lambda: self.request.infer(share_outputs=True)

    def outputs(self):
        self.call()
        # A port may carry several names; answer under each, the reader knows which one the model used.
        out = {}
        for i, port in enumerate(self.compiled.outputs):
            data = np.array(self.request.get_output_tensor(i).data)
            for n in port.get_names() or [f"output_{i}"]:
                out[n] = data
        return out


PEERS = {"ort": Ort, "ort_plain": lambda: Ort(plain=True), "openvino": OpenVino, "openvino_exact": lambda: OpenVino(exact=True)}


def save_outputs(outputs, folder):
    os.makedirs(folder, exist_ok=True)
    files = {}
    for i, (name, a) in enumerate(outputs.items()):
        files[name] = os.path.join(folder, f"output_{i}.npy")
        np.save(files[name], a)
    return files


def answer(peer, cmd):
    what = cmd["cmd"]
    if what == "load":
        t0 = time.perf_counter_ns()
        version = peer.load(cmd["model"], int(cmd.get("threads", 1)), cmd.get("shapes") or {})
        return {"load_ns": time.perf_counter_ns() - t0, "version": version}
    if what == "inputs":
        peer.set_inputs({n: np.load(p) for n, p in cmd["files"].items()})
        t0 = time.perf_counter_ns()
        peer.call()
        return {"first_call_ns": time.perf_counter_ns() - t0}
    if what == "block":
        return {"times_ns": contest.call_times(peer.call, float(cmd["seconds"]))}
    if what == "outputs":
        return {"files": save_outputs(peer.outputs(), cmd["dir"])}
    raise ValueError(f'unknown command "{what}"')


def main():
    # Answers go to the real stdout; whatever the peer's libraries print goes to stderr.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer = PEERS[sys.argv[1]]()
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            cmd = json.loads(line)
            if cmd.get("cmd") == "quit":
                break
            reply = {"ok": True, **answer(peer, cmd)}
        except Exception as e:                       # a peer may raise anything: it goes to the driver as text
            reply = {"ok": False, "error": " ".join(f"{type(e).__name__}: {e}".split())[:400]}
        out.write(json.dumps(reply) + "\n")
    out.flush()
    os._exit(0)                                      # peers' destructors may hang; nothing is left to save


if __name__ == "__main__":
    main()
