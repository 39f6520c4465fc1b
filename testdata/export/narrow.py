"""Models of narrow types, whose error against float64 is compared with PyTorch's own."""
import torch
import torch.nn.functional as F
from torch import nn

from fixture import Case


def llama_tiny_bf16():
    import transformers
    config = transformers.LlamaConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
                                      vocab_size=96, max_position_embeddings=32, initializer_range=0.05, attn_implementation='sdpa')

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.LlamaForCausalLM(config).bfloat16()

        def forward(self, ids):
            return self.model(ids, use_cache=False).logits
    return Case('narrow_llama_bf16', Llama(), (torch.randint(0, 96, (2, 16)),), float64=False, onnx=False)


class Images(nn.Module):
    "Convolutions with biases: dense, grouped, depthwise, transposed; norms and pooling between them."

    def __init__(self):
        super().__init__()
        self.dense, self.grouped = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, stride=2, padding=1, groups=2)
        self.depthwise, self.up = nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.batch, self.group, self.head = nn.BatchNorm2d(16), nn.GroupNorm(4, 16), nn.Linear(8, 10)
        for p in self.parameters():
            p.data.add_(torch.randn_like(p) * 0.1)
        self.batch.running_mean.normal_()
        self.batch.running_var.uniform_(0.5, 2)

    def forward(self, x):
        a = F.relu(self.batch(self.dense(x)))
        b = F.silu(self.group(self.grouped(a)))
        c = self.depthwise(b)
        d = F.gelu(self.up(c))
        return self.head(F.avg_pool2d(d, 4).mean((2, 3))), self.dense(x), c, d


def images(name, dtype):
    return Case(name, Images().to(dtype), (torch.randn(2, 3, 16, 16).to(dtype),), float64=False)


def autocast():
    "A float32 model with a region in bf16, as training code has it."
    class Region(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.up, self.down = nn.Linear(24, 32), nn.Linear(32, 64), nn.Linear(64, 32)
            self.conv, self.norm = nn.Conv1d(8, 8, 3, padding=1), nn.LayerNorm(32)

        def forward(self, x):
            x = self.embed(x)
            with torch.autocast('cpu', dtype=torch.bfloat16):
                y = self.norm(x + self.down(F.gelu(self.up(x))))
                z = torch.softmax(y @ y.transpose(-1, -2), -1) @ self.conv(y)
            return z.float().sum(-1), z, y
    return Case('narrow_autocast', Region(), (torch.randn(2, 8, 24),), float64=False, onnx=False)


def operators():
    "Single operators in both narrow types: each rounds once."
    def forward(x, y):
        out = []
        for a in (x, y):
            p = a.abs() + 0.5
            w, v = a[:6, :6], p[:6].T
            out += [torch.softmax(a, -1), torch.log_softmax(a, 0), F.layer_norm(a, (12,)), F.rms_norm(a, (12,)), F.gelu(a), F.silu(a),
                    torch.tanh(a), p.pow(1.7), p.rsqrt(), p.log(), a.exp(), a.sum(0), a.mean(1), a.var(1), p.prod(1), a.cumsum(0), torch.logsumexp(a, 1),
                    w @ a[:6], torch.addmm(a[:6, :6], w, v[:6], beta=0.3, alpha=1.7), torch.baddbmm(a[None, :6, :6], w[None], v[None, :6]),
                    F.mse_loss(a, p), F.cross_entropy(a, torch.arange(8)), torch.lerp(a, p, 0.3), torch.addcmul(a, p, a, value=0.7), a / p,
                    F.scaled_dot_product_attention(a.view(1, 2, 4, 12), p.view(1, 2, 4, 12), a.view(1, 2, 4, 12)),
                    F.interpolate(a.view(1, 2, 4, 12), scale_factor=2, mode='bilinear'), F.avg_pool1d(a[None], 3), torch.linalg.vector_norm(a, dim=1),
                    F.glu(a), a * 0.1 + p, F.softplus(a), torch.einsum('ij,kj->ik', a, p), F.leaky_relu(a, 0.01), F.elu(a, 0.7), F.selu(a),
                    F.hardswish(a), F.mish(a), torch.hypot(a, p), torch.logaddexp(a, p), torch.xlogy(a, p), F.softsign(a), F.tanhshrink(a),
                    torch.atan2(a, p), torch.sinc(a), torch.std(a, 0), F.smooth_l1_loss(a, p), F.kl_div(a, p), torch.cosine_similarity(a, p, dim=1),
                    F.normalize(a, dim=1), torch.remainder(a, 0.3), torch.addcdiv(a, a, p, value=0.3), torch.rsub(a, p, alpha=0.7), a.cumprod(1),
                    F.instance_norm(a[None]), F.group_norm(a[None], 2), F.local_response_norm(a[None], 2), F.hardsigmoid(a),
                    torch.special.logit(torch.sigmoid(a)), torch.expm1(a), torch.deg2rad(a), F.celu(a, 1.3), F.softshrink(a, 0.3)]
        return tuple(out)

    class Operators(nn.Module):
        def forward(self, x, y):
            return forward(x, y)
    return Case('narrow_operators', Operators(), (torch.randn(8, 12).half(), torch.randn(8, 12).bfloat16()), float64=False)


CASES = (llama_tiny_bf16, lambda: images('narrow_images_bf16', torch.bfloat16), lambda: images('narrow_images_f16', torch.float16), autocast, operators)
