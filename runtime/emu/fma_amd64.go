package emu

import "golang.org/x/sys/cpu"

var hasVectorFMA = cpu.X86.HasFMA && cpu.X86.HasAVX2

// fmaLanes is fma.rn.f32. It gives the same bits as fmaPortable.
func fmaLanes(d, a, b, c *lanes32) {
	if hasVectorFMA {
		fmaVector(d, a, b, c)
		return
	}
	fmaPortable(d, a, b, c)
}

// fmaVector needs AVX2 and FMA3.
//
//go:noescape
func fmaVector(d, a, b, c *lanes32)
