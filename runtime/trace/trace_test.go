package trace

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestSummarize(t *testing.T) {
	span := func(k Kind, start, end int64) Span { return Span{Kind: k, Start: start * 1000, End: end * 1000} }
	for _, test := range []struct {
		name  string
		spans []Span
		want  Summary
	}{
		{"nothing", nil, Summary{}},
		{"kernels alone", []Span{span(Kernel, 10, 20), span(Copy, 25, 30), span(Fill, 30, 31)}, Summary{Step: 21, Computing: 16}},
		{"in turns", []Span{span(Kernel, 0, 10), span(Collective, 10, 14), span(Kernel, 14, 20)},
			Summary{Step: 20, Computing: 16, Communicating: 4, Exposed: 4}},
		{"wholly hidden", []Span{span(Collective, 2, 6), span(Kernel, 0, 10)},
			Summary{Step: 10, Computing: 10, Communicating: 4, Hidden: 4, Share: 1}},
		{"a wait hides nothing", []Span{span(Kernel, 0, 10), span(Collective, 5, 25), span(Wait, 10, 25), span(Kernel, 25, 30)},
			Summary{Step: 30, Computing: 15, Communicating: 20, Hidden: 5, Exposed: 15, Share: 0.25}},
		{"a gap between kernels", []Span{span(Kernel, 0, 4), span(Kernel, 6, 10), span(Collective, 2, 8)},
			Summary{Step: 10, Computing: 8, Communicating: 6, Hidden: 4, Exposed: 2, Share: 4.0 / 6}},
		{"two collectives at a time count once", []Span{span(Collective, 0, 10), span(Collective, 5, 15), span(Kernel, 8, 12)},
			Summary{Step: 15, Computing: 4, Communicating: 15, Hidden: 4, Exposed: 11, Share: 4.0 / 15}},
		{"two kernels at a time hide once", []Span{span(Kernel, 0, 6), span(Kernel, 3, 8), span(Collective, 4, 10)},
			Summary{Step: 10, Computing: 8, Communicating: 6, Hidden: 4, Exposed: 2, Share: 4.0 / 6}},
		{"spans that touch or have no length", []Span{span(Collective, 0, 5), span(Collective, 5, 5), span(Collective, 5, 9), span(Kernel, 9, 12), span(Kernel, 3, 3)},
			Summary{Step: 12, Computing: 3, Communicating: 9, Exposed: 9}},
		{"negative starts", []Span{span(Kernel, -5, 0), span(Collective, -2, 2)},
			Summary{Step: 7, Computing: 5, Communicating: 4, Hidden: 2, Exposed: 2, Share: 0.5}},
	} {
		if got := Summarize(Rank{Spans: test.spans}); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

const golden = `{"displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"rank 0"}},
{"name":"process_sort_index","ph":"M","pid":0,"tid":0,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"compute"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":0,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"communication"}},
{"name":"thread_sort_index","ph":"M","pid":0,"tid":1,"args":{"sort_index":1}},
{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"rank 1"}},
{"name":"process_sort_index","ph":"M","pid":1,"tid":0,"args":{"sort_index":1}},
{"name":"thread_name","ph":"M","pid":1,"tid":0,"args":{"name":"compute"}},
{"name":"thread_sort_index","ph":"M","pid":1,"tid":0,"args":{"sort_index":0}},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"communication"}},
{"name":"thread_sort_index","ph":"M","pid":1,"tid":1,"args":{"sort_index":1}},
{"name":"dot_general","cat":"kernel","ph":"X","pid":0,"tid":0,"ts":0.5,"dur":2,"args":{"step":0,"kernel":"contract_1","label":"dot_general at a \"b\" (c.py:1)","bytes":24,"flops":8}},
{"name":"all_reduce","cat":"collective","ph":"X","pid":0,"tid":1,"ts":1.5,"dur":2,"args":{"step":1,"label":"b","bytes":16,"axes":"dp,tp","async":true}},
{"name":"wait","cat":"wait","ph":"X","pid":0,"tid":0,"ts":2.5,"dur":1,"args":{"step":2,"bytes":0}},
{"name":"map_2","cat":"kernel","ph":"X","pid":1,"tid":0,"ts":0,"dur":1,"args":{"step":0,"kernel":"map_2","bytes":4}}
],"otherData":{"entry":"f","device":"some device","clock":"wall time","ranks":[{"rank":0,"step_us":3,"computing_us":2,"communicating_us":2,"hidden_us":1,"exposed_us":1,"hidden_share":0.5},{"rank":1,"step_us":1,"computing_us":1,"communicating_us":0,"hidden_us":0,"exposed_us":0,"hidden_share":0}]}}
`

func TestWrite(t *testing.T) {
	ranks := []Rank{
		{Rank: 0, Entry: "f", Clock: ClockHost, Start: 1_000_000, Spans: []Span{
			{Step: 0, Kind: Kernel, Name: "contract_1", Label: `dot_general at a "b" (c.py:1)`, Start: 1000, End: 3000, Bytes: 24, FLOPs: 8},
			{Step: 1, Kind: Collective, Name: "all_reduce", Label: "b", Start: 2000, End: 4000, Bytes: 16, Axes: []string{"dp", "tp"}, Beside: true},
			{Step: 2, Kind: Wait, Name: "wait", Start: 3000, End: 4000},
		}},
		{Rank: 1, Entry: "f", Clock: ClockHost, Start: 1_000_500, Spans: []Span{{Kind: Kernel, Name: "map_2", Start: 0, End: 1000, Bytes: 4}}},
	}
	var b bytes.Buffer
	if err := Write(&b, "some device", ranks); err != nil {
		t.Fatal(err)
	}
	if b.String() != golden {
		t.Errorf("got\n%s", &b)
	}
	for _, list := range [][]Rank{ranks, nil, {{Rank: 3}}} {
		b.Reset()
		if err := Write(&b, "", list); err != nil || !json.Valid(b.Bytes()) {
			t.Errorf("%v, valid JSON: %t\n%s", err, json.Valid(b.Bytes()), &b)
		}
	}
}
