package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/cobra"

	"weft/ir/diag"
)

// configFile is weft.yaml: what the flags of compile say, in a file. A flag that is given wins over
// the file. Mappings whose order counts (axes, rules) keep it.
type configFile struct {
	Targets   []string      `yaml:"targets"`
	Dims      []string      `yaml:"dims"`
	Weights   string        `yaml:"weights"`
	Code      string        `yaml:"code"`
	Mesh      yaml.MapSlice `yaml:"mesh"`      // axis: size
	Parallel  any           `yaml:"parallel"`  // axis: strategy, or auto
	Shardings yaml.MapSlice `yaml:"shardings"` // pattern of a parameter: [axes of each dim]
	Inputs    yaml.MapSlice `yaml:"inputs"`    // pattern of an input: [axes of each dim]
	Links     yaml.MapSlice `yaml:"links"`     // axis: GB/s, for parallel: auto
	Memory    string        `yaml:"memory_limit"`
	Precision any           `yaml:"precision"` // bf16, or part: type
}

// maxConfig is the largest weft.yaml in bytes.
const maxConfig = 1 << 20

// readConfig reads a configuration file strictly: keys that weft does not know are errors.
func readConfig(path string) (*configFile, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxConfig)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, diag.Errorf(diag.FileUnreadable, "", "cannot read the configuration: %v", err).In(path).Because(err)
	}
	c := &configFile{}
	if err := aliasFree(text); err != nil {
		return nil, configError(path, err)
	}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.DisallowUnknownField(), yaml.UseOrderedMap()); err != nil {
		return nil, configError(path, err)
	}
	return c, nil
}

// aliasFree refuses anchors: a short file could ask for a huge one.
func aliasFree(text []byte) error {
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if len(ast.Filter(ast.AnchorType, doc.Body))+len(ast.Filter(ast.AliasType, doc.Body)) > 0 {
			return errors.New("anchors and aliases are not taken")
		}
	}
	return nil
}

// configError makes a diagnostic with the place of an error of the YAML library.
func configError(path string, err error) error {
	message := strings.SplitN(err.Error(), "\n", 2)[0]
	var y yaml.Error
	place := ""
	if errors.As(err, &y) {
		message = y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			place = fmt.Sprintf("%d:%d", t.Position.Line, t.Position.Column)
		}
	}
	d := diag.Errorf(diag.BadConfig, place, "%s", message).In(path)
	if name, ok := strings.CutPrefix(message, "unknown field "); ok {
		name = strings.Trim(name, `"`)
		d.Message = fmt.Sprintf("there is no key %q", name)
		if near := diag.Nearest(name, configKeys(), 3); len(near) > 0 {
			return d.Suggest("did you mean %s?", strings.Join(near, ", "))
		}
		return d.Suggest("the keys are %s", strings.Join(configKeys(), ", "))
	}
	return d
}

func configKeys() []string {
	var keys []string
	t := reflect.TypeFor[configFile]()
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("yaml"))
	}
	return keys
}

// apply gives the flags that were not given the values of the file.
func (c *configFile) apply(cmd *cobra.Command, path string, f *compileFlags) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	var errs diag.List
	bad := func(key, format string, args ...any) {
		errs = append(errs, diag.Errorf(diag.BadConfig, key, format, args...).In(path))
	}
	text := func(name, value string, into *string) {
		if value != "" && !given(name) {
			*into = value
		}
	}
	if len(c.Targets) > 0 && !given("target") {
		f.targets = c.Targets
	}
	if len(c.Dims) > 0 && !given("dim") {
		f.given.dims = c.Dims
	}
	text("weights", c.Weights, &f.weights)
	if c.Code != "" && !slices.Contains(codes, c.Code) {
		bad("code", "%q is none of %s", c.Code, strings.Join(codes, ", "))
	}
	text("code", c.Code, &f.code)
	text("mesh", joined(c.Mesh, "="), &f.mesh)
	text("links", joined(c.Links, "="), &f.links)
	if c.Memory != "" && !given("memory-limit") {
		if err := (*byteSize)(&f.memoryLimit).Set(c.Memory); err != nil {
			bad("memory_limit", "%v", err)
		}
	}
	text("parallel", assignments(c.Parallel, ":", "parallel", bad), &f.parallel)
	text("precision", assignments(c.Precision, "=", "precision", bad), &f.precision)
	if !given("shard") {
		f.shard = rules(c.Shardings, "shardings", bad)
	}
	if !given("shard-input") {
		f.shardInput = rules(c.Inputs, "inputs", bad)
	}
	return errs.Err()
}

// joined is a mapping as flags have it: "dp=8,tp=4".
func joined(m yaml.MapSlice, between string) string {
	parts := make([]string, len(m))
	for i, item := range m {
		parts[i] = fmt.Sprint(item.Key, between, item.Value)
	}
	return strings.Join(parts, ",")
}

// assignments is a text, or a mapping as flags have it.
func assignments(v any, between, key string, bad func(key, format string, args ...any)) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case yaml.MapSlice:
		return joined(v, between)
	}
	bad(key, "it is neither a text nor a mapping")
	return ""
}

// rules are the rules of a mapping from patterns to the axes of each dim, as flags have them.
func rules(m yaml.MapSlice, key string, bad func(key, format string, args ...any)) []string {
	var list []string
	for _, item := range m {
		dims, ok := item.Value.([]any)
		if !ok {
			bad(key, "%v is not a list with one entry a dim", item.Key)
			continue
		}
		texts := make([]string, len(dims))
		for i, dim := range dims {
			switch axes := dim.(type) {
			case nil:
				texts[i] = "*"
			case []any:
				texts[i] = "(" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint(axes), "[]")), ", ") + ")"
			default:
				texts[i] = fmt.Sprint(axes)
			}
		}
		list = append(list, fmt.Sprintf("%v=[%s]", item.Key, strings.Join(texts, ", ")))
	}
	return list
}

// byteSize is a flag of a number of bytes, with a unit.
type byteSize int64

var byteUnits = []struct {
	name string
	size float64
}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return fmt.Sprintf("%dB", int64(*b))
}

func (b *byteSize) Type() string { return "size" }

// Set reads a number and its unit, such as 80GB.
func (b *byteSize) Set(text string) error {
	for _, unit := range byteUnits {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), unit.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err == nil && v > 0 && v*unit.size < 1<<60 {
			*b = byteSize(v * unit.size)
			return nil
		}
	}
	return fmt.Errorf("%q is no size such as 80GB", text)
}
