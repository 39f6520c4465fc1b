"""The five models that weft is first judged by, with seeded random weights, small enough to be kept in the repository."""
import torch
from torch import nn

from fixture import Case


class Logits(nn.Module):
    "A transformers model as a function from tensors to one tensor."

    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, *args):
        out = self.model(*args, **self.options)
        logits = getattr(out, 'logits', None)
        return out.last_hidden_state if logits is None else logits


def mlp():
    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10), nn.Softmax(-1))
    batch = torch.export.Dim('batch', min=1, max=1024)
    more = {f'batch{n}': (torch.randn(n, 64),) for n in (1, 64)}
    return Case('mlp_torch215', net, (torch.randn(8, 64),), dynamic=({0: batch},), more=more)


def token_ids(*shape):
    return torch.randint(0, 256, shape)


def gpt2():
    import transformers
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=64, vocab_size=256, n_positions=64, initializer_range=0.1)
    return Logits(transformers.GPT2LMHeadModel(config), use_cache=False)


def gpt2_tiny():
    return Case('gpt2_tiny_torch215', gpt2(), (token_ids(2, 32),), more={'seed1': (token_ids(2, 32),)})


def gpt2_tiny_dynamic():
    "Batch and length are symbolic."
    dims = {0: torch.export.Dim('batch', min=1, max=64), 1: torch.export.Dim('seq', min=2, max=64)}
    more = {'1x7': (token_ids(1, 7),), '3x64': (token_ids(3, 64),)}
    return Case('gpt2_tiny_dynamic_torch215', gpt2(), (token_ids(2, 32),), dynamic=((dims,),), more=more)


def bert_tiny():
    import transformers
    config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                     vocab_size=256, max_position_embeddings=64, initializer_range=0.1)
    padded = torch.ones(2, 32, dtype=torch.long)
    padded[1, 20:] = 0
    ids = token_ids(2, 32)
    return Case('bert_tiny_torch215', Logits(transformers.BertModel(config)), (ids, torch.ones_like(ids)),
                more={'padded': (token_ids(2, 32), padded)})


def vit_tiny():
    import transformers
    config = transformers.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                    image_size=32, patch_size=8, initializer_range=0.1)
    return Case('vit_tiny_torch215', Logits(transformers.ViTForImageClassification(config)), (torch.randn(2, 3, 32, 32),),
                more={'seed1': (torch.randn(2, 3, 32, 32),)})


def mobilenet_v3_small():
    """Every operator of torchvision's mobilenet_v3_small, at a third of its width so that the file stays small.

    Fresh batch norms would let the signal fade to 1e-10 and hide every error: a few batches in training mode set their
    statistics, and the classifier gets weights of a trained one's size.
    """
    import torchvision
    net = torchvision.models.mobilenet_v3_small(width_mult=0.35, num_classes=10)
    for layer in net.classifier:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = None
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, std=0.2)
    net.train()
    with torch.no_grad():
        for _ in range(4):
            net(torch.randn(16, 3, 96, 96))
    return Case('mobilenet_v3_small', net, (torch.randn(2, 3, 96, 96),), more={'seed1': (torch.randn(2, 3, 96, 96),)})


CASES = (mlp, gpt2_tiny, gpt2_tiny_dynamic, bert_tiny, vit_tiny, mobilenet_v3_small)
