"""Models in PyTorch's own modules, of kinds that the libraries of catalogue.py lack: each a class whose forward takes the tensors that
EXAMPLES gives for a batch and a length."""
import torch
from torch import nn
from torch.nn import functional as F


class TemporalConvolutions(nn.Module):
    "Dilated causal convolutions with residual connections (TCN)."

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 3, dilation=2 ** i)) for i in range(4))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = x + F.relu(conv(F.pad(x, (2 * 2 ** i, 0))))
        return self.head(x.transpose(1, 2))


class WaveNet(nn.Module):
    "Gated dilated convolutions with skip connections."

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.gates = nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=2 ** i) for i in range(3))
        self.skips = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(3))
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(16, 16, 1), nn.ReLU(), nn.Conv1d(16, 32, 1))

    def forward(self, ids):
        x, total = self.embed(ids).transpose(1, 2), 0
        for i, (gate, skip) in enumerate(zip(self.gates, self.skips)):
            a, b = gate(F.pad(x, (2 ** i, 0))).chunk(2, 1)
            h = torch.tanh(a) * torch.sigmoid(b)
            total, x = total + skip(h), x + h
        return F.log_softmax(self.out(total), 1)


class ConformerBlock(nn.Module):
    "Half a feed-forward, attention, a gated depthwise convolution, half a feed-forward."

    def __init__(self, width=16, kernel=5):
        super().__init__()
        def feed():
            return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
        self.first, self.last = feed(), feed()
        self.norm, self.conv_norm, self.final = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch = nn.BatchNorm1d(width)

    def forward(self, x):
        x = x + self.first(x) / 2
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        h = F.glu(self.wide(self.conv_norm(x).transpose(1, 2)), 1)
        x = x + self.narrow(F.silu(self.batch(self.depthwise(h)))).transpose(1, 2)
        return self.final(x + self.last(x) / 2)


class Vocoder(nn.Module):
    "Transposed convolutions and residual blocks of several widths (HiFi-GAN)."

    def __init__(self):
        super().__init__()
        self.pre = nn.Conv1d(16, 32, 7, padding=3)
        self.ups = nn.ModuleList(nn.ConvTranspose1d(32 >> i, 16 >> i, 8, 4, padding=2) for i in range(2))
        self.blocks = nn.ModuleList(nn.ModuleList(nn.Conv1d(16 >> i, 16 >> i, k, padding=(k - 1) // 2 * d, dilation=d) for k, d in ((3, 1), (3, 3), (5, 1)))
                                    for i in range(2))
        self.post = nn.Conv1d(8, 1, 7, padding=3)

    def forward(self, mel):
        x = self.pre(mel)
        for up, block in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(conv(F.leaky_relu(x, 0.1)) for conv in block) / len(block) + x
        return torch.tanh(self.post(F.leaky_relu(x)))


class UNet(nn.Module):
    "An image to an image through halved sizes, with skip connections and a time embedding, as diffusion models have it."

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16))
        self.inward, self.down, self.middle = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, padding=1)
        self.norm, self.out = nn.GroupNorm(4, 32), nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, x, t):
        angle = t[:, None].float() * torch.exp(-torch.arange(8, device=x.device) / 2)
        e = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        a = F.silu(self.inward(x))
        b = F.silu(self.middle(self.down(a)) + e[:, :, None, None])
        b = F.interpolate(b, scale_factor=2, mode='nearest')
        return self.out(F.silu(self.norm(torch.cat([a, b], 1))))


class Recommender(nn.Module):
    "Bags of sparse features, their products by pairs, and dense layers (DLRM)."

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20, 8, mode='sum') for _ in range(3))
        self.bottom, self.top = nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))
        self.register_buffer('pairs', torch.tril_indices(4, 4, -1))

    def forward(self, dense, sparse):
        d = self.bottom(dense)
        all = torch.stack([d] + [bag(sparse[:, i]) for i, bag in enumerate(self.bags)], 1)
        products = torch.bmm(all, all.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat([d, products], 1)))


class GraphAttention(nn.Module):
    "Messages along the edges of a graph, weighted by a softmax over each node's edges (GAT)."

    def __init__(self):
        super().__init__()
        self.project, self.score = nn.Linear(6, 8), nn.Linear(16, 1)

    def forward(self, nodes, edges):
        h = self.project(nodes)
        source, target = edges
        s = F.leaky_relu(self.score(torch.cat([h[source], h[target]], -1))).squeeze(-1)
        most = torch.full((nodes.shape[0],), float('-inf')).scatter_reduce(0, target, s, 'amax')
        w = torch.exp(s - most[target])
        total = torch.zeros(nodes.shape[0]).index_add(0, target, w)
        return torch.zeros_like(h).index_add(0, target, h[source] * (w / total[target])[:, None])


class PointNet(nn.Module):
    "A set of points: shared layers, the largest of each feature, and a learned transform."

    def __init__(self):
        super().__init__()
        self.transform = nn.Sequential(nn.Conv1d(3, 16, 1), nn.ReLU())
        self.matrix, self.features, self.head = nn.Linear(16, 9), nn.Sequential(nn.Conv1d(3, 32, 1), nn.ReLU()), nn.Linear(32, 4)

    def forward(self, points):
        t = self.matrix(self.transform(points).amax(-1)).view(-1, 3, 3) + torch.eye(3)
        return F.log_softmax(self.head(self.features(t @ points).amax(-1)), -1)


class Radiance(nn.Module):
    "Colours along rays: Fourier features, a deep net, and products of what is left of the light (NeRF)."

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, points):
        waves = points[..., None] * 2.0 ** torch.arange(4)
        x = torch.cat([points, waves.sin().flatten(-2), waves.cos().flatten(-2)], -1)
        y = self.net(x)
        alpha = 1 - torch.exp(-F.softplus(y[..., 3]) * 0.1)
        left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], -1), -1)
        return ((alpha * left)[..., None] * torch.sigmoid(y[..., :3])).sum(1)


class Translator(nn.Module):
    "A recurrent encoder and decoder with additive attention."

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.encoder, self.decoder = nn.GRU(16, 16, batch_first=True, bidirectional=True), nn.GRUCell(48, 32)
        self.query, self.key, self.score, self.out = nn.Linear(32, 16), nn.Linear(32, 16), nn.Linear(16, 1), nn.Linear(32, 32)

    def forward(self, source, target):
        memory, last = self.encoder(self.embed(source))
        h, keys, outs = torch.cat([last[0], last[1]], -1), self.key(memory), []
        for step in self.embed(target).unbind(1):
            w = F.softmax(self.score(torch.tanh(keys + self.query(h)[:, None])), 1)
            h = self.decoder(torch.cat([step, (w * memory).sum(1)], -1), h)
            outs.append(self.out(h))
        return torch.stack(outs, 1)


class VectorQuantizer(nn.Module):
    "An autoencoder whose middle is the nearest of a few vectors (VQ-VAE)."

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Conv2d(3, 8, 4, 4), nn.ConvTranspose2d(8, 3, 4, 4)
        self.book = nn.Parameter(torch.randn(16, 8))

    def forward(self, x):
        z = self.encoder(x).permute(0, 2, 3, 1)
        nearest = torch.cdist(z.flatten(0, 2)[None], self.book[None])[0].argmin(-1)
        q = F.embedding(nearest, self.book).view(z.shape)
        return self.decoder((z + (q - z).detach()).permute(0, 3, 1, 2)), nearest


class SpatialTransformer(nn.Module):
    "A net that turns its input image by an affine map of its own making."

    def __init__(self):
        super().__init__()
        self.locate, self.head = nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 49, 6)), nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y, z = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing='ij')
        base = torch.stack([z, y, torch.ones_like(z)], -1).view(1, -1, 3)
        theta = self.locate(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        grid = (base @ theta.transpose(1, 2)).view(x.shape[0], 32, 32, 2)
        return self.head(F.grid_sample(x, grid, align_corners=True)).mean((2, 3))


def edges(n):
    return torch.stack([torch.arange(4 * n) % n, (torch.arange(4 * n) * 7 + 3) % n])


BATCH, LENGTH = {0: 'batch'}, {0: 'batch', 1: 'length'}
EXAMPLES = {
    TemporalConvolutions: (lambda b, n: (torch.randn(b, 8, n),), ({0: 'batch', 2: 'length'},)),
    WaveNet: (lambda b, n: (torch.randint(0, 32, (b, n)),), (LENGTH,)),
    ConformerBlock: (lambda b, n: (torch.randn(b, n, 16),), (LENGTH,)),
    Vocoder: (lambda b, n: (torch.randn(b, 16, n),), ({0: 'batch', 2: 'length'},)),
    UNet: (lambda b, n: (torch.randn(b, 3, 16, 16), torch.arange(b)), (BATCH, BATCH)),
    Recommender: (lambda b, n: (torch.randn(b, 5), torch.randint(0, 20, (b, 3, 4))), (BATCH, BATCH)),
    GraphAttention: (lambda b, n: (torch.randn(8, 6), edges(8)), ({}, {})),
    PointNet: (lambda b, n: (torch.randn(b, 3, n),), ({0: 'batch', 2: 'length'},)),
    Radiance: (lambda b, n: (torch.randn(b, n, 3),), (LENGTH,)),
    Translator: (lambda b, n: (torch.randint(0, 32, (b, 6)), torch.randint(0, 32, (b, 4))), (BATCH, BATCH)),
    VectorQuantizer: (lambda b, n: (torch.randn(b, 3, 16, 16),), (BATCH,)),
    SpatialTransformer: (lambda b, n: (torch.randn(b, 3, 32, 32),), (BATCH,)),
}
