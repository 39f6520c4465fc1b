package cuda

import (
	"errors"
	"strings"
	"testing"
)

// Without a driver, or built without CUDA, every way in answers with a value that says so.
func TestUnavailable(t *testing.T) {
	n, err := Count()
	if err == nil {
		t.Skipf("this machine has %d CUDA devices", n)
	}
	var absent *UnavailableError
	if !errors.As(err, &absent) || absent.Reason == "" {
		t.Errorf("Count: %v (%T), want an UnavailableError with a reason", err, err)
	}
	t.Log(err)
	if d, err := Open(0); d != nil || !errors.As(err, &absent) {
		t.Errorf("Open = %v, %v, want an UnavailableError", d, err)
	}
	if _, err := DriverVersion(); !errors.As(err, &absent) || !strings.Contains(err.Error(), "CUDA is not available: ") {
		t.Errorf("DriverVersion: %v, want an UnavailableError", err)
	}
}
