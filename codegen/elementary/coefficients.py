#!/usr/bin/env python3
"""Derives the constants of the elementary functions and writes coefficients.go.

    python3 coefficients.py | gofmt > coefficients.go      (needs mpmath; gmpy2 makes it faster; takes two minutes)

Polynomials are minimax fits by Lawson's iteration on a Chebyshev grid in 240-bit arithmetic. The lowest coefficients,
which matter most, are rounded one at a time, and the higher ones are fitted again after each rounding. The error printed
beside each polynomial is that of the rounded coefficients in exact arithmetic, on the grid.
"""

import sys
from mpmath import mp, mpf, matrix, lu_solve

mp.prec = 240
PI = +mp.pi


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
    with mp.workprec(width * count + 100):
        total = int(mp.floor(value() * mpf(2) ** (width * (count - zeros))))
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


    fit("log2F32", "(log2(1+f)/f-log2(e))/f for -1/3 <= f <= 1/3, relative to log2(1+f)", 9, -third, third,
        safe(lambda f: (mp.log1p(f) / f - 1) / f / mp.log(2), -1 / (2 * mp.log(2))),
        safe(lambda f: abs(f ** 2 / mp.log1p(f)) * mp.log(2), 0), 24)
    both("powLog", "(2*atanh(s)/s-2-2*z/3)/z^2 with z = s^2 for s <= (sqrt(2)-1)/(sqrt(2)+1), relative to 2*atanh(s)", 4, 8, 0, top,
         lambda z: mpf(2) / 5 + 2 * z / 7 if z < mpf(2) ** -60 else (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / z ** 2,
         safe(lambda z: z ** 2 * mp.sqrt(z) / (2 * mp.atanh(mp.sqrt(z))), 0))


def hyperbolic():
    both("sinh", "(sinh(x)-x)/x^3 in x^2 for |x| <= 1, relative to sinh", 4, 7, 0, 1,
         safe(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 6),
         lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)) if z else 0)
    both("atanh", "(atanh(x)-x)/x^3 in x^2 for |x| <= 1/2, relative to atanh", 6, 14, 0, "0.25",
         safe(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 3),
         lambda z: z * mp.sqrt(z) / mp.atanh(mp.sqrt(z)) if z else 0)
    both("tanh", "(tanh(x)-x)/x^3 in x^2 for |x| <= 0.625, relative to tanh", 5, 11, 0, mpf("0.625") ** 2,
         safe(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 3),
         lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) if z else 0)


def error_functions():
    small = mpf("0.84375")
    fit("erfF32", "erf(x)/x - 1 in x^2 for |x| <= 0.84375, relative to erf", 6, 0, small ** 2,
        safe(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(PI) - 1),
        safe(lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), mp.sqrt(PI) / 2), 24)
    fit("erfRootF32", "2*(1-sqrt(erfc(x)))/x - 1 for 0 <= x <= 3.95, error of erf relative to erf", 13, 0, mpf("3.95"),
        safe(lambda x: -2 * mp.expm1(mp.log(mp.erfc(x)) / 2) / x - 1, 2 / mp.sqrt(PI) - 1),
        safe(lambda x: mp.sqrt(mp.erfc(x)) * x / mp.erf(x), mp.sqrt(PI) / 2), 24, 13)

    fit("erfF64", "erf(x)/x - 1 in x^2 for |x| <= 0.84375, relative to erf", 12, 0, small ** 2,
        safe(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(PI) - 1),
        safe(lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), mp.sqrt(PI) / 2), 53)

    def scaled(k):
        def f(t):
            x = k * (1 + t) / (1 - t)
            return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
        return f
    for suffix, terms, k, top, bits in ("F32", 11, mpf(2), mpf("10.2"), 24), ("F64", 24, mpf(4), mpf(28), 53):
        f = scaled(k)
        fit("erfc" + suffix, f"(1+2x)*exp(x^2)*erfc(x) in t = (x-{int(k)})/(x+{int(k)}) for 0.74 <= x <= {top}, relative", terms,
            (mpf("0.74") - k) / (mpf("0.74") + k), (top - k) / (top + k), f, lambda t, f=f: 1 / f(t), bits)


def trigonometric():
    quarter = (PI / 4 * mpf("1.0001")) ** 2
    both("sin", "(sin(x)-x)/x^3 in x^2 for |x| <= pi/4, relative to sin", 3, 6, 0, quarter,
         safe(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 6),
         lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)) if z else 0)
    both("cos", "(cos(x)-1+x^2/2)/x^4 in x^2 for |x| <= pi/4, relative to cos", 3, 6, 0, quarter,
         safe(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2, mpf(1) / 24),
         lambda z: z ** 2 / mp.cos(mp.sqrt(z)))
    both("tan", "(tan(x)-x)/x^3 in x^2 for |x| <= pi/4, relative to tan", 7, 15, 0, quarter,
         safe(lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 3),
         lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)) if z else 0)
    both("atan", "(atan(x)-x)/x^3 in x^2 for |x| <= 1, relative to atan", 9, 21, 0, 1,
         safe(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(-1) / 3),
         lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)) if z else 0)
    both("asin", "(asin(x)-x)/x^3 in x^2 for |x| <= 1/2, relative to asin", 6, 13, 0, "0.25",
         safe(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 6),
         lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)) if z else 0)
    words("twoOverPi32", "2/pi in 32-bit words after one word of zeros", lambda: 2 / mp.pi, 32, 8, 1)
    words("twoOverPi64", "2/pi in 64-bit words after one word of zeros", lambda: 2 / mp.pi, 64, 20, 1)


def inverse_erf():
    def by_w(w):
        if w == 0:
            return mp.sqrt(PI) / 2
        x = mp.sqrt(-mp.expm1(-w))
        # Newton's method on erfc, whose relative accuracy does not suffer near x = 1.
        y = mp.erfinv(mpf(float(x))) if w < 20 else mp.sqrt(w - mp.log(mp.sqrt(PI * w)))
        goal = mp.exp(-w) / (1 + x)
        for _ in range(9):
            y += (mp.erfc(y) - goal) * mp.sqrt(PI) / 2 * mp.exp(y * y)
        return y / x

    def piece(name, text, terms, lo, hi, to_w, bits):
        f = lambda u: by_w(to_w(u))
        fit(name, f"erf_inv(x)/x in {text}, w = -log(1-x^2), relative", terms, lo, hi, f, lambda u: 1 / f(u), bits, terms)
    piece("erfInvCentralF32", "w-2.5 for w <= 5", 10, "-2.5", "2.5", lambda u: u + mpf("2.5"), 24)
    piece("erfInvTailF32", "sqrt(w)-3 for 5 <= w <= 17", 10, mp.sqrt(5) - 3, mp.sqrt(17) - 3, lambda u: (u + 3) ** 2, 24)
    first = mp.sqrt(PI) / 2
    fit("erfInvSmallF64", "(erf_inv(x)/x-sqrt(pi)/2)/x^2 in x^2 for |x| <= 1/2, relative to erf_inv", 14, 0, "0.25",
        lambda z: (by_w(-mp.log1p(-z)) - first) / z if z else mp.sqrt(PI) ** 3 / 24, lambda z: z / by_w(-mp.log1p(-z)), 53)
    piece("erfInvCentralF64", "w-3.25 for 0.28 <= w <= 6.25", 23, "-2.97", "3", lambda u: u + mpf("3.25"), 53)
    piece("erfInvMiddleF64", "sqrt(w)-3.25 for 6.25 <= w <= 16", 19, "-0.75", "0.75", lambda u: (u + mpf("3.25")) ** 2, 53)
    piece("erfInvTailF64", "sqrt(w)-5 for 16 <= w <= 37", 18, -1, mp.sqrt(37) - 5, lambda u: (u + 5) ** 2, 53)


def gamma_functions():
    half = mpf("0.5")
    fit("lgammaOne", "lgamma(1+u)/(u^2-u) for |u| <= 1/2, relative", 28, -half, half,
        safe(lambda u: mp.loggamma(1 + u).real / (u * u - u), mp.euler), safe(lambda u: abs((u * u - u) / mp.loggamma(1 + u).real), 1 / mp.euler), 53)
    fit("lgammaTwo", "lgamma(2+u)/(u^2+u) for |u| <= 1/2, relative", 18, -half, half,
        safe(lambda u: mp.loggamma(2 + u).real / (u * u + u), 1 - mp.euler),
        safe(lambda u: abs((u * u + u) / mp.loggamma(2 + u).real), 1 / (1 - mp.euler)), 53)
    root = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
    ratio = lambda u: mp.digamma(u + 2) / (u + 2 - root)
    fit("digammaRoot", "digamma(x)/(x-x0) in x-2 for 1 <= x <= 3, x0 its root, relative", 29, -1, 1, ratio, lambda u: 1 / ratio(u), 53)
    high = rounded(root, 53)
    print("// digammaRootHi + digammaRootLo is the positive root of digamma.")
    print(f"const (\n\tdigammaRootHi = {trimmed(high)}\n\tdigammaRootLo = {trimmed(rounded(root - high, 53))}\n)\n")
    stirling = "(lgamma(x)-(x-1/2)*log(x)+x-log(2*pi)/2)*x in 1/x^2 for x >= 7.5, error of lgamma relative to it"
    fit("stirling", stirling, 8, 0, (1 / mpf("7.5")) ** 2,
        safe(lambda u: (lambda x: (mp.loggamma(x).real - (x - half) * mp.log(x) + x - mp.log(2 * PI) / 2) * x)(1 / mp.sqrt(u)), mpf(1) / 12),
        safe(lambda u: mp.sqrt(u) / mp.loggamma(1 / mp.sqrt(u)).real, 0), 53)
    fit("digammaSeries", "(log(x)-1/(2x)-digamma(x))*x^2 in 1/x^2 for x >= 6, relative to digamma", 10, 0, mpf(1) / 36,
        safe(lambda u: (lambda x: (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) * x * x)(1 / mp.sqrt(u)), mpf(1) / 12),
        safe(lambda u: u / mp.digamma(1 / mp.sqrt(u)), 0), 53)


def main():
    print("// Code generated by coefficients.py; DO NOT EDIT.\n")
    print("package elementary\n")
    exponentials()
    logarithms()
    hyperbolic()
    error_functions()
    inverse_erf()
    trigonometric()
    gamma_functions()


if __name__ == "__main__":
    main()
