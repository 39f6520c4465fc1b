package runtime

import "testing"

// properDevice is a device of which only the properties are asked for.
type properDevice struct {
	Device
	properties Properties
}

func (d properDevice) Properties() Properties { return d.properties }

func TestRunsCubin(t *testing.T) {
	tests := []struct {
		target       string
		major, minor int
		driver       int
		text, want   bool
	}{
		{"sm_80", 8, 0, 12040, true, true},
		{"sm_80", 8, 6, 12040, true, false}, // PTX is assembled for the very device
		{"sm_80", 8, 6, 12040, false, true},
		{"sm_80", 9, 0, 12040, false, false},
		{"sm_90a", 9, 0, 12040, true, true},
		{"sm_80", 8, 0, 0, true, false}, // the emulator
	}
	for _, test := range tests {
		s := &Session{target: test.target, device: properDevice{properties: Properties{ComputeMajor: test.major, ComputeMinor: test.minor, DriverVersion: test.driver}}}
		if got := s.runsCubin(test.text); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
