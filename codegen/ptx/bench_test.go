package ptx

import "testing"

func BenchmarkParse(b *testing.B) {
	text := readTestdata(b, "split/all.ptx")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	text := readTestdata(b, "split/all.ptx")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Split(text); err != nil {
			b.Fatal(err)
		}
	}
}
