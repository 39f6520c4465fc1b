//go:build !amd64

package emu

// fmaLanes is fma.rn.f32.
func fmaLanes(d, a, b, c *lanes32) { fmaPortable(d, a, b, c) }
