package cuda

import "testing"

func TestTensorMapCheck(t *testing.T) {
	good := TensorMap{Type: TensorBF16, Dims: []uint64{64, 8}, Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: Swizzle128}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(m *TensorMap){
		"no dims":         func(m *TensorMap) { m.Dims = nil },
		"six dims":        func(m *TensorMap) { m.Dims = make([]uint64, 6) },
		"strides":         func(m *TensorMap) { m.Strides = nil },
		"box":             func(m *TensorMap) { m.Box = m.Box[:1] },
		"element strides": func(m *TensorMap) { m.ElementStrides = []uint32{1} },
		"type":            func(m *TensorMap) { m.Type = 99 },
	} {
		m := good
		change(&m)
		if m.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
