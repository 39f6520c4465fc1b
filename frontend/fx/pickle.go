package fx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/nlpodyssey/gopickle/pickle"
	"github.com/nlpodyssey/gopickle/types"
)

// A pickle is a program for a stack machine. What it may do here is bounded before it starts:
// checkPickle admits the opcodes that torch.save writes, whose operands lie inside the file, and
// bounds how many there are. Every global that it names becomes a value of unpickler's table
// or an opaque object: nothing of Python can run.

const (
	maxPickle  = 64 << 20 // bytes
	maxOpcodes = 1 << 22  // an opcode makes at most about 150 bytes
	maxMarks   = 1 << 8   // nested open marks
)

// operandKind says what follows an opcode.
type operandKind uint8

const (
	refused operandKind = iota
	none                // nothing
	one                 // that many bytes
	two
	four
	eight
	length1 // a length of one byte, then the bytes
	length4 // a length of four bytes, then the bytes
	lines2  // two lines
)

// opcodes are those of protocol 2 that torch.save writes, by their bytes.
var opcodes = [256]operandKind{
	'\x80': one,                                                            // PROTO
	'(':    none, '.': none, '0': none, '1': none, '2': none, '\x81': none, // MARK STOP POP POP_MARK DUP NEWOBJ
	')': none, 't': none, '\x85': none, '\x86': none, '\x87': none, // tuples
	']': none, 'a': none, 'e': none, 'l': none, // lists
	'}': none, 's': none, 'u': none, 'd': none, // dicts
	'N': none, '\x88': none, '\x89': none, 'G': eight, // None True False BINFLOAT
	'K': one, 'M': two, 'J': four, '\x8a': length1, // ints
	'X': length4, 'T': length4, 'U': length1, // strings
	'c': lines2, 'R': none, 'b': none, 'Q': none, // GLOBAL REDUCE BUILD BINPERSID
	'q': one, 'r': four, 'h': one, 'j': four, // memo
}

var errPickleEnds = errors.New("the pickle is cut off")

// checkPickle tells whether running the pickle is safe: see above.
func checkPickle(data []byte) error {
	if len(data) > maxPickle {
		return fmt.Errorf("a pickle of %d bytes; weft reads up to %d", len(data), maxPickle)
	}
	marks := 0
	for pos, count := 0, 0; pos < len(data); count++ {
		op := data[pos]
		size, err := operandSize(opcodes[op], data[pos+1:])
		switch {
		case err != nil:
			return err
		case opcodes[op] == refused:
			return fmt.Errorf("the opcode %#02x at byte %d, which torch.save does not write", op, pos)
		case count == maxOpcodes:
			return fmt.Errorf("more than %d opcodes", maxOpcodes)
		}
		switch op {
		case '.':
			return nil
		case '(':
			marks++
		case 't', 'e', 'l', 'u', 'd', '1':
			marks--
		}
		if marks > maxMarks {
			return fmt.Errorf("more than %d nested tuples, lists and dicts", maxMarks)
		}
		pos += 1 + size
	}
	return errPickleEnds
}

// operandSize is the number of bytes of an operand at the start of rest.
func operandSize(kind operandKind, rest []byte) (int, error) {
	size := 0
	switch kind {
	case one, two, four, eight:
		size = 1 << (kind - one)
	case length1:
		if len(rest) > 0 {
			size = 1 + int(rest[0])
		} else {
			size = 1
		}
	case length4:
		size = 4
		if len(rest) >= 4 {
			size += int(binary.LittleEndian.Uint32(rest))
		}
	case lines2:
		for range 2 {
			end := bytes.IndexByte(rest[size:], '\n')
			if end < 0 {
				return 0, errPickleEnds
			}
			size += end + 1
		}
	}
	if size > len(rest) {
		return 0, errPickleEnds
	}
	return size, nil
}

// pickleError is an error whose text tells what is wrong with a pickle in the model's terms.
type pickleError struct{ error }

func badPickle(format string, args ...any) error { return pickleError{fmt.Errorf(format, args...)} }

// unpickle runs a pickle. globals gives the meaning of a global, persistent that of a
// persistent id. What the pickle builds consists of *types.Tuple, *types.List, *types.Dict,
// *types.OrderedDict, string, int, *big.Int, float64, bool, nil, and what the functions gave.
func unpickle(data []byte, globals func(module, name string) any, persistent func(id any) (any, error)) (v any, err error) {
	if err := checkPickle(data); err != nil {
		return nil, err
	}
	broken := errors.New("the pickle does not hold together")
	defer func() {
		// The library indexes and asserts types without looking first.
		if r := recover(); r != nil {
			v, err = nil, broken
		}
	}()
	u := pickle.NewUnpickler(bytes.NewReader(data))
	u.FindClass = func(module, name string) (any, error) { return globals(module, name), nil }
	u.PersistentLoad = persistent
	v, err = u.Load()
	var known pickleError
	if err != nil && !errors.As(err, &known) {
		err = broken // the library's texts hold addresses
	}
	return v, err
}

// opaque is an object of a class that weft does not know. Whatever is done to it changes nothing.
type opaque struct{ class string }

func (o opaque) Call(...any) (any, error)       { return o, nil }
func (o opaque) PyNew(...any) (any, error)      { return o, nil }
func (o opaque) PySetState(any) error           { return nil }
func (o opaque) PyDictSet(key, value any) error { return nil }
func (o opaque) Set(key, value any)             {}
func (o opaque) Append(any)                     {}

// function is a function of torch's that rebuilds a value.
type function func(args []any) (any, error)

// Call makes a function callable by a pickle.
func (f function) Call(args ...any) (any, error) { return f(args) }

// asInt is a pickled int.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case *big.Int:
		return v.Int64(), v.IsInt64()
	}
	return 0, false
}

// asInts is a pickled tuple or list of ints.
func asInts(v any) ([]int64, bool) {
	var list []any
	switch v := v.(type) {
	case *types.Tuple:
		list = *v
	case *types.List:
		list = *v
	default:
		return nil, false
	}
	ints := make([]int64, len(list))
	for i, e := range list {
		n, ok := asInt(e)
		if !ok {
			return nil, false
		}
		ints[i] = n
	}
	return ints, true
}

// items calls f for the items of a pickled dict in order; false when v is none.
func items(v any, f func(key, value any)) bool {
	switch v := v.(type) {
	case *types.Dict:
		for _, e := range *v {
			f(e.Key, e.Value)
		}
	case *types.OrderedDict:
		for e := v.List.Front(); e != nil; e = e.Next() {
			entry := e.Value.(*types.OrderedDictEntry)
			f(entry.Key, entry.Value)
		}
	default:
		return false
	}
	return true
}
