"""Writes arith.ptx, one kernel per operation, and arith.txt, operands and results of each.

The results come from exact rational arithmetic and one rounding, and where the PTX manual defines
a case (NaN to integer, out of range), from there. python3 arith.py, in this folder.
"""

import random
from fractions import Fraction
from math import isqrt

# Floating-point formats: bits, significand bits with the hidden one, largest exponent.
FORMATS = {"f16": (16, 11, 15), "bf16": (16, 8, 127), "f32": (32, 24, 127), "f64": (64, 53, 1023)}
NAN, INF, ZERO = "nan", "inf", "zero"


def decode(bits, fmt):
    """(sign, kind or Fraction magnitude)"""
    width, p, emax = FORMATS[fmt]
    sign, e, m = bits >> (width - 1), bits >> (p - 1) & (2 * emax + 1), bits & ((1 << (p - 1)) - 1)
    if e == 2 * emax + 1:
        return sign, NAN if m else INF
    if e == 0:
        return sign, Fraction(m) * Fraction(2) ** (2 - p - emax) if m else ZERO
    return sign, Fraction(m + (1 << (p - 1))) * Fraction(2) ** (e - emax - p + 1)


def integral(q, sign, mode):
    """A nonnegative Fraction rounded to an integer; sign matters for directed modes."""
    n, rest = divmod(q, 1)
    up = {
        "rn": rest > Fraction(1, 2) or rest == Fraction(1, 2) and n % 2 == 1,
        "rz": False,
        "rm": rest > 0 and sign == 1,
        "rp": rest > 0 and sign == 0,
    }[mode]
    return n + up


def encode(sign, q, fmt, mode="rn"):
    """The bits of a value of that sign and magnitude, rounded once."""
    width, p, emax = FORMATS[fmt]
    top = sign << (width - 1)
    if q == NAN:
        return NAN
    if q == ZERO or q == 0:
        return top
    infinity = (2 * emax + 1) << (p - 1)
    if q == INF:
        return top | infinity
    e = q.numerator.bit_length() - q.denominator.bit_length()
    if Fraction(2) ** e > q:
        e -= 1
    e = max(e, 1 - emax)
    m = integral(q / Fraction(2) ** (e - p + 1), sign, mode)
    bits = m if m < 1 << (p - 1) else m + ((e + emax - 1) << (p - 1))
    if bits >= infinity:
        away = mode == "rn" or mode == "rm" and sign == 1 or mode == "rp" and sign == 0
        bits = infinity if away else infinity - 1
    return top | bits


def fma(a, b, c, fmt, mode="rn"):
    (sa, a), (sb, b), (sc, c) = (decode(x, fmt) for x in (a, b, c))
    sp = sa ^ sb
    if NAN in (a, b, c) or {a, b} == {INF, ZERO}:
        return NAN
    if INF in (a, b):
        return NAN if c == INF and sc != sp else encode(sp, INF, fmt)
    if c == INF:
        return encode(sc, INF, fmt)
    if ZERO in (a, b):
        p = Fraction(0)
    else:
        p = a * b
    c = Fraction(0) if c == ZERO else c
    total = (-p if sp else p) + (-c if sc else c)
    if total == 0:
        both = p == 0 and c == 0 and sp == sc
        return encode(sp if both else int(mode == "rm"), ZERO, fmt)
    return encode(int(total < 0), abs(total), fmt, mode)


def div(a, b, fmt):
    (sa, a), (sb, b) = decode(a, fmt), decode(b, fmt)
    s = sa ^ sb
    if NAN in (a, b) or a == b and a in (INF, ZERO):
        return NAN
    if a == INF or b == ZERO:
        return encode(s, INF, fmt)
    if b == INF or a == ZERO:
        return encode(s, ZERO, fmt)
    return encode(s, a / b, fmt)


def sqrt(a, fmt):
    s, a = decode(a, fmt)
    if a == ZERO:
        return encode(s, ZERO, fmt)
    if a == NAN or s:
        return NAN
    if a == INF:
        return encode(0, INF, fmt)
    shift = 400 if fmt == "f32" else 2400  # so many bits behind the point, and a sticky one
    whole = a * 4**shift
    n = whole.numerator // whole.denominator
    r = isqrt(n)
    return encode(0, Fraction(2 * r + (r * r != whole), 2 << shift), fmt)


def to_int(a, fmt, signed, width, mode):
    s, q = decode(a, fmt)
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    mask = (1 << width) - 1
    if q == NAN:
        return 0 if fmt != "f64" and width != 64 else 1 << width - 1
    if q == INF:
        return (low if s else high) & mask
    n = 0 if q == ZERO else integral(q, s, mode)
    return min(max(-n if s else n, low), high) & mask


def from_int(a, signed, width, fmt):
    if signed and a >> (width - 1):
        return encode(1, Fraction((1 << width) - a), fmt)
    return encode(0, Fraction(a) if a else ZERO, fmt)


def convert(a, src, dst, mode="rn"):
    return encode(*decode(a, src), dst, mode)


def to_integral(a, fmt, mode):
    s, q = decode(a, fmt)
    if isinstance(q, str):
        return encode(s, q, fmt)
    return encode(s, Fraction(integral(q, s, mode)) or ZERO, fmt)


def signed(x, width):
    return x - (1 << width) if x >> (width - 1) else x


def idiv(a, b):
    x, y = signed(a, 32), signed(b, 32)
    return (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)) & 0xFFFFFFFF


# name: operand types, result type, instruction on %d (result), %a, %b, %c, and the meaning
OPS = {
    "fma_f32": ("f32 f32 f32", "f32", "fma.rn.f32 %d, %a, %b, %c;", lambda a, b, c: fma(a, b, c, "f32")),
    "fma_rz_f32": ("f32 f32 f32", "f32", "fma.rz.f32 %d, %a, %b, %c;", lambda a, b, c: fma(a, b, c, "f32", "rz")),
    "fma_rm_f32": ("f32 f32 f32", "f32", "fma.rm.f32 %d, %a, %b, %c;", lambda a, b, c: fma(a, b, c, "f32", "rm")),
    "fma_rp_f32": ("f32 f32 f32", "f32", "fma.rp.f32 %d, %a, %b, %c;", lambda a, b, c: fma(a, b, c, "f32", "rp")),
    "fma_f64": ("f64 f64 f64", "f64", "fma.rn.f64 %d, %a, %b, %c;", lambda a, b, c: fma(a, b, c, "f64")),
    "add_f32": ("f32 f32", "f32", "add.rn.f32 %d, %a, %b;", lambda a, b: fma(a, 0x3F800000, b, "f32")),
    "mul_f32": ("f32 f32", "f32", "mul.rn.f32 %d, %a, %b;", lambda a, b: fma(a, b, (a ^ b) & 1 << 31, "f32")),
    "div_f32": ("f32 f32", "f32", "div.rn.f32 %d, %a, %b;", lambda a, b: div(a, b, "f32")),
    "div_f64": ("f64 f64", "f64", "div.rn.f64 %d, %a, %b;", lambda a, b: div(a, b, "f64")),
    "rcp_f32": ("f32", "f32", "rcp.rn.f32 %d, %a;", lambda a: div(0x3F800000, a, "f32")),
    "sqrt_f32": ("f32", "f32", "sqrt.rn.f32 %d, %a;", lambda a: sqrt(a, "f32")),
    "sqrt_f64": ("f64", "f64", "sqrt.rn.f64 %d, %a;", lambda a: sqrt(a, "f64")),
    "cvt_f16_f32": ("f32", "f16", "cvt.rn.f16.f32 %d, %a;", lambda a: convert(a, "f32", "f16")),
    "cvt_bf16_f32": ("f32", "bf16", "cvt.rn.bf16.f32 %d, %a;", lambda a: convert(a, "f32", "bf16")),
    "cvt_f32_f16": ("f16", "f32", "cvt.f32.f16 %d, %a;", lambda a: convert(a, "f16", "f32")),
    "cvt_f32_f64": ("f64", "f32", "cvt.rn.f32.f64 %d, %a;", lambda a: convert(a, "f64", "f32")),
    "cvt_f64_f32": ("f32", "f64", "cvt.f64.f32 %d, %a;", lambda a: convert(a, "f32", "f64")),
    "cvt_rni_f32": ("f32", "f32", "cvt.rni.f32.f32 %d, %a;", lambda a: to_integral(a, "f32", "rn")),
    "cvt_rmi_f32": ("f32", "f32", "cvt.rmi.f32.f32 %d, %a;", lambda a: to_integral(a, "f32", "rm")),
    "cvt_rzi_s32_f32": ("f32", "s32", "cvt.rzi.s32.f32 %d, %a;", lambda a: to_int(a, "f32", True, 32, "rz")),
    "cvt_rni_s32_f32": ("f32", "s32", "cvt.rni.s32.f32 %d, %a;", lambda a: to_int(a, "f32", True, 32, "rn")),
    "cvt_rzi_u32_f32": ("f32", "u32", "cvt.rzi.u32.f32 %d, %a;", lambda a: to_int(a, "f32", False, 32, "rz")),
    "cvt_rzi_s64_f32": ("f32", "s64", "cvt.rzi.s64.f32 %d, %a;", lambda a: to_int(a, "f32", True, 64, "rz")),
    "cvt_rzi_s32_f64": ("f64", "s32", "cvt.rzi.s32.f64 %d, %a;", lambda a: to_int(a, "f64", True, 32, "rz")),
    "cvt_rzi_s64_f64": ("f64", "s64", "cvt.rzi.s64.f64 %d, %a;", lambda a: to_int(a, "f64", True, 64, "rz")),
    "cvt_f32_s32": ("s32", "f32", "cvt.rn.f32.s32 %d, %a;", lambda a: from_int(a, True, 32, "f32")),
    "cvt_f32_u64": ("u64", "f32", "cvt.rn.f32.u64 %d, %a;", lambda a: from_int(a, False, 64, "f32")),
    "cvt_f64_s64": ("s64", "f64", "cvt.rn.f64.s64 %d, %a;", lambda a: from_int(a, True, 64, "f64")),
    "div_s32": ("s32 s32", "s32", "div.s32 %d, %a, %b;", idiv),
    "rem_s32": ("s32 s32", "s32", "rem.s32 %d, %a, %b;", lambda a, b: (a - idiv(a, b) * b) & 0xFFFFFFFF),
    "mulhi_s32": ("s32 s32", "s32", "mul.hi.s32 %d, %a, %b;", lambda a, b: (signed(a, 32) * signed(b, 32) >> 32) & 0xFFFFFFFF),
    "shl_b32": ("u32 u32", "u32", "shl.b32 %d, %a, %b;", lambda a, b: a << min(b, 32) & 0xFFFFFFFF),
    "shr_s32": ("s32 u32", "s32", "shr.s32 %d, %a, %b;", lambda a, b: signed(a, 32) >> min(b, 31) & 0xFFFFFFFF),
}

# register type, width
REGISTERS = {
    "f16": ("b16", 16), "bf16": ("b16", 16), "f32": ("f32", 32), "f64": ("f64", 64),
    "s32": ("b32", 32), "u32": ("b32", 32), "s64": ("b64", 64), "u64": ("b64", 64),
}

HEAD = """.visible .entry {name}(
	.param .u64 a,
	.param .u64 b,
	.param .u64 c,
	.param .u64 out,
	.param .u32 n
)
{{
	.reg .pred %p<2>;
	.reg .b32 %i<5>;
	.reg .b64 %at<4>, %offset;
	.reg .{at} %a;
	.reg .{bt} %b;
	.reg .{ct} %c;
	.reg .{dt} %d;

	mov.u32 %i1, %ctaid.x;
	mov.u32 %i2, %ntid.x;
	mov.u32 %i3, %tid.x;
	mad.lo.s32 %i1, %i1, %i2, %i3;
	ld.param.u32 %i4, [n];
	setp.ge.s32 %p1, %i1, %i4;
	@%p1 bra DONE;
	mul.wide.s32 %offset, %i1, 8;
"""


def kernel(name, operands, result, instruction):
    kinds = operands + ["u32"] * (3 - len(operands))
    types = [REGISTERS[k][0] for k in kinds]
    lines = [HEAD.format(name=name, at=types[0], bt=types[1], ct=types[2], dt=REGISTERS[result][0])]
    for letter, kind in zip("abc", operands):
        lines.append(f"	ld.param.u64 %at1, [{letter}];\n	cvta.to.global.u64 %at1, %at1;\n	add.s64 %at1, %at1, %offset;\n")
        lines.append(f"	ld.global.{REGISTERS[kind][0]} %{letter}, [%at1];\n")
    lines.append(f"	{instruction}\n")
    lines.append("	ld.param.u64 %at2, [out];\n	cvta.to.global.u64 %at2, %at2;\n	add.s64 %at2, %at2, %offset;\n")
    lines.append(f"	st.global.{REGISTERS[result][0]} [%at2], %d;\nDONE:\n	ret;\n}}\n")
    return "".join(lines)


def specials(kind):
    if kind in FORMATS:
        width, p, emax = FORMATS[kind]
        one, inf, sign = emax << (p - 1), (2 * emax + 1) << (p - 1), 1 << (width - 1)
        values = [0, 1, (1 << (p - 1)) - 1, 1 << (p - 1), one, one + 1, one - 1, one + (1 << (p - 1)), inf - 1, inf]
        return values + [v | sign for v in values] + [inf | 1 << (p - 2)]
    width = REGISTERS[kind][1]
    return [0, 1, 2, 31, 32, 33, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, (1 << width) - 2]


def operand(kind, rnd):
    """A random operand: mostly of ordinary size, so that results are too."""
    if kind in FORMATS and rnd.random() < 0.7:
        width, p, emax = FORMATS[kind]
        reach = min(emax - 1, rnd.choice([1, 12, 40]))
        return rnd.getrandbits(1) << (width - 1) | (emax + rnd.randint(-reach, reach)) << (p - 1) | rnd.getrandbits(p - 1)
    return rnd.getrandbits(REGISTERS[kind][1]) >> (0 if kind in FORMATS else rnd.randrange(REGISTERS[kind][1]))


def cases(operands, rnd):
    special = [specials(k) for k in operands]
    for i, v in enumerate(special[0]):
        yield [v] + [rnd.choice(s) for s in special[1:]]
        yield [v] + [operand(k, rnd) for k in operands[1:]]
    for v in special[-1]:
        yield [operand(k, rnd) for k in operands[:-1]] + [v]
    for _ in range(90):
        yield [operand(k, rnd) for k in operands]
    # Halfway between two results of a conversion.
    if len(operands) == 1 and operands[0] in ("f32", "f64"):
        width, p, emax = FORMATS[operands[0]]
        for e in (-149, -24, -15, -14, -1, 0, 1, 15, 22, 30, 31):
            for tail in (1 << (p - 2), 0b11 << (p - 3), 1 << 12, 0b11 << 12, 1 << 15, 0b11 << 15, 0):
                if e + emax > 0:
                    yield [rnd.getrandbits(1) << (width - 1) | (emax + e) << (p - 1) | tail]


def main():
    rnd = random.Random(1)
    ptx = ["// Generated by arith.py.\n.version 7.0\n.target sm_80\n.address_size 64\n"]
    rows = ["# Generated by arith.py: operation, operands, result; hexadecimal bits.\n"]
    for name, (operands, result, instruction, meaning) in OPS.items():
        operands = operands.split()
        ptx.append(kernel(name, operands, result, instruction))
        for values in cases(operands, rnd):
            if name in ("div_s32", "rem_s32") and (values[1] == 0 or values == [1 << 31, (1 << 32) - 1]):
                continue
            bits = meaning(*values)
            rows.append(" ".join([name, *(f"{v:x}" for v in values), bits if bits == NAN else f"{bits:x}"]) + "\n")
    with open("arith.ptx", "w") as f:
        f.write("\n".join(ptx))
    with open("arith.txt", "w") as f:
        f.writelines(rows)


main()
