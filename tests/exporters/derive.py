"""What other tools make of an exported file: quantisers, optimisers, simplifiers, half precision."""


def source(net, folder):
    """The file that tools start from: with open shapes where an exporter left them open."""
    other = {"script": "dynamo", "dynamo": "script"}[net.tools_from]
    for v in (f"{e}-{s}" for s in ("dynamic", "static") for e in (net.tools_from, other)):
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


def static(net, src, dst, **options):
    from onnxruntime.quantization import QuantType, quantize_static
    ready = prepared(src, dst)
    try:
        quantize_static(str(ready), str(dst), Calibration(net), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, **options)
    finally:
        ready.unlink()


def qdq(net, src, dst):
    from onnxruntime.quantization import QuantFormat
    static(net, src, dst, quant_format=QuantFormat.QDQ, per_channel=True)


def qoperator(net, src, dst):
    from onnxruntime.quantization import QuantFormat
    static(net, src, dst, quant_format=QuantFormat.QOperator, per_channel=False)


def dynamic(net, src, dst):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(src), str(dst), weight_type=QuantType.QInt8)


def blocks(fmt):
    """Weights of products in blocks of 4-bit numbers."""
    def tool(net, src, dst):
        import onnx
        from onnxruntime.quantization import QuantFormat
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        q = MatMulNBitsQuantizer(onnx.load(src), block_size=32, is_symmetric=False, quant_format=getattr(QuantFormat, fmt))
        q.process()
        q.model.save_model_to_file(str(dst), False)
    return tool


# What ONNX Runtime's optimiser calls the kinds of model it knows.
KINDS = {"bert": "bert", "roberta": "bert", "bart": "bart", "vit": "vit", "gpt2": "gpt2"}


def transformer(net, src, dst):
    from onnxruntime.transformers import optimizer
    m = optimizer.optimize_model(str(src), model_type=KINDS[net.name], num_heads=4, hidden_size=64, opt_level=0)
    m.save_model_to_file(str(dst), use_external_data_format=False)


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
         "transformer": transformer, "fp16": half, "sim": sim, "slim": slim}
