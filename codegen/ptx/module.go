// Package ptx knows NVIDIA's PTX assembly text: a parser for what llc's NVPTX back end and
// weft's own inline assembly produce, the catalogue of instructions that emitters may write as
// inline assembly, a splitter and joiner of modules by entry, and a lint.
//
// The syntax follows the PTX ISA reference, versions 7.0 to 8.x. Source order is kept
// everywhere; nothing depends on map order.
package ptx

import (
	"fmt"
	"strings"
)

// Module is one parsed PTX text.
type Module struct {
	Version     string   // "8.0"
	Targets     []string // "sm_90a", then options
	AddressSize int      // 64
	Variables   []*Variable
	Functions   []*Function
}

// Function finds a function or entry by name, nil if there is none.
func (m *Module) Function(name string) *Function {
	for _, f := range m.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Entries lists the kernels in source order.
func (m *Module) Entries() []*Function {
	var entries []*Function
	for _, f := range m.Functions {
		if f.Entry {
			entries = append(entries, f)
		}
	}
	return entries
}

// Position is a place in the source text. Both start at 1; columns count bytes.
type Position struct{ Line, Column int }

// String is LINE:COLUMN.
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Error is a syntax or lint error with its place.
type Error struct {
	Position
	Message string
}

// Error says what is wrong, and where.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Space is a PTX state space.
type Space uint8

// The state spaces. Generic is the space of an access that names none.
const (
	Generic Space = iota
	Param
	Global
	Shared
	Const
	Local
)

var spaceNames = [...]string{"generic", "param", "global", "shared", "const", "local"}

// String is the name that PTX has for the space.
func (s Space) String() string { return spaceNames[s] }

// ParseSpace reads a state space modifier such as "global" or "shared::cta".
func ParseSpace(name string) (Space, bool) {
	base, _, _ := strings.Cut(name, "::")
	for s := Param; s <= Local; s++ {
		if spaceNames[s] == base {
			return s, true
		}
	}
	return Generic, false
}

// Type is a fundamental PTX type.
type Type uint8

// The fundamental types.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16x2
	BF16
	BF16x2
	TF32
	F32
	F64
)

var typeInfo = [...]struct {
	name string
	bits int
}{
	NoType: {"", 0}, Pred: {"pred", 1},
	B8: {"b8", 8}, B16: {"b16", 16}, B32: {"b32", 32}, B64: {"b64", 64}, B128: {"b128", 128},
	U8: {"u8", 8}, U16: {"u16", 16}, U32: {"u32", 32}, U64: {"u64", 64},
	S8: {"s8", 8}, S16: {"s16", 16}, S32: {"s32", 32}, S64: {"s64", 64},
	F16: {"f16", 16}, F16x2: {"f16x2", 32}, BF16: {"bf16", 16}, BF16x2: {"bf16x2", 32},
	TF32: {"tf32", 32}, F32: {"f32", 32}, F64: {"f64", 64},
}

// String is the suffix of the type in PTX, such as f32.
func (t Type) String() string { return typeInfo[t].name }

// Bits is the width of a value of the type; 1 for predicates.
func (t Type) Bits() int { return typeInfo[t].bits }

// Signed reports whether the type is a signed integer.
func (t Type) Signed() bool { return t >= S8 && t <= S64 }

// Float reports whether the type is a floating-point type, packed pairs included.
func (t Type) Float() bool { return t >= F16 && t <= F64 }

// ParseType reads a type name without its dot.
func ParseType(name string) (Type, bool) {
	for t := Pred; t <= F64; t++ {
		if typeInfo[t].name == name {
			return t, true
		}
	}
	return NoType, false
}

// Variable is a module-level or function-level variable, or a parameter.
type Variable struct {
	Position
	Name     string
	Space    Space
	Type     Type
	Align    int   // bytes, at least the size of the type
	Count    int64 // elements; 1 for scalars, 0 for an unsized extern array
	Array    bool
	Extern   bool
	Pointer  bool // a parameter with a .ptr annotation
	Init     []Initializer
	Function string // the function that declares it, empty at module level
}

// Size is the variable's size in bytes.
func (v *Variable) Size() int64 { return v.Count * int64(v.Type.Bits()/8) }

// Initializer is one element of a variable's initial value: bits of the element type, or the
// address of another variable plus an offset.
type Initializer struct {
	Bits    uint64
	Symbol  string // set for an address
	Generic bool   // generic(symbol)
}

// Function is an entry (kernel) or a device function.
type Function struct {
	Position
	Name          string
	Entry         bool
	Parameters    []*Variable
	Results       []*Variable // device functions only
	MaxThreads    [3]int      // .maxntid, zero if absent
	ReqThreads    [3]int      // .reqntid, zero if absent
	ClusterBlocks [3]int      // .reqnctapercluster, zero if absent
	Registers     []Register  // those that the body mentions
	Variables     []*Variable
	Body          []*Instruction
	Declared      bool // a declaration without body
}

// Register is a virtual register.
type Register struct {
	Name string
	Type Type
}

// Instruction is one instruction of a body.
type Instruction struct {
	Position
	Labels    []string // the labels in front of it
	Guard     *Guard   // nil if unconditional
	Opcode    string   // the first part: "ld"
	Modifiers []string // the other parts: "global", "nc", "v4", "f32"
	Operands  []Operand
	Text      string // the source, spaces made single, without the semicolon
}

// String is the instruction's text.
func (i *Instruction) String() string { return i.Text }

// Has reports whether the instruction carries a modifier.
func (i *Instruction) Has(modifier string) bool {
	for _, m := range i.Modifiers {
		if m == modifier {
			return true
		}
	}
	return false
}

// Types lists the type modifiers in order.
func (i *Instruction) Types() []Type {
	var types []Type
	for _, m := range i.Modifiers {
		if t, ok := ParseType(m); ok {
			types = append(types, t)
		}
	}
	return types
}

// Guard is the predicate of an instruction: @%p1 or @!%p1.
type Guard struct {
	Register int // index into Function.Registers
	Negated  bool
}

// OperandKind says what an operand is.
type OperandKind uint8

// The operand kinds.
const (
	OperandRegister OperandKind = iota // Register; Negated for !%p
	OperandSpecial                     // Name: "%tid.x"
	OperandInteger                     // Bits, two's complement
	OperandFloat32                     // Bits, 0f…
	OperandFloat64                     // Bits, 0d… or a decimal
	OperandSymbol                      // Name + Offset: the address of a variable
	OperandLabel                       // Name, Targets[0]
	OperandTable                       // Name, Targets: a .branchtargets list
	OperandVector                      // Elements: {a, b}
	OperandPair                        // Elements: a|b
	OperandGroup                       // Elements: (a, b), in calls
	OperandAddress                     // [Elements[0] + Offset], then coordinates if any
	OperandSink                        // _
)

// Operand is one operand of an instruction.
type Operand struct {
	Position
	Kind     OperandKind
	Name     string
	Register int // index into Function.Registers
	Negated  bool
	Bits     uint64
	Offset   int64
	Elements []Operand
	Targets  []int // indices into Function.Body; len(Body) is the end of the function
}
