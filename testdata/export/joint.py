"""Programs with their backward, loss and gradients as outputs, and a mixture of experts: what is divided over ranks."""
import torch
import torch.nn.functional as F
from torch import nn

from fixture import Case
from kinds import LENGTH, VOCABULARY, Logits, Loss, llama, token_ids


def mlp_joint():
    scores = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 5))
    return Case('mlp_joint', Loss(scores), (torch.randn(6, 12), torch.randint(0, 5, (6,))), onnx=False, joint=True)


def llama_tiny_joint():
    return Case('llama_tiny_joint', Loss(llama()), (token_ids(2, LENGTH), token_ids(2, LENGTH)), onnx=False, joint=True)


def mixtral_tiny():
    "Four experts, two of which each token has."
    import transformers
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
        vocab_size=VOCABULARY, max_position_embeddings=LENGTH, num_local_experts=4, num_experts_per_tok=2, initializer_range=0.2))
    return Case('mixtral_tiny', Logits(model), (token_ids(2, LENGTH),), more={'seed1': (token_ids(2, LENGTH),)}, onnx=False, float64=False)


CASES = mlp_joint, llama_tiny_joint, mixtral_tiny
