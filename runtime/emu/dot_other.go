//go:build !amd64

package emu

func alignFunction() func(*product) { return alignPortable }

func splitFunction() func(f factorFormat, raw []uint32, significand, exponent []int32, shift uint) bool {
	return splitPortable
}
