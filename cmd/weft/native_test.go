package main

import (
	"slices"
	"testing"

	"weft/ir/diag"
	weftruntime "weft/runtime"
)

func TestTargetsOfGPUs(t *testing.T) {
	tests := []struct {
		capabilities [][2]int
		want         []string
	}{
		{[][2]int{{8, 0}}, []string{"sm_80"}},
		{[][2]int{{8, 6}, {8, 9}}, []string{"sm_86", "sm_89"}},
		{[][2]int{{9, 0}, {8, 0}, {9, 0}}, []string{"sm_80", "sm_90a"}},
		{[][2]int{{8, 7}}, []string{"sm_86"}},
		{[][2]int{{10, 0}, {12, 0}}, []string{"sm_90"}},
		{[][2]int{{7, 5}}, nil},
		{nil, nil},
	}
	for _, test := range tests {
		var gpus []weftruntime.Properties
		for _, c := range test.capabilities {
			gpus = append(gpus, weftruntime.Properties{Name: "GPU", ComputeMajor: c[0], ComputeMinor: c[1]})
		}
		got, err := targetsOf(gpus)
		if !slices.Equal(got, test.want) || (err != nil) != (test.want == nil) {
			t.Errorf("%v: %v, %v", test.capabilities, got, err)
		}
		if err != nil && diag.All(err)[0].Code != diag.DeviceUnavailable {
			t.Errorf("%v: %v", test.capabilities, err)
		}
	}
}
