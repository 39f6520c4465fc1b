package devicetest_test

import (
	"testing"

	"weft/runtime"
	"weft/runtime/devicetest"
	"weft/runtime/emu"
)

func open(*testing.T) runtime.Device { return emu.New(emu.Options{}) }

// marking is an emulator with a clock.
type marking struct {
	inner
	*devicetest.Marks
}

type inner struct{ *emu.Device }

func TestMarking(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) runtime.Device {
		d := emu.New(emu.Options{})
		m, err := devicetest.NewMarks(d)
		if err != nil {
			t.Fatal(err)
		}
		return marking{inner{d}, m}
	})
}

func TestEmulator(t *testing.T) { devicetest.Run(t, open) }

func TestEmulatorFault(t *testing.T) { devicetest.RunFault(t, open) }
