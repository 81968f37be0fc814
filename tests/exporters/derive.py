"""What other tools make of an exported file: quantisers, optimisers, simplifiers, half precision; or of the net itself (genai)."""

import genai
import merge


def source(net, folder, tool=""):
    """The file that a tool starts from: with open shapes where an exporter left them open."""
    # The optimiser looks for what the TorchScript exporter writes of gpt2.
    first = "script" if net.name == "gpt2" and tool in ("transformer", "gpu") else net.tools_from
    other = {"script": "dynamo", "dynamo": "script"}[first]
    for v in (f"{e}-{s}" for s in ("dynamic", "static") for e in (first, other)):
        if (folder / f"{v}.onnx").exists():
            return folder / f"{v}.onnx"
    raise FileNotFoundError(f"no exporter took {net.name}")


class Calibration:
    """Feeds of every size, twice."""

    def __init__(self, net):
        self.left = [net.feeds(size, run) for size in net.sizes[:1] for run in (10, 11, 12)]

    def get_next(self):
        return self.left.pop() if self.left else None


def prepared(src, dst):
    """As the quantiser's guide says: shapes inferred, optimised, before anything else."""
    from onnxruntime.quantization.shape_inference import quant_pre_process
    out = dst.with_suffix(".prepared.onnx")
    quant_pre_process(str(src), str(out), skip_symbolic_shape=True)
    return out


def static(net, src, dst, activations="QUInt8", weights="QInt8", **options):
    from onnxruntime.quantization import QuantType, quantize_static
    ready = prepared(src, dst)
    try:
        quantize_static(str(ready), str(dst), Calibration(net), activation_type=getattr(QuantType, activations),
                        weight_type=getattr(QuantType, weights), **options)
    finally:
        ready.unlink()


def qdq(net, src, dst):
    from onnxruntime.quantization import QuantFormat
    static(net, src, dst, quant_format=QuantFormat.QDQ, per_channel=True)


def qdq_of(activations, weights, **extra):
    """As qdq, with numbers of other types."""
    def tool(net, src, dst):
        from onnxruntime.quantization import CalibrationMethod, QuantFormat
        how = CalibrationMethod.Distribution if "FLOAT8" in weights else CalibrationMethod.MinMax
        static(net, src, dst, activations, weights, quant_format=QuantFormat.QDQ, per_channel="FLOAT8" not in weights,
               calibrate_method=how, extra_options=extra)
    return tool


def qoperator(net, src, dst):
    from onnxruntime.quantization import QuantFormat
    static(net, src, dst, quant_format=QuantFormat.QOperator, per_channel=False)


def dynamic(net, src, dst):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(src), str(dst), weight_type=QuantType.QInt8)


def dynamic_unsigned(net, src, dst):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(src), str(dst), weight_type=QuantType.QUInt8, per_channel=True, reduce_range=True)


def blocks(fmt, **options):
    """Weights of products in blocks of 4-bit numbers, or of as many bits as said."""
    def tool(net, src, dst):
        import onnx
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        q = MatMulNBitsQuantizer(onnx.load(src), quant_format=getattr(QuantFormat, fmt),
                                 **{"block_size": 32, "is_symmetric": False, **options})
        q.process()
        q.model.save_model_to_file(str(dst), False)
    return tool


# What ONNX Runtime's optimiser calls the kinds of model it knows, where that is not the net's own name.
KINDS = {"roberta": "bert", "distilbert": "bert", "albert": "bert", "electra": "bert", "mpnet": "bert", "hf_vit": "vit", "deit": "vit",
         "hf_swin": "swin", "whisper": "bart", "marian": "bart", "wav2vec2": "bert", "llama": "qwen3", "mistral": "qwen3"}


def optimised(net, src):
    from onnxruntime.transformers import optimizer
    # use_gpu: the kernels of its GPU build may be chosen; nothing is run.
    return optimizer.optimize_model(str(src), model_type=KINDS.get(net.name, net.name), num_heads=4, hidden_size=64, opt_level=0,
                                    use_gpu=True)


def transformer(net, src, dst):
    optimised(net, src).save_model_to_file(str(dst), use_external_data_format=False)


def gpu(net, src, dst):
    """As its guide says for GPUs: fused, then in halves."""
    m = optimised(net, src)
    m.convert_float_to_float16(keep_io_types=True)
    m.save_model_to_file(str(dst), use_external_data_format=False)


def ort_half(net, src, dst):
    """The halving of ONNX Runtime's own tools, which know more ops than onnxconverter-common."""
    import onnx
    from onnxruntime.transformers import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(src), keep_io_types=True), str(dst))


def half(net, src, dst):
    import onnx
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(src), keep_io_types=True), str(dst))


def sim(net, src, dst):
    import onnx
    import onnxsim
    model, ok = onnxsim.simplify(onnx.load(src))
    if not ok:
        raise RuntimeError("onnxsim's own check failed")
    onnx.save(model, str(dst))


def slim(net, src, dst):
    import onnx
    import onnxslim
    onnx.save(onnxslim.slim(onnx.load(src)), str(dst))


TOOLS = {"qdq": qdq, "qoperator": qoperator, "dynamic": dynamic, "nbits": blocks("QOperator"), "nbits_qdq": blocks("QDQ"),
         "qdq_s8": qdq_of("QInt8", "QInt8", ActivationSymmetric=True, AddQDQPairToWeight=True),
         "qdq_16": qdq_of("QUInt16", "QInt8"), "qdq_w4": qdq_of("QUInt8", "QInt4"),
         "qdq_f8": qdq_of("QFLOAT8E4M3FN", "QFLOAT8E4M3FN"), "dynamic_u8": dynamic_unsigned,
         "nbits_sym": blocks("QOperator", is_symmetric=True, block_size=16, accuracy_level=4),
         "nbits_8": blocks("QOperator", bits=8),
         "genai_fp32": genai.tool("fp32", "cpu"), "genai_int4": genai.tool("int4", "cpu"), "genai_fp16": genai.tool("fp16", "cuda"),
         "genai_int4_fp16": genai.tool("int4", "cuda"), "merged": merge.tool,
         "transformer": transformer, "gpu": gpu, "fp16": half, "ort_fp16": ort_half, "sim": sim, "slim": slim}
# Of halves, and of numbers that fall into bins.
NOISY = {t for t in TOOLS if t.startswith(("qdq", "qoperator", "dynamic", "gpu"))} | {"fp16", "ort_fp16", "genai_fp16", "genai_int4_fp16"}
