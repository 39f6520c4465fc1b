package ptx

import "fmt"

// token is a word (names, numbers, directives, opcodes with their modifiers) or one
// punctuation byte. The end of the text is the empty token.
type token struct {
	text   string
	line   int
	column int
	start  int // byte offset of the first byte
	end    int // byte offset after the last byte
}

func (t token) position() Position { return Position{t.line, t.column} }

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '$' || c == '%' || c == '.'
}

// tokenize cuts the text into tokens. Comments and white space go.
func tokenize(text string) ([]token, error) {
	var tokens []token
	line, lineStart := 1, 0
	for i := 0; i < len(text); {
		c := text[i]
		position := Position{line, i - lineStart + 1}
		switch {
		case c == '\n':
			line++
			i++
			lineStart = i
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			end := i + 2
			for ; end+1 < len(text) && (text[end] != '*' || text[end+1] != '/'); end++ {
				if text[end] == '\n' {
					line++
					lineStart = end + 1
				}
			}
			if end+1 >= len(text) {
				return nil, &Error{position, "comment without end"}
			}
			i = end + 2
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' && text[end] != '\n' {
				end++
			}
			if end >= len(text) || text[end] != '"' {
				return nil, &Error{position, "string without end"}
			}
			tokens = append(tokens, token{text[i : end+1], line, position.Column, i, end + 1})
			i = end + 1
		case isWordByte(c):
			end := wordEnd(text, i)
			tokens = append(tokens, token{text[i:end], line, position.Column, i, end})
			i = end
		case c > ' ' && c < 0x7f:
			tokens = append(tokens, token{text[i : i+1], line, position.Column, i, i + 1})
			i++
		default:
			return nil, &Error{position, fmt.Sprintf("unexpected byte 0x%02x", c)}
		}
	}
	return append(tokens, token{"", line, len(text) - lineStart + 1, len(text), len(text)}), nil
}

// wordEnd finds the end of the word at i. A double colon belongs to the word ("shared::cta"),
// a single one is punctuation.
func wordEnd(text string, i int) int {
	for i < len(text) {
		if isWordByte(text[i]) {
			i++
		} else if text[i] == ':' && i+2 < len(text) && text[i+1] == ':' && isWordByte(text[i+2]) {
			i += 2
		} else {
			break
		}
	}
	return i
}
