//go:build !amd64

package emu

// vectors returns no vector twins: everything runs portably.
func vectors() vectorTwins { return vectorTwins{} }
