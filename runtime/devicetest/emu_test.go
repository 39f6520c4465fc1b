package devicetest_test

import (
	"testing"

	"weft/runtime"
	"weft/runtime/devicetest"
	"weft/runtime/emu"
)

func open(*testing.T) runtime.Device { return emu.New(emu.Options{}) }

func TestEmulator(t *testing.T) { devicetest.Run(t, open) }

func TestEmulatorFault(t *testing.T) { devicetest.RunFault(t, open) }
