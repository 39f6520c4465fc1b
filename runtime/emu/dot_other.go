//go:build !amd64

package emu

func alignFunction() func(*product) { return alignPortable }
