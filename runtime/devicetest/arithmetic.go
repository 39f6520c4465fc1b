package devicetest

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is one line of testdata/arith.txt.
type row struct {
	operands [3]uint64
	result   uint64
	nan      bool // any NaN will do
}

// arithmetic reads testdata/arith.txt: the operations in order, and the rows of each.
func (b *bench) arithmetic() (names []string, rows map[string][]row) {
	b.Helper()
	text, err := testdata.ReadFile("testdata/arith.txt")
	b.check("read", err)
	rows = map[string][]row{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, last := fields[0], len(fields)-1
		var r row
		for i, f := range fields[1:last] {
			r.operands[i], err = strconv.ParseUint(f, 16, 64)
			b.check("arith.txt", err)
		}
		if r.nan = fields[last] == "nan"; !r.nan {
			r.result, err = strconv.ParseUint(fields[last], 16, 64)
			b.check("arith.txt", err)
		}
		if rows[name] == nil {
			names = append(names, name)
		}
		rows[name] = append(rows[name], r)
	}
	return names, rows
}

// isNaN tells for the bits of an operation's result, whose name says the type.
func isNaN(operation string, bits uint64) bool {
	switch {
	case strings.HasPrefix(operation, "cvt_f16_"):
		return bits&0x7fff > 0x7c00
	case strings.HasPrefix(operation, "cvt_bf16_"):
		return bits&0x7fff > 0x7f80
	case strings.HasPrefix(operation, "cvt_f64_"), !strings.HasPrefix(operation, "cvt_") && strings.HasSuffix(operation, "_f64"):
		return math.IsNaN(math.Float64frombits(bits))
	}
	return bits&0x7fffffff > 0x7f800000
}

// testArithmetic compares arithmetic and conversions with exactly rounded results, bit for bit.
func testArithmetic(b *bench) {
	b.module = b.load("arith.ptx")
	names, rows := b.arithmetic()
	if len(names) < 30 {
		b.Fatalf("arith.txt has %d operations", len(names))
	}
	for _, name := range names {
		list := rows[name]
		n := len(list)
		column := func(i int) []byte {
			return words(counted(n, func(r int) uint64 { return list[r].operands[i] }))
		}
		result := b.put(make([]byte, 8*n))
		b.launch(0, name, (n+63)/64, 64, 0,
			in(b.put(column(0)), 8*n), in(b.put(column(1)), 8*n), in(b.put(column(2)), 8*n), inOut(result, 8*n), i32(n))
		bad := 0
		for i, value := range slices.Collect(slices.Chunk(b.get(result, 8*n), 8)) {
			got, r := binary.LittleEndian.Uint64(value), list[i]
			if r.nan && isNaN(name, got) || !r.nan && got == r.result {
				continue
			}
			if bad++; bad <= 3 {
				b.Errorf("%s(%#x) = %#x, want %#x (any NaN: %t)", name, r.operands, got, r.result, r.nan)
			}
		}
		if bad > 3 {
			b.Errorf("%s: %d of %d results differ", name, bad, n)
		}
	}
}
