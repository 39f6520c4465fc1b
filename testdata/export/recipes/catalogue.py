"""The architectures that sweep.py exports: each in a tiny configuration with random weights, as a function of tensors.

A row is a Model: MAKE(batch, length) gives the module and its inputs, and DIMS names the symbolic dims of each input, by axis.
Only the configuration is smaller than the published models'; the code that is exported is the libraries' own.
"""
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

import patterns

BATCH, LENGTH = {0: 'batch'}, {0: 'batch', 1: 'length'}
VOCABULARY = 128


@dataclass
class Model:
    name: str
    library: str
    make: Callable  # of batch and length
    dims: tuple


def tensors(x):
    "The tensors of what a model returns, in order; caches are left out."
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


class Tensors(nn.Module):
    "A model of transformers that takes tensors by position and returns a tuple of tensors."

    def __init__(self, model, *names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *args):
        return tuple(tensors(self.model(**dict(zip(self.names, args)), **self.options)))


TEXT = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, vocab_size=VOCABULARY,
            max_position_embeddings=64, initializer_range=0.1, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GROUPED = dict(num_key_value_heads=2, head_dim=8)
EXPERTS = dict(num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)


def ids(batch, length):
    return torch.randint(3, VOCABULARY, (batch, length))


UNSET = {'xlnet': ['max_position_embeddings'], 'swin': ['hidden_size', 'num_hidden_layers', 'num_attention_heads'],
         'swinv2': ['hidden_size', 'num_hidden_layers', 'num_attention_heads']}


def configured(kind, **options):
    "A configuration; options that its class refuses to take are left out."
    from transformers import AutoConfig
    options = {k: v for k, v in options.items() if k not in UNSET.get(kind, ())}
    return AutoConfig.for_model(kind, **options)


def decoder(name, kind=None, **more):
    def make(batch, length):
        from transformers import AutoModelForCausalLM
        config = configured(kind or name, **TEXT | more)
        return Tensors(AutoModelForCausalLM.from_config(config), 'input_ids', use_cache=False), (ids(batch, length),)
    return Model(name, 'transformers', make, (LENGTH,))


def encoder(name, kind=None, mask=True, **more):
    def make(batch, length):
        from transformers import AutoModel
        model = AutoModel.from_config(configured(kind or name, **TEXT | more))
        if not mask:
            return Tensors(model, 'input_ids'), (ids(batch, length),)
        attended = torch.ones(batch, length, dtype=torch.long)
        attended[-1, length - 2:] = 0
        return Tensors(model, 'input_ids', 'attention_mask'), (ids(batch, length), attended)
    return Model(name, 'transformers', make, (LENGTH, LENGTH) if mask else (LENGTH,))


SEQ2SEQ = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, num_layers=2,
               num_decoder_layers=2, num_heads=4, d_kv=8, d_ff=64, encoder_ffn_dim=64, decoder_ffn_dim=64, vocab_size=VOCABULARY,
               max_position_embeddings=64, init_std=0.1, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


def translator(name, kind=None, **more):
    def make(batch, length):
        from transformers import AutoModelForSeq2SeqLM
        model = AutoModelForSeq2SeqLM.from_config(configured(kind or name, **SEQ2SEQ | more))
        return Tensors(model, 'input_ids', 'decoder_input_ids', use_cache=False), (ids(batch, length), ids(batch, length - 3))
    return Model(name, 'transformers', make, (LENGTH, {0: 'batch', 1: 'target'}))


PATCHES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
               initializer_range=0.1)


def pictures(name, size=32, kind=None, auto='AutoModel', options=None, **more):
    def make(batch, length):
        import transformers
        model = getattr(transformers, auto).from_config(configured(kind or name, **PATCHES | {'image_size': size} | more))
        return Tensors(calibrated(model, lambda: torch.randn(4, 3, size, size), 'pixel_values'), 'pixel_values', **options or {}), (
            torch.randn(batch, 3, size, size),)
    return Model(name, 'transformers', make, (BATCH,))


def sounds(name, shape, argument='input_values', kind=None, **more):
    def make(batch, length):
        from transformers import AutoModel
        model = AutoModel.from_config(configured(kind or name, **TEXT | more))
        return Tensors(model, argument), (torch.randn(batch, *shape),)
    return Model(name, 'transformers', make, (BATCH,))


def calibrated(model, batch, argument=None):
    "Sets batch norms' statistics by a few batches: fresh ones would let the signal fade, and hide every error."
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return model
    for m in norms:
        m.momentum = None
        m.train()
    model.eval()
    for m in norms:
        m.train()
    with torch.no_grad():
        for _ in range(2):
            model(**{argument: batch()}) if argument else model(batch())
    return model.eval()


def torchvision_model(name, size=64, **options):
    def make(batch, length):
        import torchvision
        model = torchvision.models.get_model(name, weights=None, num_classes=10, **options)
        return calibrated(model, lambda: torch.randn(4, 3, size, size)), (torch.randn(batch, 3, size, size),)
    return Model(name, 'torchvision', make, (BATCH,))


def vgg(name):
    "With one small layer for the classifier, whose three are 120 million parameters."
    def make(batch, length):
        import torchvision
        model = torchvision.models.get_model(name, weights=None)
        model.avgpool, model.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(512, 10)
        return calibrated(model, lambda: torch.randn(4, 3, 32, 32)), (torch.randn(batch, 3, 32, 32),)
    return Model(name, 'torchvision', make, (BATCH,))


class Segmentation(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)['out']


def segmentation(name, size=64):
    def make(batch, length):
        import torchvision
        model = Segmentation(torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=4))
        return calibrated(model, lambda: torch.randn(4, 3, size, size)), (torch.randn(batch, 3, size, size),)
    return Model(name, 'torchvision', make, (BATCH,))


def maxvit():
    def make(batch, length):
        from torchvision.models import MaxVit
        model = MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10)
        return calibrated(model, lambda: torch.randn(4, 3, 64, 64)), (torch.randn(batch, 3, 64, 64),)
    return Model('maxvit', 'torchvision', make, (BATCH,))


def timm_model(name, size=64, **options):
    def make(batch, length):
        import timm
        model = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return calibrated(model, lambda: torch.randn(4, 3, size, size)), (torch.randn(batch, 3, size, size),)
    return Model(name, 'timm', make, (BATCH,))


def clip(name='clip', kind=None):
    def make(batch, length):
        import transformers
        text = dict(TEXT, max_position_embeddings=32)
        config = transformers.AutoConfig.for_model(kind or name, text_config=text, vision_config=dict(PATCHES), projection_dim=16)
        model = transformers.AutoModel.from_config(config)
        tokens = ids(batch, 12)
        tokens[:, -1] = 2
        return Tensors(model, 'input_ids', 'pixel_values'), (tokens, torch.randn(batch, 3, 32, 32))
    return Model(name, 'transformers', make, (BATCH, BATCH))


WHISPER = dict(SEQ2SEQ, num_mel_bins=16, max_source_positions=32, max_target_positions=32, num_hidden_layers=2)


class WhisperEncoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, features):
        return self.encoder(features).last_hidden_state


class WhisperDecoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, tokens, encoded):
        y = self.decoder(input_ids=tokens, encoder_hidden_states=encoded, use_cache=False)
        return self.head(y.last_hidden_state)


def whisper(part):
    def make(batch, length):
        import transformers
        model = transformers.WhisperForConditionalGeneration(configured('whisper', **WHISPER))
        if part == 'encoder':
            return WhisperEncoder(model.model.encoder), (torch.randn(batch, 16, 64),)
        return WhisperDecoder(model), (ids(batch, length), torch.randn(batch, 32, 32))
    return Model('whisper ' + part, 'transformers', make, (BATCH,) if part == 'encoder' else (LENGTH, BATCH))


SPEECH = dict(conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2, num_conv_pos_embeddings=16,
              num_conv_pos_embedding_groups=4, mask_time_prob=0.0, apply_spec_augment=False)
STAGES = dict(embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4, patch_size=4)
CONVNEXT = dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, patch_size=4)


def univnet():
    "A vocoder, whose noise is an input."
    def make(batch, length):
        from transformers import UnivNetModel
        config = configured('univnet', num_mel_bins=20, model_hidden_channels=8, model_in_channels=8, kernel_predictor_hidden_channels=8)
        return Tensors(UnivNetModel(config), 'input_features', 'noise_sequence'), (torch.randn(batch, 16, 20), torch.randn(batch, 16, 8))
    return Model('univnet', 'transformers', make, (BATCH, BATCH))


def pattern(kind):
    make, dims = patterns.EXAMPLES[kind]

    def built(batch, length):
        inputs = make(batch, length)
        return calibrated(kind(), lambda: make(4, length)[0]) if len(inputs) == 1 else kind(), inputs
    return Model(kind.__name__, 'PyTorch', built, dims)


MODELS = [
    decoder('llama', **GROUPED),
    decoder('gpt2'),
    decoder('qwen2', **GROUPED),
    decoder('qwen3', **GROUPED),
    decoder('mistral', sliding_window=4, **GROUPED),
    decoder('gemma', **GROUPED),
    decoder('gemma2', **GROUPED),
    decoder('gemma3', kind='gemma3_text', **GROUPED),
    decoder('phi'),
    decoder('phi3', **GROUPED),
    decoder('falcon'),
    decoder('opt', ffn_dim=64, word_embed_proj_dim=32),
    decoder('bloom'),
    decoder('gpt_neo', attention_types=[[['global', 'local'], 1]]),
    decoder('gpt_neox'),
    decoder('gptj', rotary_dim=4),
    decoder('codegen', rotary_dim=4),
    decoder('mpt', d_model=32, n_heads=4, n_layers=2),
    decoder('gpt_bigcode'),
    decoder('stablelm', **GROUPED),
    decoder('starcoder2', **GROUPED),
    decoder('olmo', **GROUPED),
    decoder('olmo2', **GROUPED),
    decoder('cohere', **GROUPED),
    decoder('granite', **GROUPED),
    decoder('glm', **GROUPED),
    decoder('smollm3', **GROUPED),
    decoder('nemotron', **GROUPED),
    decoder('helium', **GROUPED),
    decoder('ernie4_5', **GROUPED),
    decoder('persimmon'),
    decoder('biogpt'),
    decoder('xglm', d_model=32, num_layers=2, attention_heads=4, ffn_dim=64),
    decoder('mixtral', **GROUPED | EXPERTS),
    decoder('qwen2_moe', **GROUPED | EXPERTS, shared_expert_intermediate_size=32),
    decoder('qwen3_moe', **GROUPED | EXPERTS),
    decoder('olmoe', **GROUPED | EXPERTS),
    decoder('gpt_oss', **GROUPED | EXPERTS, sliding_window=4),
    decoder('deepseek_v3', **EXPERTS, n_routed_experts=4, n_group=2, topk_group=1, kv_lora_rank=8, q_lora_rank=8,
            qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, first_k_dense_replace=1, num_key_value_heads=4),
    decoder('mamba', state_size=8, time_step_rank=4),
    decoder('mamba2', state_size=8, num_heads=8, head_dim=8, n_groups=2, chunk_size=4),
    decoder('falcon_mamba', state_size=8, time_step_rank=4),
    decoder('rwkv', attention_hidden_size=32, context_length=32),
    decoder('recurrent_gemma', **GROUPED, lru_width=32, attention_window_size=8, block_types=['recurrent', 'attention']),
    decoder('lfm2', **GROUPED, layer_types=['conv', 'full_attention']),
    decoder('jamba', num_key_value_heads=2, mamba_d_state=8, mamba_dt_rank=4, attn_layer_period=2, attn_layer_offset=1,
            num_experts=2, use_mamba_kernels=False),
    decoder('qwen3_next', **GROUPED | EXPERTS, shared_expert_intermediate_size=32, linear_num_value_heads=4,
            linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8, layer_types=['linear_attention',
            'full_attention']),
    decoder('ctrl', n_embd=32, n_layer=2, n_head=4, dff=64, n_positions=64),
    decoder('openai-gpt'),
    decoder('modernbert-decoder', **GROUPED),
    decoder('olmo3', **GROUPED, sliding_window=4),
    decoder('exaone4', **GROUPED, sliding_window=4),
    decoder('seed_oss', **GROUPED),
    decoder('arcee', **GROUPED),
    decoder('apertus', **GROUPED),
    decoder('hunyuan_v1_dense', **GROUPED),
    decoder('cohere2', **GROUPED, sliding_window=4),
    decoder('glm4', **GROUPED),
    decoder('granitemoe', **GROUPED | EXPERTS),
    decoder('dots1', **GROUPED | EXPERTS, n_routed_experts=4, n_shared_experts=1, n_group=2, topk_group=1,
            first_k_dense_replace=1),
    decoder('diffllama', **GROUPED),
    decoder('doge', **GROUPED),
    decoder('nanochat', **GROUPED),
    decoder('bitnet', **GROUPED),
    decoder('xlstm', num_heads=2, num_blocks=2, embedding_dim=32, chunk_size=4, mode='inference', return_last_states=True),

    encoder('bert'),
    encoder('roberta'),
    encoder('xlm-roberta'),
    encoder('distilbert', dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    encoder('electra', embedding_size=32),
    encoder('albert', embedding_size=16),
    encoder('deberta', relative_attention=True, pos_att_type=['c2p', 'p2c']),
    encoder('deberta-v2', relative_attention=True, pos_att_type=['c2p', 'p2c'], position_buckets=8),
    encoder('mpnet'),
    encoder('mobilebert', embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16),
    encoder('squeezebert', embedding_size=32),
    encoder('convbert', embedding_size=32),
    encoder('fnet', mask=False),
    encoder('modernbert', local_attention=8),
    encoder('esm', token_dropout=False, position_embedding_type='rotary'),
    encoder('roformer', embedding_size=32),
    encoder('rembert', input_embedding_size=16),
    encoder('layoutlm'),
    encoder('xlnet', d_model=32, n_layer=2, n_head=4, d_inner=64),
    encoder('longformer', attention_window=4),
    encoder('big_bird', attention_type='original_full'),
    encoder('megatron-bert'),
    encoder('ibert'),
    encoder('canine', num_hash_buckets=64),
    encoder('nomic_bert'),
    encoder('roberta-prelayernorm'),
    encoder('xmod', default_language='en_XX'),
    encoder('ernie'),
    encoder('eurobert', num_key_value_heads=4),
    encoder('flaubert', emb_dim=32, n_layers=2, n_heads=4),
    encoder('luke', entity_vocab_size=16, entity_emb_size=16),

    translator('t5'),
    translator('mt5'),
    translator('umt5'),
    translator('longt5', local_radius=4),
    translator('switch_transformers', num_experts=2, expert_capacity=8),
    translator('bart'),
    translator('mbart'),
    translator('pegasus'),
    translator('marian'),
    translator('blenderbot'),
    translator('m2m_100'),
    translator('led', attention_window=4, max_encoder_position_embeddings=64, max_decoder_position_embeddings=64),

    whisper('encoder'),
    whisper('decoder'),

    pictures('vit'),
    pictures('deit'),
    pictures('beit', use_relative_position_bias=True),
    pictures('data2vec-vision'),
    pictures('swin', **STAGES),
    pictures('swinv2', **STAGES),
    pictures('convnext', **CONVNEXT),
    pictures('convnextv2', **CONVNEXT),
    pictures('dinov2'),
    pictures('ijepa'),
    pictures('resnet', hidden_sizes=[16, 32], depths=[1, 1], embedding_size=16),
    pictures('mobilevit', hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 24, 32, 32, 40], size=64, patch_size=2),
    pictures('mobilenet_v1', size=64),
    pictures('mobilenet_v2', size=64),
    pictures('segformer', size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4],
            patch_sizes=[7, 3, 3, 3], auto='AutoModelForSemanticSegmentation', decoder_hidden_size=16),
    pictures('poolformer', size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1]),
    pictures('pvt_v2', size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]),
    pictures('levit', size=64, hidden_sizes=[16, 32, 32], num_attention_heads=[2, 2, 2], depths=[1, 1, 1], key_dim=[8, 8,
            8], patch_size=16),
    pictures('focalnet', size=64, embed_dim=16, depths=[1, 1], focal_levels=[1, 1], focal_windows=[3, 3], hidden_sizes=[16,
            32], patch_size=4),
    pictures('efficientnet', size=64, width_coefficient=0.35, depth_coefficient=0.3, hidden_dim=448),
    pictures('dpt', auto='AutoModelForDepthEstimation', num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, is_hybrid=False),
    pictures('yolos', image_size=[32, 32], num_detection_tokens=5, auto='AutoModelForObjectDetection'),
    pictures('siglip_vision_model'),
    pictures('clip_vision_model'),
    pictures('hiera', image_size=[64, 64], size=64, embed_dim=16, patch_size=[7, 7], patch_stride=[4, 4], depths=[1, 1],
            num_heads=[1, 2], query_stride=[2, 2], masked_unit_size=[8, 8], num_query_pool=1, hidden_size=32),

    pictures('dinov2_with_registers'),
    pictures('dinov3_vit'),
    pictures('vit_msn'),
    pictures('swiftformer', size=64, depths=[1, 1, 1, 1], embed_dims=[16, 16, 32, 32]),
    pictures('mobilevitv2', size=64, patch_size=2, width_multiplier=0.5),

    clip('clip'),
    clip('siglip'),
    clip('chinese_clip'),
    clip('metaclip_2'),

    sounds('wav2vec2', (800,), **SPEECH),
    sounds('hubert', (800,), **SPEECH),
    sounds('wavlm', (800,), **SPEECH),
    sounds('sew', (800,), **SPEECH, squeeze_factor=2),
    sounds('unispeech', (800,), **SPEECH),
    sounds('data2vec-audio', (800,), **SPEECH),
    sounds('wav2vec2-conformer', (800,), **SPEECH),
    sounds('audio-spectrogram-transformer', (64, 16), max_length=64, num_mel_bins=16),
    sounds('wav2vec2-bert', (20, 16), 'input_features', feature_projection_input_dim=16),
    sounds('encodec', (1, 640), num_filters=4, hidden_size=16, codebook_dim=16, codebook_size=32, upsampling_ratios=[4, 2],
            num_lstm_layers=1),
    sounds('patchtst', (32, 3), 'past_values', context_length=32, patch_length=8, patch_stride=8, num_input_channels=3,
            d_model=16, ffn_dim=32),

    univnet(),
    sounds('unispeech-sat', (800,), **SPEECH),
    sounds('mimi', (1, 1920), num_filters=4, upsampling_ratios=[4, 2], codebook_dim=16, codebook_size=32, vector_quantization_hidden_dimension=16,
           num_quantizers=4, num_semantic_quantizers=1, num_key_value_heads=4, head_dim=8, upsample_groups=32),
    sounds('patchtsmixer', (32, 3), 'past_values', context_length=32, patch_length=8, patch_stride=8, num_input_channels=3, d_model=16),

    *[torchvision_model(n) for n in ('resnet18', 'resnet50', 'resnext50_32x4d', 'mobilenet_v2', 'mobilenet_v3_large',
            'mobilenet_v3_small', 'efficientnet_b0', 'densenet121', 'squeezenet1_1', 'shufflenet_v2_x0_5', 'regnet_y_400mf',
            'convnext_tiny', 'swin_t', 'swin_v2_t', 'mnasnet0_5')],

    torchvision_model('efficientnet_v2_s', 32),
    torchvision_model('googlenet', aux_logits=False),
    torchvision_model('inception_v3', 96, aux_logits=False),
    torchvision_model('alexnet'),
    torchvision_model('vit_b_32', 64, image_size=64),

    vgg('vgg11'),
    vgg('vgg16_bn'),

    maxvit(),

    segmentation('fcn_resnet50'),
    segmentation('deeplabv3_mobilenet_v3_large'),
    segmentation('lraspp_mobilenet_v3_large'),

    *[timm_model(n) for n in ('resnet18d', 'seresnet18', 'resnet26t', 'skresnet18', 'ecaresnet26t', 'regnetx_002',
            'efficientnet_lite0', 'tf_efficientnet_b0', 'mobilenetv3_small_050', 'mobilenetv4_conv_small', 'mixnet_s',
            'ghostnet_050', 'hardcorenas_a', 'lcnet_050', 'tinynet_e', 'fbnetc_100', 'repvgg_a0', 'mobileone_s0',
            'fastvit_t8', 'convnext_atto', 'convnextv2_atto', 'densenet121', 'dla34', 'hrnet_w18_small', 'vovnet39a',
            'cspresnet50', 'res2net50_26w_4s', 'dpn48b', 'nf_resnet26', 'edgenext_xx_small', 'mobilevit_xxs',
            'mobilevitv2_050', 'efficientvit_b0', 'pvt_v2_b0', 'poolformer_s12', 'tiny_vit_5m_224',
            'convmixer_768_32', 'halonet26t', 'lambda_resnet26t', 'gernet_s', 'resnest14d')],
    *[timm_model(n, img_size=64) for n in ('vit_tiny_patch16_224', 'deit_tiny_patch16_224', 'beit_base_patch16_224',
            'cait_xxs24_224', 'xcit_nano_12_p16_224', 'mixer_s32_224', 'resmlp_12_224', 'gmlp_ti16_224',
            'eva02_tiny_patch14_224')],

    *[timm_model(n) for n in ('starnet_s1', 'repvit_m0_9', 'mambaout_femto', 'shvit_s1', 'efficientvit_m0', 'inception_next_atto', 'hgnetv2_b0')],

    timm_model('swin_tiny_patch4_window7_224', 56, img_size=56, window_size=7),
    timm_model('coat_lite_tiny', 64, img_size=64),
    timm_model('maxvit_rmlp_pico_rw_256', 64, img_size=64),
    timm_model('crossvit_tiny_240', 240),

    *[pattern(kind) for kind in patterns.EXAMPLES],
]
