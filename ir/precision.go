package ir

import "math"

// RoundTF32 is a float32 with 10 fraction bits: the nearest one, ties away from zero.
func RoundTF32(x float32) float32 {
	if x != x {
		return x
	}
	return math.Float32frombits((math.Float32bits(x) + 0x1000) &^ 0x1fff)
}
