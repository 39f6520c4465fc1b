package weights

import (
	"encoding/binary"
	"testing"

	"weft/ir"
)

// TestRandomBF16 rounds every value that random weights have to bfloat16 once.
func TestRandomBF16(t *testing.T) {
	const scale = 0.02 / 37837.22723720648
	one := ir.NewTensor(ir.BF16, 1)
	for sum := -2 * 0xffff; sum <= 2*0xffff; sum++ {
		v := float64(sum) * scale
		one.SetFloat(0, v)
		if got := roundBF16(float32(v)); got != binary.LittleEndian.Uint16(one.Data) {
			t.Fatalf("%v gives %#x, not %#x", v, got, one.Data)
		}
	}
}
