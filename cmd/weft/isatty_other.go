//go:build !unix

package main

func isatty(uintptr) bool { return true }
