package weft

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Mutators change the bytes of a file at random: blindly, or knowing its format, so that the
// damage gets past the outermost checks.

// flipBits flips one to eight bits, in the first or last kilobyte or anywhere.
func flipBits(r *rand.Rand, data []byte) []byte {
	out := slices.Clone(data)
	for range 1 + r.IntN(8) {
		if len(out) == 0 {
			break
		}
		at := r.IntN(len(out))
		switch r.IntN(3) {
		case 0:
			at = r.IntN(min(len(out), 1024))
		case 1:
			at = len(out) - 1 - r.IntN(min(len(out), 1024))
		}
		out[at] ^= 1 << r.IntN(8)
	}
	return out
}

// truncateFile cuts the end off, or a piece out of the middle.
func truncateFile(r *rand.Rand, data []byte) []byte {
	n := r.IntN(len(data) + 1)
	if r.IntN(3) > 0 {
		return slices.Clone(data[:n])
	}
	return append(slices.Clone(data[:n]), data[n+r.IntN(len(data)-n+1):]...)
}

// overwriteLengths writes hostile numbers over some four or eight bytes: lengths and offsets of
// headers are where files begin and end.
func overwriteLengths(r *rand.Rand, data []byte) []byte {
	out := slices.Clone(data)
	if len(out) < 8 {
		return out
	}
	for range 1 + r.IntN(2) {
		at := r.IntN(min(len(out)-7, 400))
		if r.IntN(2) == 0 {
			at = len(out) - 8 - r.IntN(min(len(out)-7, 400))
		}
		v := hostileNumbers[r.IntN(len(hostileNumbers))]
		if r.IntN(2) == 0 {
			binary.LittleEndian.PutUint32(out[at:], uint32(v))
		} else {
			binary.LittleEndian.PutUint64(out[at:], uint64(v))
		}
	}
	return out
}

var hostileNumbers = []int64{0, 1, -1, 2, 3, 7, 16, 255, 65535, 65536, math.MaxInt32, math.MinInt32, 1 << 32, 1 << 40, 1 << 60, math.MaxInt64, math.MinInt64}

// zipMember is a member of an archive in memory.
type zipMember struct {
	name string
	data []byte
}

func readZip(data []byte) ([]zipMember, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	var members []zipMember
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		members = append(members, zipMember{f.Name, text})
	}
	return members, nil
}

func writeZip(members []zipMember) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(m.data)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// inMembers makes a mutator of valid archives out of one of members.
func inMembers(change func(*rand.Rand, []zipMember) []zipMember) func(*rand.Rand, []byte) []byte {
	return func(r *rand.Rand, data []byte) []byte {
		members, err := readZip(data)
		if err != nil {
			panic(err)
		}
		return writeZip(change(r, members))
	}
}

// mixMembers exchanges, drops, repeats, renames or empties members.
func mixMembers(r *rand.Rand, members []zipMember) []zipMember {
	i, j := r.IntN(len(members)), r.IntN(len(members))
	switch r.IntN(6) {
	case 0, 1:
		members[i].data, members[j].data = members[j].data, members[i].data
	case 2:
		members = slices.Delete(members, i, i+1)
	case 3:
		members = append(members, members[i])
	case 4:
		members[i].name = []string{"../x", "/etc/x", members[i].name + "/x", strings.ToUpper(members[i].name), members[j].name + "x", "a\\b"}[r.IntN(6)]
	case 5:
		members[i].data = members[i].data[:r.IntN(len(members[i].data)+1)]
	}
	return members
}

// mutateJSONMember changes one member that is JSON, which stays valid.
func mutateJSONMember(r *rand.Rand, members []zipMember) []zipMember {
	var candidates []int
	for i, m := range members {
		if json.Valid(m.data) && bytes.HasPrefix(bytes.TrimSpace(m.data), []byte("{")) {
			candidates = append(candidates, i, i)
			if len(m.data) > 2000 { // the graph
				candidates = append(candidates, i, i, i, i, i, i)
			}
		}
	}
	at := candidates[r.IntN(len(candidates))]
	members[at].data = mutateJSON(r, members[at].data)
	return members
}

// mutateJSON changes one to three places of a JSON text.
func mutateJSON(r *rand.Rand, text []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	for range 1 + r.IntN(3) {
		v = changeJSON(r, v, 0)
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// changeJSON walks down at random and changes what it stops at.
func changeJSON(r *rand.Rand, v any, depth int) any {
	stop := depth > 3 && r.IntN(6) == 0
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 || stop {
			return otherJSON(r, v)
		}
		keys := slices.Sorted(maps.Keys(x))
		key := keys[r.IntN(len(keys))]
		switch r.IntN(12) {
		case 0:
			delete(x, key)
		case 1:
			x[key+"_"] = x[key]
		default:
			x[key] = changeJSON(r, x[key], depth+1)
		}
		return x
	case []any:
		if len(x) == 0 || stop {
			return otherJSON(r, v)
		}
		i, j := r.IntN(len(x)), r.IntN(len(x))
		switch r.IntN(12) {
		case 0:
			return slices.Delete(x, i, i+1)
		case 1:
			return append(x, x[i])
		case 2:
			x[i], x[j] = x[j], x[i]
		default:
			x[i] = changeJSON(r, x[i], depth+1)
		}
		return x
	}
	return otherJSON(r, v)
}

// otherJSON replaces a value, most times by one of its kind.
func otherJSON(r *rand.Rand, v any) any {
	number := json.Number(fmt.Sprint(hostileNumbers[r.IntN(len(hostileNumbers))]))
	switch x := v.(type) {
	case json.Number:
		if r.IntN(8) > 0 {
			return number
		}
	case string:
		switch r.IntN(5) {
		case 0:
			return x + x
		case 1:
			return x[:r.IntN(len(x)+1)]
		case 2:
			return strings.Repeat("x", 1+r.IntN(3000))
		case 3:
			return string(flipBits(r, []byte(x)))
		}
	case bool:
		return !x
	}
	deep := any(number)
	for range 1 + r.IntN(300) {
		deep = []any{deep}
	}
	return []any{nil, number, "", "x", []any{}, map[string]any{}, true, deep, json.Number("1e999"), json.Number("-0.5")}[r.IntN(10)]
}

// mutateProtobuf changes fields of a protobuf message, or of a message inside.
func mutateProtobuf(r *rand.Rand, data []byte) []byte {
	for range 1 + r.IntN(3) {
		data = changeMessage(r, data, 0)
	}
	return data
}

// changeMessage changes one field of a message: it goes down into those that could be messages.
func changeMessage(r *rand.Rand, data []byte, depth int) []byte {
	fields := protobufFields(data)
	if len(fields) == 0 {
		return flipBits(r, append(data, 0))
	}
	i, j := r.IntN(len(fields)), r.IntN(len(fields))
	switch r.IntN(14) {
	case 0:
		fields = slices.Delete(fields, i, i+1)
	case 1:
		fields = append(fields, fields[i])
	case 2:
		fields[i], fields[j] = fields[j], fields[i]
	case 3:
		number, kind, n := protowire.ConsumeTag(fields[i])
		if kind == protowire.BytesType { // a length that is not there
			fields[i] = append(protowire.AppendVarint(protowire.AppendTag(nil, number, kind), uint64(hostileNumbers[r.IntN(len(hostileNumbers))])), fields[i][n:]...)
		}
	default:
		fields[i] = changeField(r, fields[i], depth)
	}
	return slices.Concat(fields...)
}

// protobufFields cuts a message into fields; nil where it is none.
func protobufFields(data []byte) [][]byte {
	var fields [][]byte
	for len(data) > 0 {
		_, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return nil
		}
		fields, data = append(fields, slices.Clone(data[:n])), data[n:]
	}
	return fields
}

func changeField(r *rand.Rand, field []byte, depth int) []byte {
	number, kind, n := protowire.ConsumeTag(field)
	head, body := field[:n], field[n:]
	switch kind {
	case protowire.VarintType:
		if r.IntN(5) == 0 {
			number, kind = protowire.Number(1+r.IntN(30)), protowire.VarintType
		}
		return protowire.AppendVarint(protowire.AppendTag(nil, number, kind), uint64(hostileNumbers[r.IntN(len(hostileNumbers))]))
	case protowire.BytesType:
		text, _ := protowire.ConsumeBytes(body)
		if depth < 8 && r.IntN(8) > 0 && protobufFields(text) != nil {
			text = changeMessage(r, text, depth+1)
		} else if r.IntN(2) == 0 {
			text = flipBits(r, text)
		} else {
			text = truncateFile(r, text)
		}
		return protowire.AppendBytes(slices.Clone(head), text)
	}
	return append(slices.Clone(head), flipBits(r, body)...)
}

// mutateText deletes, repeats, exchanges and replaces words of a text.
func mutateText(r *rand.Rand, data []byte) []byte {
	words := splitWords(string(data))
	if len(words) < 2 {
		return data
	}
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(words)), r.IntN(len(words))
		switch r.IntN(8) {
		case 0:
			words[i] = ""
		case 1:
			words[i] += words[i]
		case 2:
			words[i], words[j] = words[j], words[i]
		case 3, 4:
			words[i] = words[j]
		case 5:
			words[i] = fmt.Sprint(hostileNumbers[r.IntN(len(hostileNumbers))])
		case 6:
			words[i] = strings.Repeat([]string{"(", "{", "[", "-", "<", "\"", "\n"}[r.IntN(7)], 1<<r.IntN(12))
		case 7:
			words = words[:i+1]
		}
	}
	return []byte(strings.Join(words, ""))
}

// splitWords cuts a text into words, numbers and single other characters.
func splitWords(text string) []string {
	isWord := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '%'
	}
	var words []string
	for start := 0; start < len(text); {
		end := start + 1
		for isWord(text[start]) && end < len(text) && isWord(text[end]) {
			end++
		}
		words = append(words, text[start:end])
		start = end
	}
	return words
}
