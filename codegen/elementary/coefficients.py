#!/usr/bin/env python3
"""Derives the constants of the elementary functions and writes coefficients.go.

    python3 coefficients.py > coefficients.go        (needs mpmath; gmpy2 makes it faster; takes a few minutes)

Polynomials are minimax fits by Lawson's iteration on a Chebyshev grid in 240-bit arithmetic. Coefficients
are rounded one at a time, lowest power first, and the higher ones are fitted again after each rounding, so that the error
printed beside each polynomial is that of the rounded coefficients in exact arithmetic.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve

mp.prec = 240
PI = mp.pi


def rounded(value, bits):
    """value rounded to nearest with the given number of mantissa bits."""
    value = mpf(value)
    if value == 0:
        return value
    m, e = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), int(e) - bits)


def literal(value):
    """A Go literal of the value, which has at most 53 bits: hexadecimal, so exact."""
    return float(value).hex().replace("0x1.0000000000000p", "0x1p")


def trimmed(value):
    text = literal(value)
    if "." in text:
        head, exponent = text.split("p")
        head = head.rstrip("0").rstrip(".")
        text = head + "p" + exponent
    return text


def minimax(powers, weight, target, first, emphasis, iterations):
    """Coefficients c of sum c[k] u^(first+k) ~ target, minimising the largest weight * |error| over the grid.

    powers[i][k] is the k-th power of the i-th grid point. Lawson's iteration: least squares whose emphasis on each point
    is multiplied by the error there. Returns the coefficients and the new emphasis.
    """
    n = len(powers[0]) - first
    rows = [[w * p for p in row[first:]] for row, w in zip(powers, weight)]
    goal = [w * t for w, t in zip(weight, target)]
    best = None
    for _ in range(iterations):
        a = matrix(n, n)
        b = matrix(n, 1)
        scaled = [[e * v for v in row] for e, row in zip(emphasis, rows)]
        for j in range(n):
            for k in range(j, n):
                a[j, k] = a[k, j] = sum((s[j] * r[k] for s, r in zip(scaled, rows)), mpf(0))
            b[j] = sum((s[j] * g for s, g in zip(scaled, goal)), mpf(0))
        c = list(lu_solve(a, b))
        errors = [abs(sum((x * v for x, v in zip(c, row)), mpf(0)) - g) for row, g in zip(rows, goal)]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, c, emphasis)
        mean = sum((w * e for w, e in zip(emphasis, errors)), mpf(0))
        if mean == 0 or worst < mean * mpf("1.03"):
            break
        emphasis = [w * e / mean + mpf(2) ** -60 for w, e in zip(emphasis, errors)]
    return best[1], best[2]


def horner(c, u):
    result = mpf(0)
    for k in reversed(c):
        result = result * u + k
    return result


def fit(name, doc, terms, lo, hi, target, weight, bits, refits=6):
    """Prints a table of coefficients, lowest power first.

    target(u) is approximated by sum c[k] u^k on [lo, hi]; |error| * weight(u) is minimised.
    """
    count = 8 * terms + 40
    lo, hi = mpf(lo), mpf(hi)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(PI * i / (count - 1)) for i in range(count)]
    values = [mpf(target(u)) for u in grid]
    weights = [mpf(weight(u)) for u in grid]
    powers = [[u ** k for k in range(terms)] for u in grid]
    emphasis = [mpf(1) / count] * count
    fixed = []
    while len(fixed) < terms:
        left = [v - horner(fixed, u) for u, v in zip(grid, values)]
        c, emphasis = minimax(powers, weights, left, len(fixed), emphasis, 12 if fixed else 40)
        take = 1 if len(fixed) < refits else len(c)
        fixed += [rounded(x, bits) for x in c[:take]]
    error = max(abs((horner(fixed, u) - v) * x) for u, v, x in zip(grid, values, weights))
    print(f"// {name}: {doc}; error below 2^{float(mp.log(error, 2)):.1f}.")
    print(f"var {name} = []float64{{")
    for c in fixed:
        print(f"\t{trimmed(c)},")
    print("}\n")
    print(name, f"2^{float(mp.log(error, 2)):.2f}", file=sys.stderr, flush=True)


def safe(f, at_zero):
    """f with its limit at 0."""
    return lambda u: mpf(at_zero) if u == 0 else f(u)


def both(name, doc, terms32, terms64, lo, hi, target, weight, refits=6):
    fit(name + "F32", doc, terms32, lo, hi, target, weight, 24, refits)
    fit(name + "F64", doc, terms64, lo, hi, target, weight, 53, refits)


def words(name, doc, value, width, count, zeros):
    """Prints the leading bits of a fraction in words, after some words of zeros."""
    print(f"// {name}: {doc}.")
    print(f"var {name} = []int64{{")
    total = int(mp.floor(value * mpf(2) ** (width * (count - zeros))))
    for i in range(count):
        word = (total >> (width * (count - 1 - i))) & ((1 << width) - 1)
        if word >= 1 << (width - 1):
            word -= 1 << width
        print(f"\t{word},")
    print("}\n")


def exponentials():
    half = mp.log(2) / 2 * mpf("1.002")
    both("exp", "(exp(r)-1-r)/r^2 for |r| <= ln(2)/2, relative to exp", 5, 10, -half, half,
         lambda r: mpf(1) / 2 + r / 6 + r * r / 24 if abs(r) < mpf(2) ** -60 else (mp.expm1(r) - r) / r ** 2,
         lambda r: r ** 2 / mp.exp(r))
    both("expm1", "(exp(r)-1-r)/r^2 for |r| <= ln(2)/2, relative to exp(r)-1", 5, 11, -half, half,
         lambda r: mpf(1) / 2 + r / 6 + r * r / 24 if abs(r) < mpf(2) ** -60 else (mp.expm1(r) - r) / r ** 2,
         safe(lambda r: abs(r ** 2 / mp.expm1(r)), 0))
    both("exp2", "(2^r-1)/r for |r| <= 1/2, relative to 2^r", 6, 12, "-0.5", "0.5",
         safe(lambda r: mp.expm1(r * mp.log(2)) / r, mp.log(2)), lambda r: abs(r) / 2 ** r)


def logarithms():
    third = mpf(1) / 3
    fit("logF32", "(log(1+f)-f)/f^2 for -1/3 <= f <= 1/3, relative to log(1+f)", 9, -third, third,
        safe(lambda f: (mp.log1p(f) - f) / f ** 2, "-0.5"), safe(lambda f: abs(f ** 2 / mp.log1p(f)), 0), 24)
    top = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
    fit("logF64", "(2*atanh(s)-2*s)/(s*z) with z = s^2 for s <= (sqrt(2)-1)/(sqrt(2)+1), relative to 2*atanh(s)", 7, 0, top,
        safe(lambda z: (2 * mp.atanh(mp.sqrt(z)) - 2 * mp.sqrt(z)) / mp.sqrt(z) / z, mpf(2) / 3),
        safe(lambda z: z * mp.sqrt(z) / (2 * mp.atanh(mp.sqrt(z))), 0), 53)


def hyperbolic():
    both("tanh", "(tanh(x)-x)/x^3 in x^2 for |x| <= 0.625, relative to tanh", 5, 11, 0, mpf("0.625") ** 2,
         safe(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 3),
         lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) if z else 0)


def error_functions():
    small = mpf("0.84375")
    fit("erfF32", "erf(x)/x - 1 in x^2 for |x| <= 0.84375, relative to erf", 6, 0, small ** 2,
        safe(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(PI) - 1),
        safe(lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), mp.sqrt(PI) / 2), 24)
    fit("erfTailF32", "log2(1-erf(x)) for 0.84375 <= x <= 4, error of erf relative to erf", 7, small, 4,
        lambda x: mp.log(mp.erfc(x), 2), lambda x: mp.erfc(x) / mp.erf(x) * mp.log(2), 24)


    fit("erfF64", "erf(x)/x - 1 in x^2 for |x| <= 0.84375, relative to erf", 12, 0, small ** 2,
        safe(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(PI) - 1),
        safe(lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), mp.sqrt(PI) / 2), 53)

    def scaled(k):
        def f(t):
            x = k * (1 + t) / (1 - t)
            return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
        return f
    for suffix, terms, k, top, bits in ("F32", 12, mpf(2), mpf("10.2"), 24), ("F64", 25, mpf(4), mpf(28), 53):
        f = scaled(k)
        fit("erfc" + suffix, f"(1+2x)*exp(x^2)*erfc(x) in t = (x-{int(k)})/(x+{int(k)}) for 0.4 <= x <= {top}, relative", terms,
            (mpf("0.4") - k) / (mpf("0.4") + k), (top - k) / (top + k), f, lambda t, f=f: 1 / f(t), bits)


def trigonometric():
    quarter = (PI / 4 * mpf("1.0001")) ** 2
    both("sin", "(sin(x)-x)/x^3 in x^2 for |x| <= pi/4, relative to sin", 3, 6, 0, quarter,
         safe(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 6),
         lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) if z else 0)
    both("cos", "(cos(x)-1+x^2/2)/x^4 in x^2 for |x| <= pi/4, relative to cos", 3, 6, 0, quarter,
         safe(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2, mpf(1) / 24),
         lambda z: z ** 2 / mp.cos(mp.sqrt(z)))
    words("twoOverPi32", "2/pi in 32-bit words after one word of zeros", 2 / PI, 32, 8, 1)
    words("twoOverPi64", "2/pi in 64-bit words after one word of zeros", 2 / PI, 64, 20, 1)


def main():
    mp.prec = 1500
    print("// Code generated by coefficients.py; DO NOT EDIT.\n")
    print("package elementary\n")
    mp.prec = 240
    exponentials()
    logarithms()
    hyperbolic()
    error_functions()
    mp.prec = 1500
    trigonometric_words = trigonometric
    mp.prec = 1500
    trigonometric_words()


if __name__ == "__main__":
    main()
