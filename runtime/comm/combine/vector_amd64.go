package combine

import "golang.org/x/sys/cpu"

//go:noescape
func vectorAddTwo(acc, a, b *float32, n int)

//go:noescape
func vectorAddBF16(acc *float32, a *uint16, n int)

//go:noescape
func vectorWidenBF16(out *float32, in *uint16, n int)

//go:noescape
func vectorRoundBF16(out *uint16, in *float32, n int)

//go:noescape
func vectorAddF16(acc *float32, a *uint16, n int)

//go:noescape
func vectorWidenF16(out *float32, in *uint16, n int)

//go:noescape
func vectorRoundF16(out *uint16, in *float32, n int)

// vectors gives the twins where the processor has what they need: every one with AVX2 has F16C.
func vectors() twins {
	if !cpu.X86.HasAVX2 {
		return twins{}
	}
	return twins{vectorAddTwo, [2]halfTwins{
		{vectorAddBF16, vectorWidenBF16, vectorRoundBF16},
		{vectorAddF16, vectorWidenF16, vectorRoundF16},
	}}
}
