package fx

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"weft/ir/diag"
)

// maxDepth bounds the nesting of JSON values; exporters nest a few levels for each subgraph.
const maxDepth = 1000

// scanner reads JSON as the schema decoder asks for it: in one pass, without an intermediate
// tree. The first error sticks; from then on every method gives zero values and loops end.
type scanner struct {
	data    []byte
	pos     int
	depth   int
	err     *diag.Diagnostic
	interns map[string]string // raw text between quotes to its meaning
}

func newScanner(data []byte) *scanner {
	return &scanner{data: data, interns: map[string]string{}}
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = diag.Errorf(diag.FXMalformed, "byte "+strconv.Itoa(s.pos), format, args...).
			Suggest("the model's JSON is damaged or was not written by torch.export: export it again")
		s.pos = len(s.data)
	}
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// next is the next byte that is not space, 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) accept(c byte) bool {
	if s.next() == c && s.err == nil {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) expect(c byte, what string) bool {
	if s.accept(c) {
		return true
	}
	s.fail("expected %s, found %s", what, s.found())
	return false
}

// found describes what is there instead of what was expected.
func (s *scanner) found() string {
	switch c := s.next(); {
	case s.pos >= len(s.data):
		return "the end of the file"
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '-' || '0' <= c && c <= '9':
		return "a number"
	case c == 't' || c == 'f':
		return "a bool"
	case c == 'n':
		return "null"
	default:
		return strconv.QuoteRune(rune(c))
	}
}

func (s *scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		s.fail("values are nested more than %d deep", maxDepth)
		return false
	}
	return true
}

// object calls visit for each key; visit reads the value.
func (s *scanner) object(what string, visit func(key string)) {
	if !s.expect('{', what) || !s.enter() {
		return
	}
	defer func() { s.depth-- }()
	if s.accept('}') {
		return
	}
	for s.err == nil {
		key := s.str("a key")
		s.expect(':', "a colon")
		if s.err != nil {
			return
		}
		visit(key)
		if s.accept('}') {
			return
		}
		s.expect(',', "a comma or the end of the object")
	}
}

// array calls visit for each element; visit reads it.
func (s *scanner) array(what string, visit func()) {
	if !s.expect('[', what) || !s.enter() {
		return
	}
	defer func() { s.depth-- }()
	if s.accept(']') {
		return
	}
	for s.err == nil {
		visit()
		if s.accept(']') {
			return
		}
		s.expect(',', "a comma or the end of the array")
	}
}

// str reads a string. Equal texts share memory.
func (s *scanner) str(what string) string {
	if !s.expect('"', what) {
		return ""
	}
	start, escaped := s.pos, false
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			raw := s.data[start:s.pos]
			s.pos++
			if text, ok := s.interns[string(raw)]; ok {
				return text
			}
			text := string(raw)
			if escaped {
				text = s.unescape(raw)
			} else if !utf8.Valid(raw) {
				s.fail("a string is not UTF-8")
			}
			s.interns[string(raw)] = text
			return text
		case c == '\\':
			escaped = true
			s.pos += 2
		case c < ' ':
			s.fail("a control character in a string")
			return ""
		default:
			s.pos++
		}
	}
	s.fail("the file ends within a string")
	return ""
}

func (s *scanner) unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case '"', '\\', '/':
			out = append(out, raw[i])
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := s.hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(raw)+0 && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, s.hex4(raw[i+3:])); pair != utf8.RuneError {
					r, i = pair, i+6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			s.fail("unknown escape \\%c", raw[i])
			return ""
		}
	}
	if !utf8.Valid(out) {
		s.fail("a string is not UTF-8")
	}
	return string(out)
}

func (s *scanner) hex4(raw []byte) rune {
	if len(raw) >= 4 {
		if v, err := strconv.ParseUint(string(raw[:4]), 16, 32); err == nil {
			return rune(v)
		}
	}
	s.fail("bad \\u escape")
	return utf8.RuneError
}

// word reads a run of letters, digits and the signs of numbers.
func (s *scanner) word() string {
	s.space()
	start := s.pos
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		s.pos++
	}
	return string(s.data[start:s.pos])
}

func (s *scanner) integer(what string) int64 {
	found := s.found()
	w := s.word()
	v, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		s.fail("expected %s, found %s %s", what, found, w)
		return 0
	}
	return v
}

// float reads a number; infinities and NaN come as strings or as Python's bare words.
func (s *scanner) float(what string) float64 {
	found := s.found()
	var w string
	if s.next() == '"' {
		w = s.str(what)
	} else {
		w = s.word()
	}
	switch w {
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	case "NaN":
		return math.NaN()
	}
	v, err := strconv.ParseFloat(w, 64)
	if err != nil && !isRange(err) || w == "" {
		s.fail("expected %s, found %s %s", what, found, w)
		return 0
	}
	return v
}

func isRange(err error) bool {
	e, ok := err.(*strconv.NumError)
	return ok && e.Err == strconv.ErrRange
}

func (s *scanner) boolean(what string) bool {
	found := s.found()
	switch s.word() {
	case "true":
		return true
	case "false":
		return false
	}
	s.fail("expected %s, found %s", what, found)
	return false
}

// null takes a null where there is one.
func (s *scanner) null() bool {
	if s.next() == 'n' && s.pos+4 <= len(s.data) && string(s.data[s.pos:s.pos+4]) == "null" {
		s.pos += 4
		return true
	}
	return false
}

// skip reads any value.
func (s *scanner) skip() {
	switch c := s.next(); c {
	case '{':
		s.object("an object", func(string) { s.skip() })
	case '[':
		s.array("an array", s.skip)
	case '"':
		s.str("a string")
	default:
		switch w := s.word(); w {
		case "true", "false", "null", "Infinity", "-Infinity", "NaN":
		default:
			if _, err := strconv.ParseFloat(w, 64); err != nil && !isRange(err) || w == "" {
				s.fail("expected a value, found %s", s.found())
			}
		}
	}
}

// end wants nothing after the value.
func (s *scanner) end() {
	if s.next(); s.err == nil && s.pos < len(s.data) {
		s.fail("there is more after the end of the JSON value")
	}
}
