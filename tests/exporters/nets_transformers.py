"""transformers: encoders, decoders with and without cache, encoder-decoders, speech, vision, state spaces."""

import nets
from nets import OPSETS, Library

lib = Library("transformers")

TOKENS = "i64[batch,seq] int(3, 99)"
ENCODER = {"input_ids": TOKENS, "attention_mask": "i64[batch,seq] const(1)"}
SEQUENCES = ({"batch": 1, "seq": 8}, {"batch": 2, "seq": 13})
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100}
DECODES = ({"batch": 1, "seq": 1, "past": 6}, {"batch": 2, "seq": 3, "past": 9})


def wrap(model, forward):
    """A module whose forward is the function given, over the model as `m`."""
    import inspect

    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = model

    # Exporters take the names of inputs from the signature.
    params = list(inspect.signature(forward).parameters)[1:]
    scope = {"f": forward}
    exec(f"def forward(self, {', '.join(params)}):\n    return f(self.m, {', '.join(params)})", scope)
    Wrapped.forward = scope["forward"]
    return Wrapped()


def model_of(model, config, options):
    """A model with the fused attention function where the architecture has it, and experts as products of batches."""
    import transformers
    make = getattr(transformers, model)._from_config
    settings = getattr(transformers, config)(**options)
    if hasattr(settings, "num_local_experts"):
        settings._experts_implementation = "batched_mm" # the loop over those that were hit depends on data
    if nets.plain_attention:
        return make(settings, attn_implementation="eager")
    try:
        return make(settings, attn_implementation="sdpa")
    except ValueError:
        return make(settings, attn_implementation="eager")


def encoder(name, model, config, derive=(), **options):
    def make():
        m = model_of(model, config, {**SMALL, **options})
        return wrap(m, lambda m, input_ids, attention_mask: m(input_ids, attention_mask=attention_mask, return_dict=False)[0])
    lib.add(name, make, ENCODER, SEQUENCES, derive=derive)


encoder("bert", "BertForSequenceClassification", "BertConfig", derive=("dynamic", "dynamic_u8", "qdq", "qdq_s8", "qdq_16", "qdq_w4", "transformer", "gpu", "slim", "sim", "fp16", *OPSETS, "loose"))
encoder("roberta", "RobertaForTokenClassification", "RobertaConfig", derive=("transformer", "gpu"))
encoder("distilbert", "DistilBertForMaskedLM", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=100,
        derive=("dynamic", "transformer", "gpu"))
encoder("albert", "AlbertForQuestionAnswering", "AlbertConfig", embedding_size=32, derive=("gpu",))
encoder("electra", "ElectraForPreTraining", "ElectraConfig", embedding_size=32, derive=("gpu", "ort_fp16"))
encoder("mpnet", "MPNetModel", "MPNetConfig")
encoder("deberta_v2", "DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"],
        position_buckets=8, max_relative_positions=16, share_att_key=True, norm_rel_ebd="layer_norm")
encoder("modernbert", "ModernBertModel", "ModernBertConfig", global_attn_every_n_layers=2, local_attention=4, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)


# ---- decoders ----
def decoder(name, model, config, kv_heads=4, head=16, derive=(), **options):
    """Two layers; the cache goes in and comes out as four tensors."""
    def make():
        return wrap(model_of(model, config, {**SMALL, **options}), decode)
    cache = f"f32[batch,{kv_heads},past,{head}] normal(0, 1)"
    inputs = {"input_ids": TOKENS, "attention_mask": "i64[batch,past+seq] const(1)",
              **{f"past_{what}_{k}": cache for k in range(2) for what in ("key", "value")}}
    # The TorchScript exporter writes some traced extents as numbers.
    lib.add(name, make, inputs, DECODES, derive=derive, tools_from="dynamo")


def decode(m, input_ids, attention_mask, past_key_0, past_value_0, past_key_1, past_value_1):
    from transformers.cache_utils import DynamicCache
    cache = DynamicCache()
    cache.update(past_key_0, past_value_0, 0)
    cache.update(past_key_1, past_value_1, 1)
    import torch
    at = torch.arange(input_ids.shape[1], device=input_ids.device) + past_key_0.shape[2]
    out = m(input_ids=input_ids, attention_mask=attention_mask, position_ids=at.unsqueeze(0), past_key_values=cache, use_cache=True)
    kept = out.past_key_values
    return (out.logits, kept.layers[0].keys, kept.layers[0].values, kept.layers[1].keys, kept.layers[1].values)


decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=64, n_layer=2, n_head=4, n_positions=64,
        derive=("merged", "merged_steps", "dynamic", "ort_fp16", "transformer", "gpu", *OPSETS, "steps"))
decoder("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", derive=("steps",))
decoder("opt", "OPTForCausalLM", "OPTConfig", ffn_dim=128, word_embed_proj_dim=64, max_position_embeddings=64,
        derive=("steps",))
decoder("llama", "LlamaForCausalLM", "LlamaConfig", kv_heads=2, num_key_value_heads=2, 
        derive=("nbits", "nbits_sym", "nbits_8", "nbits_qdq", "dynamic", "dynamic_u8", "ort_fp16", *OPSETS, "steps",
                "merged", "merged_steps", "genai_fp32", "genai_int4", "genai_fp16", "genai_int4_fp16", "genai_steps"))
decoder("mistral", "MistralForCausalLM", "MistralConfig", kv_heads=2, num_key_value_heads=2, sliding_window=None,
        derive=("steps", "genai_fp32", "genai_steps"))
decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", kv_heads=2, num_key_value_heads=2, derive=("steps", "genai_fp32", "genai_steps"))
decoder("qwen3", "Qwen3ForCausalLM", "Qwen3Config", kv_heads=2, num_key_value_heads=2, head_dim=16,
        derive=("transformer", "gpu", "steps", "genai_fp32", "genai_steps"))
decoder("gemma", "GemmaForCausalLM", "GemmaConfig", kv_heads=1, num_key_value_heads=1, head_dim=16,
        derive=("steps", "genai_fp32", "genai_steps"))
decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", kv_heads=2, num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=64, layer_types=["full_attention", "full_attention"], derive=("steps", "genai_fp32", "genai_steps"))
decoder("phi", "PhiForCausalLM", "PhiConfig", derive=("steps", "genai_fp32", "genai_steps"))
decoder("mixtral", "MixtralForCausalLM", "MixtralConfig", kv_heads=2, num_key_value_heads=2, num_local_experts=4,
        derive=("steps",))


BUILT = ("genai_fp32", "genai_int4", "genai_steps")

decoder("phi3", "Phi3ForCausalLM", "Phi3Config", pad_token_id=0, max_position_embeddings=64, original_max_position_embeddings=64,
        derive=BUILT)
decoder("granite", "GraniteForCausalLM", "GraniteConfig", kv_heads=2, num_key_value_heads=2, embedding_multiplier=3.0,
        residual_multiplier=0.5, attention_multiplier=0.2, logits_scaling=2.0, derive=BUILT)
decoder("olmo", "OlmoForCausalLM", "OlmoConfig", kv_heads=2, num_key_value_heads=2, clip_qkv=4.0, pad_token_id=0, derive=BUILT)
decoder("nemotron", "NemotronForCausalLM", "NemotronConfig", kv_heads=2, num_key_value_heads=2, head_dim=16, derive=BUILT)
decoder("smollm3", "SmolLM3ForCausalLM", "SmolLM3Config", kv_heads=2, num_key_value_heads=2, pad_token_id=0, no_rope_layers=[1, 0],
        use_sliding_window=False, derive=BUILT)
decoder("gemma3", "Gemma3ForCausalLM", "Gemma3TextConfig", kv_heads=1, num_key_value_heads=1, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=64, layer_types=["full_attention", "full_attention"], derive=BUILT)
decoder("gpt_oss", "GptOssForCausalLM", "GptOssConfig", kv_heads=2, num_key_value_heads=2, head_dim=16, num_local_experts=4,
        num_experts_per_tok=2, layer_types=["full_attention", "full_attention"], derive=BUILT)


# ---- encoder and decoder ----
PAIR = {"input_ids": TOKENS, "decoder_input_ids": "i64[batch,out] int(3, 99)"}
PAIRS = ({"batch": 1, "seq": 8, "out": 4}, {"batch": 2, "seq": 13, "out": 6})


def pair(name, model, config, derive=(), **options):
    def make():
        m = model_of(model, config, options)
        return wrap(m, lambda m, input_ids, decoder_input_ids: m(input_ids=input_ids, decoder_input_ids=decoder_input_ids,
                                                                 use_cache=False, return_dict=False)[0])
    lib.add(name, make, PAIR, PAIRS, derive=derive)


TWO_SIDED = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
             "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 100, "max_position_embeddings": 64}

pair("t5", "T5ForConditionalGeneration", "T5Config", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100,
     derive=("dynamic", "slim", "transformer", *OPSETS))
pair("bart", "BartForConditionalGeneration", "BartConfig", **TWO_SIDED, derive=("transformer", "gpu"))
pair("marian", "MarianMTModel", "MarianConfig", pad_token_id=0, decoder_start_token_id=0, **TWO_SIDED)
pair("pegasus", "PegasusForConditionalGeneration", "PegasusConfig", **TWO_SIDED)


# ---- speech ----
@lib.net("whisper", {"features": "f32[batch,16,40] normal(0, 1)", "decoder_input_ids": "i64[batch,out] int(3, 99)"},
         ({"batch": 1, "out": 4}, {"batch": 2, "out": 7}), derive=("dynamic", "transformer"))
def whisper():
    m = model_of("WhisperForConditionalGeneration", "WhisperConfig",
                 {**{k: v for k, v in TWO_SIDED.items() if k != "max_position_embeddings"}, "num_mel_bins": 16,
                  "max_source_positions": 20, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1,
                  "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None})
    return wrap(m, lambda m, features, decoder_input_ids: m(features, decoder_input_ids=decoder_input_ids, use_cache=False,
                                                            return_dict=False)[0])


SPEECH = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 32,
          "conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 2), "num_feat_extract_layers": 3,
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}


def speech(name, model, config, **options):
    def make():
        m = model_of(model, config, {**SPEECH, **options})
        return wrap(m, lambda m, audio: m(audio, return_dict=False)[0])
    lib.add(name, make, {"audio": "f32[batch,samples] audio"}, ({"batch": 1, "samples": 1600}, {"batch": 2, "samples": 2400}))


speech("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config")
speech("hubert", "HubertForCTC", "HubertConfig", feat_extract_norm="layer", do_stable_layer_norm=True)


# ---- vision ----
PIXELS = {"pixels": "f32[batch,3,64,64] image"}
BATCHES = ({"batch": 1}, {"batch": 3})
VISION = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 64,
          "patch_size": 16, "num_labels": 10}


def vision(name, model, config, outputs=1, derive=(), **options):
    def make():
        m = model_of(model, config, options)
        return wrap(m, lambda m, pixels: m(pixels, return_dict=False)[:outputs])
    lib.add(name, make, PIXELS, BATCHES, derive=derive)


vision("hf_vit", "ViTForImageClassification", "ViTConfig", derive=("qdq", "dynamic", "transformer", "gpu"), **VISION)
vision("deit", "DeiTForImageClassification", "DeiTConfig", **VISION)
vision("beit", "BeitForImageClassification", "BeitConfig", use_relative_position_bias=True, **VISION)
vision("dinov2", "Dinov2Model", "Dinov2Config", **VISION)
vision("hf_swin", "SwinForImageClassification", "SwinConfig", image_size=64, patch_size=4, embed_dim=24, depths=[2, 2],
       num_heads=[2, 4], window_size=4, num_labels=10, derive=("transformer", *OPSETS))
vision("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", num_encoder_blocks=4, depths=[1, 1, 1, 1],
       hidden_sizes=[16, 32, 32, 64], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32, num_labels=5)
vision("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", image_size=64, hidden_sizes=[32, 48, 64],
       neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 96], num_labels=10)
vision("dpt", "DPTForDepthEstimation", "DPTConfig", hidden_size=64, num_hidden_layers=4, num_attention_heads=4,
       intermediate_size=128, image_size=64, patch_size=16, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 24, 32, 48],
       fusion_hidden_size=32)
vision("yolos", "YolosForObjectDetection", "YolosConfig", outputs=2, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
       intermediate_size=128, image_size=[64, 64], patch_size=16, num_detection_tokens=8, num_labels=5)


@lib.net("detr", PIXELS, BATCHES)
def detr():
    import transformers
    backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1],
                                         layer_type="basic", out_features=["stage4"])
    m = model_of("DetrForObjectDetection", "DetrConfig",
                 {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None, "backbone_config": backbone,
                  "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                  "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_queries": 8, "num_labels": 5})

    def forward(m, pixels):
        out = m(pixels)
        return out.logits, out.pred_boxes
    return wrap(m, forward)


@lib.net("clip", {**ENCODER, "pixels": "f32[images,3,64,64] image"},
         ({"batch": 1, "seq": 8, "images": 1}, {"batch": 3, "seq": 5, "images": 2}))
def clip():
    text = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
            "max_position_embeddings": 32, "bos_token_id": 0, "eos_token_id": 2}
    look = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "image_size": 64,
            "patch_size": 16}
    m = model_of("CLIPModel", "CLIPConfig", {"text_config": text, "vision_config": look, "projection_dim": 32})

    def forward(m, input_ids, attention_mask, pixels):
        out = m(input_ids=input_ids, attention_mask=attention_mask, pixel_values=pixels)
        return out.logits_per_image, out.text_embeds, out.image_embeds
    return wrap(m, forward)


# The scan over tokens is written out, so their number is fixed.
@lib.net("mamba", {"input_ids": "i64[batch,8] int(3, 99)"}, ({"batch": 1}, {"batch": 3}))
def mamba():
    m = model_of("MambaForCausalLM", "MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "vocab_size": 100,
                                                     "use_mambapy": False})
    return wrap(m, lambda m, input_ids: m(input_ids, use_cache=False, return_dict=False)[0])
