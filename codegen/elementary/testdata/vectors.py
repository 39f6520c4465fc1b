#!/usr/bin/env python3
"""Writes float64.txt, reference values of the elementary functions in float64:

    python3 testdata/vectors.py > testdata/float64.txt        (needs mpmath)

A line is: name, argument(s), the result rounded to nearest, and what the exact result has above it, in units of its last
place. Floats are hexadecimal.
"""

import random
from mpmath import mp, mpf

mp.prec = 300
random.seed(1)


def erf_inv(x):
    if abs(x) < mpf("0.9"):
        return mp.erfinv(x)
    w = -mp.log1p(-x * x)
    y = mp.sqrt(w - mp.log(mp.sqrt(mp.pi * w)))
    for _ in range(12):
        y += (mp.erfc(y) - (1 - abs(x))) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return mp.sign(x) * y


def wide(lo, hi, sign=True):
    """A number with an exponent from lo to hi."""
    x = mp.ldexp(1 + random.random(), random.randint(lo, hi))
    return float(-x if sign and random.random() < 0.5 else x)


def uniform(lo, hi):
    return random.uniform(lo, hi)


def mixed(lo, hi, small=-40):
    return lambda: uniform(lo, hi) if random.random() < 0.6 else max(lo, min(hi, wide(small, 8)))


def positive(lo=-1070, hi=1022):
    return lambda: wide(-6, 6, False) if random.random() < 0.5 else uniform(0.5, 2) if random.random() < 0.5 else wide(lo, hi, False)


def angle():
    return uniform(-8, 8) if random.random() < 0.5 else wide(-40, 1022)


FUNCTIONS = {
    "acos": (mp.acos, mixed(-1, 1)), "acosh": (mp.acosh, lambda: 1 + wide(-30, 60, False)),
    "asin": (mp.asin, mixed(-1, 1)), "asinh": (mp.asinh, lambda: wide(-40, 1000) if random.random() < 0.3 else uniform(-4, 4)),
    "atan": (mp.atan, lambda: wide(-40, 60) if random.random() < 0.5 else uniform(-3, 3)),
    "atanh": (mp.atanh, lambda: uniform(-0.9999, 0.9999)), "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), lambda: wide(-1070, 1020)),
    "cosh": (mp.cosh, mixed(-710, 710)), "cosine": (mp.cos, angle), "digamma": (mp.digamma, positive(-300, 300)),
    "erf": (mp.erf, mixed(-6, 6)), "erf_inv": (erf_inv, lambda: uniform(-1, 1) if random.random() < 0.7 else 1 - wide(-50, -2, False)),
    "erfc": (mp.erfc, mixed(-6, 26)), "exponential": (mp.exp, mixed(-745, 709)), "exponential_base2": (lambda x: mpf(2) ** x, mixed(-1074, 1023)),
    "exponential_minus_one": (mp.expm1, mixed(-40, 709)), "lgamma": (lambda x: mp.loggamma(x).real, positive(-300, 300)),
    "log": (mp.log, positive()), "log2": (lambda x: mp.log(x, 2), positive()),
    "log_plus_one": (mp.log1p, lambda: uniform(-0.999, 4) if random.random() < 0.5 else wide(-60, 1000, False)),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), mixed(-740, 40)), "rsqrt": (lambda x: 1 / mp.sqrt(x), positive()),
    "sine": (mp.sin, angle), "sinh": (mp.sinh, mixed(-710, 710)), "tan": (mp.tan, angle), "tanh": (mp.tanh, mixed(-22, 22)),
}

PAIRS = {
    "atan2": (mp.atan2, lambda: (wide(-20, 20), wide(-20, 20))),
    "power": (mp.power, lambda: (wide(-4, 6, False), uniform(-100, 100)) if random.random() < 0.7 else (uniform(0.5, 1.5), wide(0, 9))),
    "remainder": (lambda x, y: mp.sign(x) * mp.fmod(abs(x), abs(y)), lambda: (wide(-100, 100), wide(-100, 20))),
}


def line(name, arguments, exact):
    near = float(exact)
    ulp = max(mp.ldexp(1, int(mp.frexp(near)[1]) - 53), mp.ldexp(1, -1074)) if near else mp.ldexp(1, -1074)
    rest = (exact - mpf(near)) / ulp
    print(name, *(a.hex() for a in arguments), near.hex(), f"{float(rest):.3f}")


for name, (function, sample) in sorted(FUNCTIONS.items()):
    for _ in range(100):
        x = float(sample())
        line(name, [x], function(mpf(x)))
for name, (function, sample) in sorted(PAIRS.items()):
    for _ in range(100):
        x, y = sample()
        line(name, [x, y], function(mpf(x), mpf(y)))
