"""Small models that together use the common operators of ATen, each with an input for which its outputs are known.

Names say which operators: ops_KIND. Inputs are chosen so that no output hangs on a rounding (no ties for argmax, no values
next to a step of floor or a comparison).
"""
import torch
import torch.nn.functional as F
from torch import nn

from fixture import Case


def net(forward):
    "A module without parameters that computes forward."
    class Net(nn.Module):
        def forward(self, *args):
            return forward(*args)
    return Net()


def calibrated(module, *shape):
    "The module with batch norm statistics of a few random batches."
    for m in module.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, std=0.2)
    module.train()
    with torch.no_grad():
        for _ in range(4):
            module(torch.randn(*shape))
    return module.eval()


def conv():
    "Groups, dilation, stride, padding of both kinds, 1x1, depthwise, transposed, 1-D, pooling and batch norm."
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
            self.norm = nn.BatchNorm2d(8)
            self.grouped = nn.Conv2d(8, 12, (3, 1), padding=(1, 0), groups=4, bias=False)
            self.dilated = nn.Conv2d(12, 8, 3, padding=2, dilation=2)
            self.depthwise = nn.Conv2d(8, 8, 5, padding='same', groups=8)
            self.reflected = nn.Conv2d(8, 8, 3, padding=1, padding_mode='reflect')
            self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
            self.line = nn.Conv1d(4, 4, 4, stride=2)

        def forward(self, x):
            x = F.relu(self.norm(self.stem(x)))
            x = self.dilated(F.max_pool2d(self.grouped(x), 3, stride=2, padding=1, ceil_mode=True))
            x = self.reflected(F.avg_pool2d(self.depthwise(x), 2, stride=1, padding=1, count_include_pad=False))
            y = self.up(x)
            z = self.line(y.flatten(2))
            return F.adaptive_avg_pool2d(x, (2, 3)), y, z, F.max_pool1d(z, 3), F.adaptive_avg_pool2d(x, 1)
    return Case('ops_conv', calibrated(Conv(), 4, 3, 20, 24), (torch.randn(2, 3, 20, 24),))


def matmul():
    "Every product of matrices, and the softmaxes."
    class Matmul(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(16, 24), nn.Linear(16, 24, bias=False)
            self.bilinear = nn.Parameter(torch.randn(24, 16))

        def forward(self, x, y, v):
            q, k = self.q(x), self.k(y)
            s = torch.einsum('bid,bjd->bij', q, k) / 24 ** 0.5
            p = torch.softmax(s, -1)
            b = torch.bmm(p, y)
            return (b, F.log_softmax(s, 1), torch.matmul(x[0], y[0].mT), torch.matmul(v, x.transpose(1, 2)[0]), x @ v,
                    torch.mv(y[1], x[0, 0]), torch.dot(x[0, 1], x[0, 2]), torch.outer(v, v),
                    torch.addmm(x[0, :, :1], x[0], self.bilinear.T, beta=0.5, alpha=2),
                    torch.baddbmm(b, p, y, beta=2),
                    torch.einsum('bij,kj,bik->bk', x[:, :, :16], self.bilinear, torch.matmul(x, self.bilinear.T)),
                    torch.matmul(x[:, None], y[None].transpose(-1, -2)), torch.linalg.vecdot(q[:, :5], k[:, :5]),
                    F.softmin(s, -1), torch.mm(q[0], k[0].t()), torch.logsumexp(s, (0, 2)))
    return Case('ops_matmul', Matmul(), (torch.randn(2, 6, 16), torch.randn(2, 9, 16), torch.randn(16)))


def attention():
    "scaled_dot_product_attention in its spellings, multi-head attention, and a rotary embedding."
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.mha = nn.MultiheadAttention(32, 4, batch_first=True)
            self.register_buffer('freq', 1.0 / 100 ** (torch.arange(0, 8, 2) / 8), persistent=False)

        def forward(self, q, k, v, keep):
            angle = torch.outer(torch.arange(q.shape[-2]).float(), self.freq)
            cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
            turned = q * cos + torch.cat([-q[..., 4:], q[..., :4]], -1) * sin
            bias = torch.where(keep, 0.0, float('-inf'))
            x = q.transpose(1, 2).flatten(2)
            return (F.scaled_dot_product_attention(turned, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True),
                    F.scaled_dot_product_attention(q, k, v, attn_mask=keep),
                    F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.25),
                    F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
                    self.mha(x, x, x, need_weights=False)[0])
    keep = torch.rand(2, 1, 10, 10) > 0.3
    keep |= torch.eye(10, dtype=torch.bool)
    return Case('ops_attention', Attention(),
                (torch.randn(2, 4, 10, 8), torch.randn(2, 4, 10, 8), torch.randn(2, 4, 10, 8), keep), float64=False)


def indexing():
    "Slices, views, joins and splits, selection by mask and by index, padding and shifting."
    def forward(x, i, m):
        a, b, c = x.chunk(3, 1)
        s = torch.split(x, [1, 2, 3], 1)
        rows = x[i]
        return (x[:, 1:5:2], x[:, -2], x[..., None, :2], a + b * c, torch.cat([s[2], s[0]], 1), torch.stack([a, b], 1),
                torch.where(m, x[..., 0], -x[..., 1]),
                x.masked_fill(m[..., None], 2.5), rows, x[i, :, 1], x[i[:2], i[1:]],
                torch.gather(x, 1, i.view(1, 3, 1).expand(4, 3, 5) % 6), torch.index_select(x, 2, i),
                torch.take_along_dim(x, x.argsort(-1), -1), F.one_hot(i, 5), F.pad(x, (1, 2, -1, 0), value=-1.0),
                F.pad(x, (2, 1), mode='replicate'), torch.roll(x, (1, -2), (0, 2)),
                torch.flip(x, (0, 2)), x.permute(2, 0, 1).contiguous().view(5, -1), x.unsqueeze(0).expand(2, -1, -1, -1).sum(0),
                x.repeat(1, 2, 1), torch.repeat_interleave(x, 2, 0),
                x.unflatten(1, (2, 3)).flatten(0, 1), x.movedim(0, -1).narrow(1, 1, 2), torch.tril(x[0]), torch.triu(x, 1),
                torch.diagonal(x, 0, 1, 2), x.unbind(2)[3], x.select(0, 3),
                torch.unfold_copy(x, 1, 3, 2), torch.meshgrid(i, i + 1, indexing='ij')[1], torch.hstack([a, b]),
                torch.tile(m, (2, 1)), x.as_strided((4, 3), (30, 7), 2), torch.constant_pad_nd(x, (0, 1), 3.0))
    x = torch.randn(4, 6, 5)
    return Case('ops_indexing', net(forward), (x, torch.tensor([2, 0, 3]), torch.rand(4, 6) > 0.5))


def scatter():
    "Writes by index: duplicates only where the operator adds or takes a maximum."
    def forward(x, v, i):
        j = i.view(3, 1).expand(3, 5)
        return (x.scatter(0, j, v), x.scatter_add(0, (j // 2), v), x.scatter_reduce(0, j // 2, v, 'amax', include_self=False),
                x.index_add(0, i // 2, v, alpha=0.5), x.index_copy(0, i, v), x.index_fill(0, i, 7.0),
                x.index_put((i,), v), x.index_put((i // 2,), v, accumulate=True), x.slice_scatter(x[:, :2] * 2, 1, 1, 3),
                x.select_scatter(v[0], 0, 1), x.masked_scatter(x > 0, x.flip(0)), torch.bincount(i, minlength=6))
    return Case('ops_scatter', net(forward), (torch.randn(6, 5), torch.randn(3, 5), torch.tensor([4, 1, 5])))


def inplace():
    "Writes into views, chains of views, in-place operators, and an input changed in place."
    class Inplace(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer('count', torch.tensor(3))
            self.register_buffer('mean', torch.arange(4.0))

        def forward(self, x, y):
            a = x.clone()
            a[:, 0] = 1
            a[1:3, 2:4] += 2
            a[0] = a[1] * 2
            v = a.view(2, 2, 4).transpose(0, 1)
            v.mul_(1.5)
            v[1].add_(x[:2], alpha=0.5)
            b = torch.zeros_like(x)
            b.copy_(x[0])
            b.diagonal().fill_(5)
            b.T[2].sub_(1).relu_()
            c = torch.empty(4, 4).fill_(0.25)
            c.masked_fill_(x > 0, -1).clamp_(min=-0.5).exp_()
            c.unsqueeze(0).squeeze_(0).t_()[1].zero_()
            d = x.clone()
            lo, hi = d.split(2)
            lo.copy_(hi)
            hi.neg_()
            torch.add(a, b, out=c)
            e = x.new_zeros(4, 4)
            e.index_copy_(0, torch.tensor([3, 1]), x[:2]).scatter_(1, torch.tensor([[0], [2], [1], [3]]), 9.0)
            e[torch.tensor([0, 2])] = x[2:]
            e[x > 1] = 0
            self.count.add_(1)
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            y[:, 1:].mul_(2)
            return a, v, b, c, d, e, self.mean * self.count, y + 1
    return Case('ops_inplace', Inplace(), (torch.randn(4, 4), torch.randn(3, 3)), onnx=False)


def reductions():
    "Sums, means, moments, extremes and their places, scans, logic, norms, sorting."
    def forward(x, b):
        return (x.sum(), x.sum((0, 2)), x.mean(-1, keepdim=True), x.var(1), x.var((0, 1), unbiased=False),
                x.std(2, correction=0), torch.var_mean(x, 0)[1], x.amax((1, 2)), x.amin(0),
                *x.max(1), *x.min(2), x.max(), x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True), torch.aminmax(x, dim=0)[0],
                x.cumsum(1), x.prod(2), x.logcumsumexp(2),
                b.all(), b.all(1), b.any((0,)), b.sum(-1), b.long().cumsum(0), x.norm(), x.norm(dim=1),
                torch.linalg.vector_norm(x, 1, (0, 2)), torch.linalg.vector_norm(x, float('inf'), 1), x.logsumexp(1),
                *x.topk(3, 1), *x.sort(2, descending=True), x.argsort(0), (x > 0).count_nonzero(1), x.square().sum().sqrt(),
                F.normalize(x, dim=2), F.cosine_similarity(x[0], x[1], 0))
    return Case('ops_reductions', net(forward), (torch.randn(3, 5, 4), torch.rand(4, 6) > 0.1))


def norms():
    "Group, instance, layer, rms and batch norm, and embeddings."
    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 12, padding_idx=0)
            self.group, self.instance = nn.GroupNorm(3, 12), nn.InstanceNorm1d(12, affine=True)
            self.layer, self.rms, self.batch = nn.LayerNorm((12, 7)), nn.RMSNorm(7, eps=1e-6), nn.BatchNorm1d(12)
            self.bare, self.local = nn.LayerNorm(7, elementwise_affine=False), nn.LocalResponseNorm(3)
            self.tracked = nn.InstanceNorm1d(12, track_running_stats=True)

        def forward(self, i):
            x = self.embed(i).transpose(1, 2)
            return (self.group(x), self.instance(x), self.layer(x), self.rms(x), self.batch(x), self.bare(x), self.local(x),
                    self.tracked(x), F.rms_norm(x, (12, 7)), F.group_norm(x, 4),
                    F.embedding(i, self.embed.weight, max_norm=None) * 2, F.dropout(x, 0.5, self.training),
                    F.layer_norm(x, (7,), eps=1e-3))
    n = Norms()
    n.train()
    with torch.no_grad():
        for _ in range(4):
            n(torch.randint(1, 20, (8, 7)))
        for p in n.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return Case('ops_norms', n, (torch.randint(0, 20, (2, 7)),))


def integers():
    "Integer arithmetic: both divisions, remainders, bits, shifts, comparisons, conversions, small types and 64 bits."
    def forward(a, b, s, u):
        return (a + b, a - b * 3, a * b, torch.div(a, b, rounding_mode='floor'), torch.div(a, b, rounding_mode='trunc'), a // b,
                a % b, torch.fmod(a, b), torch.remainder(a, -b), a / b, a & b, a | b, a ^ b, ~a,
                -a, a.abs(), a.sign(), torch.maximum(a, b), a.clamp(-3, 9), a == b, a < b, a.ne(3), a ** 2,
                a.eq(b).logical_not(), s + s, s * 3, s.to(torch.int8), u + u, u.to(torch.int32) - 300,
                (s.long() << 40) + 7, a.float() * 0.5, (a.float() * 0.7).to(torch.int32), a.bool(), (a > 0) & (b > 0) | (a == b),
                torch.logical_xor(a > 0, b > 0), a.sum(), b.to(torch.int16).prod(), s.sum(), u.float().mean(),
                torch.arange(3, 17, 4), torch.arange(5).float() / 4, torch.linspace(0, 1, 5), torch.full((2, 3), 7),
                torch.bitwise_and(a, 12), torch.floor_divide(a, 7), a.square(), torch.eye(3, dtype=torch.long),
                torch.bucketize(a.float() + 0.5, torch.tensor([-4.0, 0.0, 4.0])), a.flip(1))
    a = torch.tensor([[7, -7, 13, -128], [0, 5, -9, 100]])
    b = torch.tensor([[3, 3, -4, 7], [-2, 5, -2, -30]])
    return Case('ops_integers', net(forward),
                (a, b, torch.tensor([1, -5, 30000, 77], dtype=torch.int16), torch.tensor([0, 200, 255, 9], dtype=torch.uint8)),
                float64=False)


def narrow_types():
    "float16, bfloat16 and float64 pieces, their conversions and mixed arithmetic."
    class Types(nn.Module):
        def __init__(self):
            super().__init__()
            self.f16, self.bf16, self.f64 = nn.Linear(16, 8).half(), nn.Linear(16, 8).bfloat16(), nn.Linear(16, 8).double()
            self.norm = nn.LayerNorm(16).bfloat16()

        def forward(self, h, b, d):
            return (self.f16(h), self.bf16(b), self.f64(d), F.gelu(h), torch.softmax(b, -1), self.norm(b), h + b, h.float() * b,
                    (d + h).to(torch.bfloat16), b.sum(-1), h.mean(0), d.exp().log1p(),
                    h * 0.1, b + 1, d.sin() * d.cos(), h.double().tanh(), b.type_as(h), b @ b.T, h > b,
                    torch.full_like(h, 1 / 3), b.amax(1), F.silu(b), d.to(torch.int32))
    x = torch.randn(6, 16)
    return Case('ops_types', Types(), (x.half(), x.bfloat16().flip(0), x.double() * 2), float64=False)


def activations():
    "Every activation function, on both sides of its kinks and into its tails."
    def forward(x):
        return (F.relu(x), F.relu6(x * 4), F.gelu(x), F.gelu(x, approximate='tanh'), F.silu(x), F.mish(x), F.elu(x, 0.7),
                F.selu(x), F.celu(x, 1.3), F.leaky_relu(x, 0.1), F.hardtanh(x, -0.5, 1.5), F.hardsigmoid(x * 2),
                F.hardswish(x * 2),
                torch.sigmoid(x), torch.tanh(x), F.softplus(x, beta=2, threshold=5), F.softsign(x), F.tanhshrink(x),
                F.softshrink(x, 0.4), F.hardshrink(x, 0.4), F.threshold(x, 0.3, -2), F.glu(x), F.prelu(x, x.new_full((1,), 0.2)))
    return Case('ops_activations', net(forward),
                (torch.cat([torch.randn(3, 8) * 3, torch.tensor([[0.0, -0.0, 8.0, -8.0, 20.0, -20.0, 1e-3, -90.0]])]),))


def elementwise():
    "Elementary functions, arithmetic with scalars and broadcasting, rounding, comparisons, special values."
    def forward(x, y):
        p = x.abs() + 0.1
        u = torch.tanh(x) * 0.99
        special = torch.cat([x[0], torch.tensor([float('nan'), float('inf'), float('-inf')])])
        return (x.exp(), torch.expm1(x), torch.exp2(x), p.log(), p.log2(), p.log10(), torch.log1p(p), p.sqrt(), p.rsqrt(),
                x.sin(), x.cos(), x.tan(), u.asin(), u.acos(), x.atan(), torch.atan2(x, y), x.sinh(), x.cosh(), x.asinh(),
                (p + 1).acosh(), u.atanh(), x.erf(), torch.erfc(x),
                p.pow(y), x.pow(3), 2 ** x, p ** -0.5, p.reciprocal(), x / y, 1 / p, 3 - x, x * 2 + y, torch.add(x, y, alpha=-2),
                torch.rsub(x, y), torch.addcmul(x, y, p, value=0.5), torch.addcdiv(x, y, p), torch.lerp(x, y.expand(4, 5), 0.3),
                (x * 3).floor(), (x * 3).ceil(), (x * 3).round(), (x * 3).trunc(), (x * 3).frac(), torch.fmod(x * 5, 1.7),
                torch.remainder(x * 5, 1.7), torch.floor_divide(x * 5, 1.3), x.clamp(-0.5, 0.8), x.clamp(min=y),
                torch.maximum(x, y), torch.minimum(x, y),
                x.sign(), x.abs(), -x, x > y, x <= 0.25, x.eq(x), torch.isnan(special), torch.isinf(special),
                torch.isfinite(special), torch.nan_to_num(special, 1.0, 2.0, 3.0), special.relu(),
                special.maximum(special.flip(0)), torch.where(x > 0, x, 0.0), torch.logaddexp(x, y), torch.sinc(x),
                torch.logit(torch.sigmoid(x)), torch.xlogy(p, p), torch.heaviside(x, y[0]), torch.deg2rad(x), torch.square(x),
                torch.special.expit(x))
    return Case('ops_elementwise', net(forward), (torch.randn(4, 5) * 1.5, torch.randn(5)), float64=False)


def resize():
    "Nearest and bilinear resizing, pixel shuffle, and 1-D and 3-D pooling."
    def forward(x):
        z = x[:, None]
        return (F.interpolate(x, scale_factor=2, mode='nearest'),
                F.interpolate(x, (9, 11), mode='bilinear', align_corners=False),
                F.interpolate(x, (9, 11), mode='bilinear', align_corners=True), F.interpolate(x, (4, 3), mode='nearest'),
                F.interpolate(x[:, :, 0], scale_factor=3.0, mode='linear'),
                F.interpolate(x, (3, 4), mode='nearest-exact'), F.interpolate(x, (12, 14), mode='bicubic'),
                F.pixel_shuffle(x, 2), F.pixel_unshuffle(x[:, :1, :6, :6], 2), F.channel_shuffle(x, 2),
                F.avg_pool1d(x[:, :, 0], 2), F.max_pool3d(z, 2), F.avg_pool3d(z, (1, 2, 2)),
                F.interpolate(z, (4, 3, 5), mode='trilinear'), F.unfold(x, (2, 3), padding=1, stride=2))
    return Case('ops_resize', net(forward), (torch.randn(2, 4, 6, 7),))


def losses():
    "Losses in the forward direction, with every kind of reduction."
    def forward(x, t, y):
        return (F.cross_entropy(x, t), F.cross_entropy(x, torch.where(t == 2, -100, t), reduction='sum'),
                F.nll_loss(F.log_softmax(x, -1), t), F.mse_loss(x, y), F.l1_loss(x, y, reduction='sum'), F.smooth_l1_loss(x, y),
                F.huber_loss(x, y, delta=0.5), F.binary_cross_entropy_with_logits(x, torch.sigmoid(y)),
                F.kl_div(F.log_softmax(x, -1), torch.softmax(y, -1), reduction='batchmean'),
                F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y)))
    return Case('ops_losses', net(forward), (torch.randn(6, 5), torch.tensor([0, 2, 4, 1, 2, 3]), torch.randn(6, 5)))


def dynamic_shapes():
    "Symbolic batch and length: sizes that are computed with, reshapes, masks and positions."
    class Shapes(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position, self.out = nn.Embedding(32, 16), nn.Embedding(64, 16), nn.Linear(16, 16)

        def forward(self, i):
            b, n = i.shape
            x = self.embed(i) + self.position(torch.arange(n))
            heads = self.out(x).view(b, n, 4, 4).transpose(1, 2)
            causal = torch.ones(n, n, dtype=torch.bool).tril()
            s = (heads @ heads.mT).masked_fill(~causal, float('-inf')).softmax(-1)
            y = (s @ heads).transpose(1, 2).reshape(b, n, 16)
            return (y, y.reshape(b * n, 16).mean(0), torch.cat([y, x], 1), y[:, -1],
                    y.flatten(1).sum(1) / n, torch.zeros(b, n + 1) + b)
    dims = {0: torch.export.Dim('batch', min=1, max=32), 1: torch.export.Dim('length', min=2, max=64)}
    more = {f'{b}x{n}': (torch.randint(0, 32, (b, n)),) for b, n in ((1, 2), (5, 33))}
    return Case('ops_dynamic', Shapes(), (torch.randint(0, 32, (2, 9)),), dynamic=(dims,), more=more)


def rare():
    "What PyTorch 2.15 cannot write as ONNX, or writes as something less exact."
    def forward(x, y, a, b, t):
        return (x.diagonal_scatter(x.diagonal() * 3), *x.cummax(1), (x * 0.9).cumprod(0), x.median(1)[0], torch.cdist(x, x.flip(0)),
                a << (b.abs() & 7), a >> (b.abs() & 7), torch.searchsorted(torch.tensor([1, 5, 9]), a), torch.fmax(x, y),
                torch.fmin(x, y), torch.hypot(x, y),
                torch.softmax(x.bfloat16(), -1, dtype=torch.float32), torch.erf(x.double()),
                torch.copysign(x.abs(), y), F.cross_entropy(x, t, reduction='none', label_smoothing=0.1), F.logsigmoid(x * 30),
                x.nanmean(0), torch.trapezoid(x, dim=1), torch.frexp(x)[0], torch.nextafter(x, y), x.kthvalue(2, 1)[0],
                torch.trace(x), torch.kron(x[:2, :2], y), torch.cross(x[:, :3], x[:, 2:5], dim=1), a.gcd(b))
    return Case('ops_rare', net(forward),
                (torch.randn(4, 5), torch.randn(5), torch.tensor([7, -7, 13, -128]), torch.tensor([3, 5, -4, 30]),
                torch.tensor([0, 2, 4, 1])), onnx=False, float64=False)


CASES = (conv, matmul, attention, indexing, scatter, inplace, reductions, norms, integers, narrow_types, activations,
         elementwise, resize, losses, dynamic_shapes, rare)
