// Package target describes the GPUs that weft compiles for. A description is a text file in
// targets/, one "key value" a line: a new GPU is a new file and, where its instructions are
// new, a newer llc.
package target

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weft/ir/diag"
)

// Target is a GPU description.
type Target struct {
	Name            string  // "sm_90a"
	Title           string  // "Hopper (H100, H200)"
	Compute         int     // 90
	ArchSpecific    bool    // runs on exactly this architecture
	Warpgroups      bool    // multiplies by warpgroups (wgmma)
	PTX             string  // version that llc writes for it, "8.0"
	MinDriver       string  // oldest driver that loads it
	Multiprocessors int     // of the largest part
	SharedPerBlock  int     // bytes after opting in
	Memory          int64   // bytes of the usual part
	HalfTFLOPS      float64 // dense products of bf16 on tensor cores, 1e12 a second, by the maker's data sheet
	BandwidthGBs    float64 // of memory, 1e9 bytes a second, by the data sheet
}

//go:embed targets/*.txt
var files embed.FS

// All lists the targets in ascending order.
func All() []Target {
	names, err := fs.Glob(files, "targets/*.txt")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var all []Target
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		t, err := parse(strings.TrimSuffix(strings.TrimPrefix(name, "targets/"), ".txt"), string(text))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names lists the names of the targets in ascending order.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}

// Find gives the target of a name.
func Find(name string) (Target, error) {
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
	}
	return Target{}, diag.Errorf("W0002", "--target", "there is no target %q", name).Suggest("targets are %s", strings.Join(Names(), ", "))
}

// FindAll gives the targets of names, in their order.
func FindAll(names []string) ([]Target, error) {
	targets := make([]Target, len(names))
	for i, name := range names {
		t, err := Find(name)
		if err != nil {
			return nil, err
		}
		targets[i] = t
	}
	return targets, nil
}

// Memory is what one rank may use on any of the targets, in bytes: the limit where there is one, else
// what the smallest has; 0 where nothing is known.
func Memory(targets []Target, limit int64) int64 {
	if limit != 0 {
		return limit
	}
	for _, t := range targets {
		if limit == 0 || t.Memory < limit {
			limit = t.Memory
		}
	}
	return limit
}

func parse(name, text string) (Target, error) {
	t := Target{Name: name}
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if err := t.set(key, strings.TrimSpace(value)); err != nil {
			return t, fmt.Errorf("target %s: %s: %w", name, key, err)
		}
	}
	return t, scanner.Err()
}

func (t *Target) set(key, value string) (err error) {
	switch key {
	case "title":
		t.Title = value
	case "compute":
		t.Compute, err = strconv.Atoi(value)
	case "arch_specific":
		t.ArchSpecific, err = strconv.ParseBool(value)
	case "warpgroups":
		t.Warpgroups, err = strconv.ParseBool(value)
	case "ptx":
		t.PTX = value
	case "min_driver":
		t.MinDriver = value
	case "multiprocessors":
		t.Multiprocessors, err = strconv.Atoi(value)
	case "shared_per_block":
		t.SharedPerBlock, err = strconv.Atoi(value)
	case "memory":
		t.Memory, err = strconv.ParseInt(value, 10, 64)
	case "half_tflops":
		t.HalfTFLOPS, err = strconv.ParseFloat(value, 64)
	case "bandwidth_gbs":
		t.BandwidthGBs, err = strconv.ParseFloat(value, 64)
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}
