"""Models with Fourier transforms and complex numbers, as speech and positions have them, and with weight norms."""
import torch
import torch.nn.functional as F
from torch import nn

from fixture import Case


class Transforms(nn.Module):
    def forward(self, x, y):
        z = torch.fft.fft(x)
        w = torch.view_as_complex(y)
        s = torch.fft.rfft(x, n=10, dim=1, norm='ortho')
        return (z.real, z.imag, torch.fft.ifft(z).real, s.abs(), torch.fft.irfft(torch.fft.rfft(x), n=7), torch.fft.rfft2(x).angle().cos(),
                torch.fft.fftn(x).real, torch.view_as_real(torch.fft.ifft2(w)), torch.fft.irfft2(torch.fft.rfft2(x, norm='forward'), s=(6, 7), norm='forward'),
                torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real, torch.fft.irfft(s, dim=1), torch.fft.rfftn(x).imag)


def transforms():
    return Case('signal_fft', Transforms(), (torch.randn(2, 6, 7), torch.randn(3, 4, 5, 2)), onnx=False)


class Spectrogram(nn.Module):
    "Overlapping frames of a window, their magnitudes, and a filter bank."

    def __init__(self):
        super().__init__()
        self.register_buffer('window', torch.hann_window(12))
        self.bands = nn.Linear(9, 5)

    def forward(self, x):
        s = torch.stft(x, 16, 4, 12, self.window, center=True, return_complex=True, normalized=True)
        return self.bands(s.abs().pow(2).transpose(1, 2)).add(20).log(), torch.view_as_real(s)


def spectrogram():
    return Case('signal_stft', Spectrogram(), (torch.randn(2, 40),), more={'seed1': (torch.randn(2, 40),)}, onnx=False)


class Rotations(nn.Module):
    "Rotary positions written with complex numbers."

    def forward(self, x):
        at = torch.arange(x.shape[1], dtype=torch.float32)
        angles = torch.outer(at, 1.0 / 100 ** (torch.arange(4) / 4))
        turn = torch.polar(torch.ones_like(angles), angles)
        z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        y = z * turn[None, :, None, :]
        both = torch.cat([y, y.conj() * 0.5 + z], dim=1)
        return torch.view_as_real(y).flatten(3), torch.view_as_real(both.transpose(1, 2) / (turn[0] + 2)), (z.mean(1) - z.sum(1)).abs()


def rotations():
    return Case('signal_rotary', Rotations(), (torch.randn(2, 6, 3, 8),), dynamic=({0: torch.export.Dim('batch', min=1, max=8)},),
                more={'batch1': (torch.randn(1, 6, 3, 8),), 'batch5': (torch.randn(5, 6, 3, 8),)}, onnx=False)


class Normed(nn.Module):
    "Weight norms, as vocoders and temporal convolutional networks use them."

    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3, padding=2, dilation=2))
        self.second = nn.utils.parametrizations.weight_norm(nn.Conv1d(6, 6, 4, padding=1), dim=2)
        self.whole = nn.utils.parametrizations.weight_norm(nn.Linear(6, 5), dim=None)
        self.up = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(6, 4, 4, 2))

    def forward(self, x):
        y = F.leaky_relu(self.second(F.leaky_relu(self.first(x), 0.1)), 0.1)
        return self.whole(y.transpose(1, 2)), torch.tanh(self.up(y))


def normed():
    return Case('signal_weight_norm', Normed(), (torch.randn(2, 4, 10),), more={'seed1': (torch.randn(2, 4, 10),)})


class Mixing(nn.Module):
    "What FNet has in place of attention."

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.norm(x + torch.fft.fftn(x, dim=(1, 2)).real)
        return self.linear(y)


def mixing():
    dims = {0: torch.export.Dim('batch', min=1, max=8), 1: torch.export.Dim('length', min=1, max=64)}
    return Case('signal_fnet', Mixing(), (torch.randn(2, 6, 8),), dynamic=(dims,), more={'1x1': (torch.randn(1, 1, 8),), '3x17': (torch.randn(3, 17, 8),)}, onnx=False)


CASES = (transforms, spectrogram, rotations, normed, mixing)
