package ir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/ir/diag"
)

// tokenKind is a class of tokens of program text.
type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokIdent            // letters, digits and _, not starting with a digit
	tokNumber           // 12, 1.5, 2e-7; no sign
	tokString           // text is the unquoted value
	tokValue            // %name; text is the name
	tokPunct            // one character, or ..
)

type token struct {
	kind tokenKind
	text string
	pos  int // byte offset
}

func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokString:
		return "string " + strconv.Quote(t.text)
	case tokValue:
		return "%" + t.text
	}
	return strconv.Quote(t.text)
}

// lexer cuts program text into tokens, one ahead.
type lexer struct {
	file string
	text string
	pos  int
	tok  token // the next token
}

// fail ends parsing with a diagnostic at a byte offset.
func (l *lexer) fail(code diag.Code, pos int, format string, args ...any) {
	Fail(diag.Errorf(code, l.place(pos), format, args...).In(l.file))
}

// place is line:column of a byte offset; columns count characters from 1.
func (l *lexer) place(pos int) string {
	before := l.text[:min(pos, len(l.text))]
	line := strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("%d:%d", line+1, column+1)
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isWord(c byte) bool   { return isLetter(c) || isDigit(c) }

// next returns the next token and reads the one after it.
func (l *lexer) next() token {
	t := l.tok
	l.skipSpace()
	l.tok = l.scan()
	return t
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			l.pos++
		case strings.HasPrefix(l.text[l.pos:], "//"):
			end := strings.IndexByte(l.text[l.pos:], '\n')
			if end < 0 {
				end = len(l.text) - l.pos
			}
			l.pos += end
		default:
			return
		}
	}
}

func (l *lexer) scan() token {
	start := l.pos
	if start >= len(l.text) {
		return token{tokEnd, "", start}
	}
	switch c := l.text[start]; {
	case isLetter(c):
		return token{tokIdent, l.word(), start}
	case isDigit(c):
		return token{tokNumber, l.number(), start}
	case c == '%':
		l.pos++
		return token{tokValue, l.word(), start}
	case c == '"':
		return l.str()
	case strings.HasPrefix(l.text[start:], ".."):
		l.pos += 2
		return token{tokPunct, "..", start}
	case strings.IndexByte("()[]{}<>,:=+-*@", c) >= 0:
		l.pos++
		return token{tokPunct, l.text[start:l.pos], start}
	}
	r, _ := utf8.DecodeRuneInString(l.text[start:])
	l.fail(diag.TextSyntax, start, "unexpected character %q", r)
	panic("BUG: fail returned")
}

func (l *lexer) word() string {
	start := l.pos
	for l.pos < len(l.text) && isWord(l.text[l.pos]) {
		l.pos++
	}
	return l.text[start:l.pos]
}

func (l *lexer) digits() {
	for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
		l.pos++
	}
}

// number reads digits with an optional fraction and exponent; a dot that no digit follows is
// not part of it, as in 1..8.
func (l *lexer) number() string {
	start := l.pos
	at := func(i int) byte {
		if l.pos+i < len(l.text) {
			return l.text[l.pos+i]
		}
		return 0
	}
	l.digits()
	if at(0) == '.' && isDigit(at(1)) {
		l.pos++
		l.digits()
	}
	if at(0) == 'e' || at(0) == 'E' {
		switch {
		case isDigit(at(1)):
			l.pos++
			l.digits()
		case (at(1) == '+' || at(1) == '-') && isDigit(at(2)):
			l.pos += 2
			l.digits()
		}
	}
	return l.text[start:l.pos]
}

func (l *lexer) str() token {
	start := l.pos
	quoted, err := strconv.QuotedPrefix(l.text[start:])
	if err != nil {
		l.fail(diag.TextSyntax, start, "the string that starts here does not end on its line or has a bad escape")
	}
	l.pos += len(quoted)
	text, err := strconv.Unquote(quoted)
	if err != nil {
		l.fail(diag.TextSyntax, start, "bad string: %v", err)
	}
	return token{tokString, text, start}
}

// is tells whether the next token is that punctuation or word.
func (l *lexer) is(text string) bool {
	return (l.tok.kind == tokPunct || l.tok.kind == tokIdent) && l.tok.text == text
}

// accept skips the next token if it is that punctuation or word.
func (l *lexer) accept(text string) bool {
	if l.is(text) {
		l.next()
		return true
	}
	return false
}

func (l *lexer) expect(text string) {
	if !l.accept(text) {
		l.fail(diag.TextSyntax, l.tok.pos, "expected %q, found %s", text, l.tok)
	}
}

func (l *lexer) expectKind(kind tokenKind, what string) token {
	if l.tok.kind != kind {
		l.fail(diag.TextSyntax, l.tok.pos, "expected %s, found %s", what, l.tok)
	}
	return l.next()
}

// list calls item for comma-separated items up to a closing token, which it skips.
func (l *lexer) list(closing string, item func()) {
	for first := true; !l.accept(closing); first = false {
		if !first {
			l.expect(",")
			if l.accept(closing) {
				return // a trailing comma
			}
		}
		item()
	}
}

// name reads an identifier or a string.
func (l *lexer) name(what string) string {
	if l.tok.kind == tokString {
		return l.next().text
	}
	return l.expectKind(tokIdent, what).text
}

// integer reads an optional sign and digits.
func (l *lexer) integer() int64 {
	pos := l.tok.pos
	sign := ""
	if l.accept("-") {
		sign = "-"
	}
	t := l.expectKind(tokNumber, "an integer")
	v, err := strconv.ParseInt(sign+t.text, 10, 64)
	if err != nil {
		l.fail(diag.TextSyntax, pos, "%q is not a 64-bit integer", sign+t.text)
	}
	return v
}

// index reads an integer that can be an index or a count.
func (l *lexer) index() int {
	pos := l.tok.pos
	v := l.integer()
	if v < -1<<31 || v > 1<<31 {
		l.fail(diag.TextLimit, pos, "%d is out of range", v)
	}
	return int(v)
}
