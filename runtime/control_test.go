package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"weft/ir"
	"weft/runtime"
	"weft/runtime/emu"
)

// The entry control adds x or count to y, which starts as x, once for each of its inputs first,
// second and third up to one that is false; count is y after the run.
var controlled = model{entries: "control", targets: "sm_80 sm_90a"}

func flags(values ...bool) []*ir.Tensor {
	var out []*ir.Tensor
	for _, v := range values {
		t := ir.NewTensor(ir.Bool)
		if v {
			t.SetInt(0, 1)
		}
		out = append(out, t)
	}
	return out
}

func TestControl(t *testing.T) { onDevices(t, testControl) }

func testControl(t *testing.T, device runtime.Device) {
	for _, noGraph := range []bool{false, true} {
		for _, test := range []struct {
			name                         string
			first, second, third, choice bool
			times, of                    float32 // y = x + times * (x or count)
		}{
			{"no iteration", false, true, true, true, 0, 0},
			{"one", true, false, true, true, 1, 1},
			{"two", true, true, false, true, 2, 1},
			{"three", true, true, true, true, 3, 1},
			{"the other branch", true, true, true, false, 3, 10},
		} {
			s := openOn(t, device, controlled, runtime.Options{NoGraph: noGraph})
			x, y := vector(1, 2, 3, 4), ir.NewTensor(ir.F32, 4)
			for i := range int64(4) {
				y.SetFloat(i, float64(i+1)*float64(1+test.times*test.of))
			}
			inputs := append([]*ir.Tensor{x}, flags(test.first, test.second, test.third, test.choice)...)
			r, err := s.Run("control", inputs)
			check(t, err)
			same(t, test.name, r.Outputs[0], y)
			count, err := s.State("count")
			check(t, err)
			same(t, test.name+": count", count, y)
			check(t, s.Close())
		}
	}
}

// counter counts what a session asks of a device.
type counter struct {
	*emu.Device
	captures, downloads int
	download            func() // called before each
}

func (c *counter) BeginCapture(s runtime.Stream) error {
	c.captures++
	return c.Device.BeginCapture(s)
}

func (c *counter) Download(dst []byte, src runtime.Pointer) error {
	c.downloads++
	if c.download != nil {
		c.download()
	}
	return c.Device.Download(dst, src)
}

// TestControlCaptures holds that each stretch between decisions is captured once, when it is
// first run, and that the host waits only for predicates and outputs.
func TestControlCaptures(t *testing.T) {
	device := &counter{Device: emu.New(emu.Options{})}
	s := openOn(t, device, controlled, runtime.Options{})
	x := vector(1, 2, 3, 4)
	for i, run := range []struct {
		inputs              []*ir.Tensor
		captures, downloads int // in all
	}{
		{flags(false, true, true, true), 2, 2},    // before and after the loop
		{flags(true, true, true, true), 4, 2 + 8}, // a branch, and what follows it
		{flags(true, true, true, true), 4, 10 + 8},
		{flags(true, false, false, false), 5, 18 + 4}, // the other branch
	} {
		_, err := s.Run("control", append([]*ir.Tensor{x}, run.inputs...))
		check(t, err)
		if device.captures != run.captures || device.downloads != run.downloads {
			t.Errorf("after run %d: %d captures, %d downloads; want %d, %d", i, device.captures, device.downloads, run.captures, run.downloads)
		}
	}
	check(t, s.Close())
	check(t, device.Close())
}

// TestControlCancelled ends a loop that would not end.
func TestControlCancelled(t *testing.T) {
	for _, noGraph := range []bool{false, true} {
		device := &counter{Device: emu.New(emu.Options{})}
		m := controlled
		m.edit = func(_, text string) string { return strings.Replace(text, `{"copy":{"from":8,"to":7}},`, ``, 1) }
		s := openOn(t, device, m, runtime.Options{NoGraph: noGraph})
		ctx, cancel := context.WithCancel(context.Background())
		device.download = func() {
			if device.downloads == 100 {
				cancel()
			}
		}
		inputs := append([]*ir.Tensor{vector(1, 2, 3, 4)}, flags(true, true, true, true)...)
		if _, err := s.RunContext(ctx, "control", inputs); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if device.downloads != 100 {
			t.Errorf("%d downloads", device.downloads)
		}
		b, err := s.Bind("control", inputs)
		check(t, err)
		if err := b.ReplayContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("replay: %v", err)
		}
		// The session is as good as before.
		check(t, b.Upload(append([]*ir.Tensor{vector(1, 2, 3, 4)}, flags(false, true, true, true)...)))
		check(t, b.Replay())
		outputs, err := b.Download()
		check(t, err)
		same(t, "y", outputs[0], vector(1, 2, 3, 4))
		check(t, b.Close())
		check(t, s.Close())
		check(t, device.Close())
	}
}

// TestControlFails reports what goes wrong inside a loop.
func TestControlFails(t *testing.T) {
	device := emu.New(emu.Options{MaxInstructions: 2})
	s := openOn(t, device, controlled, runtime.Options{})
	inputs := append([]*ir.Tensor{vector(1, 2, 3, 4)}, flags(true, true, true, true)...)
	_, err := s.Run("control", inputs)
	wantError(t, err, "W7024", "y + x")
	check(t, s.Close())
	check(t, device.Close())
}
