package emu

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// module is a loaded PTX text: its decoded entries and its variables in global memory.
type module struct {
	device    *Device
	parsed    *ptx.Module
	kernels   []*kernel
	variables []*variable
	closed    bool
}

// variable is a .global or .const variable of a module.
type variable struct {
	*allocation
	name     string
	constant bool
}

// Check parses a PTX text and decodes all its entries: it reports what the emulator could not
// run. Errors are *ptx.Error or *UnsupportedError, and name the line.
func Check(text string) error {
	_, err := newModule(text, &memory{limit: 1 << 40, next: globalBase})
	return err
}

// newModule parses the text, places its variables in memory and decodes its entries.
func newModule(text string, mem *memory) (*module, error) {
	parsed, err := ptx.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("emulator: PTX: %w", err)
	}
	m := &module{parsed: parsed}
	if err := m.placeVariables(mem); err != nil {
		m.release(mem)
		return nil, err
	}
	for _, f := range parsed.Entries() {
		if f.Declared {
			continue
		}
		k, err := decode(m, f)
		if err != nil {
			m.release(mem)
			return nil, err
		}
		m.kernels = append(m.kernels, k)
	}
	return m, nil
}

func (m *module) release(mem *memory) {
	for _, v := range m.variables {
		_ = mem.free(runtime.Pointer(v.base)) // allocated by placeVariables, so it is there
	}
	m.variables = nil
}

func (m *module) placeVariables(mem *memory) error {
	for _, v := range m.parsed.Variables {
		if v.Space != ptx.Global && v.Space != ptx.Const {
			continue
		}
		if v.Extern || v.Size() > 1<<30 {
			return fmt.Errorf("emulator: PTX line %d: variable %s is external or too large", v.Line, v.Name)
		}
		a, err := mem.alloc(v.Size())
		if err != nil {
			return err
		}
		a.init.set(0, int64(len(a.data))) // variables without initial value are zero
		m.variables = append(m.variables, &variable{a, v.Name, v.Space == ptx.Const})
	}
	for _, v := range m.parsed.Variables {
		place := m.variable(v.Name)
		if place == nil {
			continue
		}
		size := v.Type.Bits() / 8
		for i, value := range v.Init {
			bits := value.Bits
			if value.Symbol != "" {
				target := m.variable(value.Symbol)
				if target == nil || size != 8 {
					return fmt.Errorf("emulator: PTX line %d: initial value %s of %s", v.Line, value.Symbol, v.Name)
				}
				bits += target.base
			}
			var bytes [8]byte
			binary.LittleEndian.PutUint64(bytes[:], bits)
			copy(place.data[i*size:(i+1)*size], bytes[:])
		}
	}
	return nil
}

func (m *module) variableIndex(name string) int {
	return slices.IndexFunc(m.variables, func(v *variable) bool { return v.name == name })
}

func (m *module) variable(name string) *variable {
	if i := m.variableIndex(name); i >= 0 {
		return m.variables[i]
	}
	return nil
}

// Kernel implements runtime.Module.
func (m *module) Kernel(name string) (runtime.Kernel, error) {
	var names []string
	for _, k := range m.kernels {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	slices.Sort(names)
	return nil, fmt.Errorf("emulator: no kernel %q; the module has %s", name, strings.Join(names, ", "))
}

// Close implements runtime.Module.
func (m *module) Close() error {
	if m.closed {
		return fmt.Errorf("emulator: module closed twice")
	}
	m.closed = true
	m.release(&m.device.memory)
	return nil
}
