package runtime_test

import (
	"os"
	"path/filepath"
	"testing"

	"weft/ir"
	"weft/runtime"
	"weft/runtime/artifact"
)

// mapsPlan copies the two last rows, and two rows after them, of the last plane of x and of the one after it to y. The
// tensor map leaves the first plane of x out.
const mapsPlan = `{"version":"1.1","target":"sm_90a","entry":"forward","dims":[{"name":"n","min":1,"max":9},{"name":"m","min":0,"max":9}],
"inputs":[{"name":"x","dtype":"f32","shape":["n","m","32"]}],
"outputs":[{"name":"y","dtype":"f32","shape":["2","4","32"]}],
"buffers":[{"kind":"input","size":"128*m*n"},{"kind":"output","size":"1024"}],
"steps":[{"launch":{"kernel":"box3","grid":["1","1","1"],"block":256,"label":"the end of x","args":[
 {"buffer":1,"access":"w"},{"buffer":-1,"value":"0","bits":32},{"buffer":-1,"value":"m - 2","bits":32},{"buffer":-1,"value":"n - 2","bits":32},
 {"buffer":0,"access":"r","map":{"dtype":"f32","offset":"128*m","dims":["32","m","n - 1"],"strides":["128","128*m"],"box":[32,4,2],"swizzle":128}}]}}]}`

// mapsArtifact is of mapsPlan and the kernels of the device tests.
func mapsArtifact(t *testing.T) *artifact.Artifact {
	t.Helper()
	ptx, err := os.ReadFile("devicetest/testdata/tma.ptx")
	check(t, err)
	path := filepath.Join(t.TempDir(), "maps.weft")
	check(t, artifact.Write(path, artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"),
		Manifest: artifact.Manifest{Weft: "test", Entries: []artifact.Entry{{Name: "forward"}}, Targets: []artifact.Target{{Name: "sm_90a"}}},
		Kernels:  []artifact.Kernels{{Target: "sm_90a", PTX: ptx}},
		Plans:    []artifact.Plan{{Target: "sm_90a", Entry: "forward", JSON: []byte(mapsPlan)}},
	}))
	a, err := artifact.Open(path)
	check(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// Sessions bind tensor maps for all sizes, those without elements too.
func TestTensorMapsOfPlans(t *testing.T) {
	onDevices(t, func(t *testing.T, device runtime.Device) {
		if device.Properties().ComputeMajor < 9 {
			t.Skip("the device has no tensor memory accelerator")
		}
		s, err := runtime.Open(mapsArtifact(t), device, runtime.Options{})
		check(t, err)
		defer s.Close()
		for _, size := range [][2]int64{{1, 4}, {2, 0}, {3, 1}, {3, 2}, {9, 9}, {3, 2}} {
			n, m := size[0], size[1]
			x := ir.NewTensor(ir.F32, n, m, 32)
			for i := range x.Numel() {
				x.SetFloat(i, float64(i+1))
			}
			got, err := s.Run("forward", []*ir.Tensor{x})
			check(t, err)
			for i := range int64(256) {
				plane, row := n-1+i/128, m-2+i/32%4
				want, unit := 0.0, i%32/4^i/32%8 // as swizzled: by the number of the 128 bytes
				if plane > 0 && plane < n && row >= 0 && row < m {
					want = float64((plane*m+row)*32 + unit*4 + i%4 + 1)
				}
				if v := got.Outputs[0].Float(i); v != want {
					t.Fatalf("n = %d, m = %d: element %d is %v, want %v", n, m, i, v, want)
				}
			}
		}
	})
}
