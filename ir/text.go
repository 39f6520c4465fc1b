package ir

import "strings"

// AttrsText prints attributes as program text; equal attributes print alike.
func AttrsText(a Attrs) string {
	if a == nil {
		return ""
	}
	var pr printer
	pr.attrs(a)
	return pr.b.String()
}

// ParseDim reads an expression as Dim.String prints it.
func ParseDim(text string) (Dim, error) {
	ps := &parser{lexer: lexer{file: "dim", text: text}, p: &Program{}}
	var d Dim
	err := Try(func() {
		ps.next()
		d = ps.dim(0)
		if ps.tok.kind != tokEnd {
			ps.expect("the end of the expression")
		}
	})
	return d, err
}

// MarshalText prints the expression, so that Dims are strings in JSON.
func (d Dim) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads an expression.
func (d *Dim) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDim(strings.TrimSpace(string(text)))
	return err
}

// IsZero tells whether d is the constant 0, which JSON may leave out.
func (d Dim) IsZero() bool { return d.Is(0) }

// ParseSharding reads a sharding as String prints it: "[32@dp, (3, 64@(tp, sp))]".
func ParseSharding(text string) (Sharding, error) {
	ps := &parser{lexer: lexer{file: "sharding", text: text}, p: &Program{}}
	var s Sharding
	err := Try(func() {
		ps.next()
		s = ps.sharding()
		if ps.tok.kind != tokEnd {
			ps.expect("the end of the sharding")
		}
	})
	return s, err
}
