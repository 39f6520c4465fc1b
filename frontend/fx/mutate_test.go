package fx

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

var mutations = flag.Int("mutations", 40, "mutated graphs that TestMutations tries for each model")

// TestMutations changes nodes of real graphs at random, keeping their JSON valid, and wants a
// diagnostic that is no bug, or a program that verifies.
func TestMutations(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(modelsDir, "ops_*", "model.pt2"))
	ranks, _ := filepath.Glob(filepath.Join(modelsDir, "..", "ranks", "collectives_*", "model.pt2"))
	files = append(files, ranks...)
	for i, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := modelJSON(t, filepath.Join("..", filepath.Base(filepath.Dir(filepath.Dir(file))), name))
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range *mutations {
				mutated := mutate(t, text, r)
				m, err := importGraph(mutated, nil, Options{})
				if err == nil {
					err = ir.Verify(m.Program)
				} else if !hasBug(err) {
					continue
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, difference(text, mutated))
				}
			}
		})
	}
}

func hasBug(err error) bool {
	for _, d := range diag.All(err) {
		if d.Code == diag.Bug {
			return true
		}
	}
	return false
}

// mutate changes one to three values inside the nodes of a graph.
func mutate(t *testing.T, text []byte, r *rand.Rand) []byte {
	var model map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // int64 does not fit a float64
	if err := d.Decode(&model); err != nil {
		t.Fatal(err)
	}
	graph := model["graph_module"].(map[string]any)["graph"].(map[string]any)
	nodes := graph["nodes"].([]any)
	var names []string
	for name := range graph["tensor_values"].(map[string]any) {
		names = append(names, name)
	}
	strings := sorted(names)
	for range 1 + r.IntN(3) {
		node := nodes[r.IntN(len(nodes))].(map[string]any)
		target := node[[]string{"inputs", "inputs", "inputs", "outputs"}[r.IntN(4)]]
		change(target, r, strings)
	}
	out, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sorted(list []string) []string {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// change replaces one leaf below v, or drops or repeats an element of a list.
func change(v any, r *rand.Rand, names []string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			i := r.IntN(len(v))
			if v[i] = changed(v[i], r, names); r.IntN(8) == 0 {
				v[i] = v[r.IntN(len(v))]
			}
		}
	case map[string]any:
		for _, key := range sorted(keys(v)) {
			if key == "name" && r.IntN(3) > 0 && len(v) > 1 {
				continue // names of arguments
			}
			if r.IntN(2) == 0 || len(v) == 1 {
				v[key] = changed(v[key], r, names)
			}
		}
	}
}

func keys(m map[string]any) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	return list
}

var hostileInts = []float64{0, 1, -1, 2, -2, 3, 5, 7, 64, 1 << 20, 1 << 40, -1 << 40, 1<<53 - 1}

func changed(v any, r *rand.Rand, names []string) any {
	switch v := v.(type) {
	case json.Number:
		return hostileInts[r.IntN(len(hostileInts))]
	case bool:
		return !v
	case string:
		if r.IntN(4) == 0 {
			return "mean"
		}
		return names[r.IntN(len(names))]
	case []any:
		if len(v) > 1 && r.IntN(3) == 0 {
			return v[:len(v)-1]
		}
	}
	change(v, r, names)
	return v
}

// difference shows where two texts differ, as far as a failure needs it.
func difference(_, mutated []byte) string {
	return strings.ReplaceAll(string(mutated[:min(len(mutated), 3000)]), "\n", " ")
}
