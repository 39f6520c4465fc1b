// Package onnx imports ONNX models: it decodes the file (decode.go, tensor.go), walks the graph
// with its functions and subgraphs (graph.go), and lowers each operator to primitives through
// one table by operator and version (table.go, lower_*.go). Shapes that exporters compute in
// the graph are evaluated with symbolic sizes by lower.Known.
package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// Options are the choices of an import.
type Options struct {
	// Entry names the program's entry; empty means "forward".
	Entry string
	// Constants fixes inputs of the graph to values: they are no inputs of the program. It
	// makes shapes that depend on an input (the shape of a Reshape, the k of a TopK) known. A
	// key is an input's name or in.N; values are converted to the input's type.
	Constants map[string]*ir.Tensor
	// Sizes fixes dims of inputs during the import, so that branches that depend on them are
	// decided. A key is a dim's name in the program, INPUT[AXIS] or in.N[AXIS]; keys that the
	// model does not have are left alone. A dim that was fixed by its name stays among the
	// program's symbols, with a range of one size.
	Sizes map[string]int64
}

// The versions that are read.
const (
	minOpset, maxOpset     = 7, 28
	minIRVersion, maxIRVer = 3, 14
)

// maxRounds limits how often a graph is walked again because dims were found to be equal.
const maxRounds = 64

// Import reads an ONNX file. Weights are views of the mapped file and of the external data
// files beside it, so the result must be closed. Errors are diagnostics.
func Import(path string, opt Options) (*lower.Imported, error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	external := &externalFiles{folder: filepath.Dir(path), open: map[string]*weights.Mapping{}, order: []*weights.Mapping{m}}
	out, err := importModel(m.Data, external, opt)
	if err != nil {
		for _, c := range external.order {
			c.Close()
		}
		return nil, inFile(err, path)
	}
	for _, w := range out.Warnings {
		w.File = path
	}
	return out, nil
}

// ImportBytes reads a model from memory, which must stay unchanged while the result is used.
// External data are refused.
func ImportBytes(data []byte, opt Options) (*lower.Imported, error) {
	return importModel(data, &externalFiles{open: map[string]*weights.Mapping{}}, opt)
}

func inFile(err error, path string) error {
	list := diag.All(err)
	for _, d := range list {
		if d.File == "" {
			d.File = path
		}
	}
	return err
}

func importModel(data []byte, external *externalFiles, opt Options) (*lower.Imported, error) {
	model, err := decodeModel(data)
	if err != nil {
		return nil, err
	}
	return importDecoded(model, external, opt)
}

func importDecoded(model *modelProto, external *externalFiles, opt Options) (*lower.Imported, error) {
	if err := checkVersions(model); err != nil {
		return nil, err
	}
	if opt.Entry == "" {
		opt.Entry = "forward"
	}
	table, same := operators(), map[string]ir.Dim{}
	var unified diag.List
	for range maxRounds {
		im := newImporter(model, external, table, opt, same)
		err := im.run()
		if len(im.found) == 0 {
			if err != nil {
				return nil, err
			}
			return im.finish(unified)
		}
		unified = append(unified, im.unified...)
		for _, f := range im.found {
			substituteAll(same, f.symbol, f.dim)
		}
	}
	return nil, diag.Errorf(diag.ONNXLimit, "", "dims were found to be equal in more than %d rounds", maxRounds).
		Suggest("name equal dims alike in the exporter")
}

// substituteAll adds a substitution and applies it to those that there are.
func substituteAll(same map[string]ir.Dim, symbol string, to ir.Dim) {
	replace := func(name string) (ir.Dim, bool) {
		if name == symbol {
			return to, true
		}
		return ir.Dim{}, false
	}
	for s, d := range same {
		same[s] = d.Substitute(replace)
	}
	same[symbol] = to
}

func decodeModel(data []byte) (*modelProto, error) {
	d := &decoder{base: data[:len(data):len(data)]}
	if len(data) == 0 {
		return nil, diag.Errorf(diag.NotONNX, "", "the file is empty").Suggest("give the .onnx file that the exporter wrote")
	}
	m, err := d.model(d.base)
	if err != nil {
		var e *decodeError
		errors.As(err, &e)
		code := diag.ONNXDamaged
		if e.limit {
			code = diag.ONNXLimit
		}
		return nil, diag.Errorf(code, fmt.Sprintf("byte %d", e.offset), "the file is not a well-formed ONNX model: %s", e.what).
			Suggest("check that the file is an ONNX model and was copied whole")
	}
	if m.graph == nil {
		return nil, diag.Errorf(diag.NotONNX, "", "the file holds no ONNX graph").Suggest("give the .onnx file that the exporter wrote")
	}
	return m, nil
}

func checkVersions(m *modelProto) error {
	if m.irVersion < minIRVersion || m.irVersion > maxIRVer {
		return diag.Errorf(diag.ONNXVersion, "", "IR version %d; weft reads %d to %d", m.irVersion, minIRVersion, maxIRVer).
			Suggest("export the model again, or convert it with onnx.version_converter")
	}
	seen := map[string]int64{}
	for _, o := range m.opsets {
		domain := canonicalDomain(o.domain)
		if version, twice := seen[domain]; twice && version != o.version {
			return diag.Errorf(diag.ONNXGraph, "", "the model imports opsets %d and %d of domain %q", version, o.version, o.domain).Suggest("export the model again")
		}
		seen[domain] = o.version
		if domain == "" && (o.version < minOpset || o.version > maxOpset) {
			return diag.Errorf(diag.ONNXVersion, "", "opset %d; weft reads %d to %d", o.version, minOpset, maxOpset).
				Suggest("export the model for another opset, or convert it with onnx.version_converter")
		}
	}
	if _, given := seen[""]; !given && len(m.functions) == 0 && slices.ContainsFunc(m.graph.nodes, func(n *nodeProto) bool { return canonicalDomain(n.domain) == "" }) {
		return diag.Errorf(diag.ONNXVersion, "", "the model does not say which opset it uses").Suggest("export the model again")
	}
	return nil
}

// canonicalDomain maps the long name of the default domain to the short one.
func canonicalDomain(d string) string {
	if d == "ai.onnx" {
		return ""
	}
	return d
}

// importer makes the program of one round over the graph.
type importer struct {
	model     *modelProto
	external  *externalFiles
	table     map[string][]version
	opt       Options
	functions map[functionKey]*functionProto
	opsets    map[string]int64

	program *ir.Program
	entry   *ir.Entry
	known   *lower.Known
	random  *lower.Generator

	states     []stateUse
	stateNames map[string]bool
	stored     map[*tensorProto]ir.Value // tensors that became states
	symbols    map[string]string         // the symbol of each dim_param
	taken      map[string]bool           // symbols in use
	sizes      map[string]int64          // symbols that have a size
	constants  map[string]*ir.Tensor     // inputs that are fixed, by name

	same    map[string]ir.Dim // substitutions that earlier rounds found
	found   []substitution    // that this round found
	unified diag.List         // the warnings of found

	warnings    diag.List
	errors      diag.List
	unsupported []unsupportedUse
	calls       []functionKey // functions that are being inlined
	steps       int           // nodes lowered
}

type substitution struct {
	symbol string
	dim    ir.Dim
}

// stateUse is a tensor of the file that became a state.
type stateUse struct {
	order  int // position among the tensors of the file
	name   string
	tensor *ir.Tensor
	kind   ir.StateKind
	value  ir.Value
}

type functionKey struct{ domain, name, overload string }

func newImporter(m *modelProto, external *externalFiles, table map[string][]version, opt Options, same map[string]ir.Dim) *importer {
	im := &importer{model: m, external: external, table: table, opt: opt, same: same,
		functions: map[functionKey]*functionProto{}, opsets: map[string]int64{},
		program: &ir.Program{}, stateNames: map[string]bool{}, stored: map[*tensorProto]ir.Value{}, symbols: map[string]string{}, taken: map[string]bool{}, sizes: map[string]int64{},
		constants: map[string]*ir.Tensor{}}
	maps.Copy(im.sizes, opt.Sizes)
	im.entry = &ir.Entry{Name: opt.Entry}
	im.program.Entries = []*ir.Entry{im.entry}
	im.known = lower.NewKnown(im.program, im.entry)
	im.random = lower.NewGenerator(im.program, im.entry)
	for _, o := range m.opsets {
		im.opsets[canonicalDomain(o.domain)] = o.version
	}
	return im
}

// run walks the graph. Its error lists everything that is wrong.
func (im *importer) run() error {
	for _, f := range im.model.functions {
		key := functionKey{canonicalDomain(f.domain), f.name, f.overload}
		if im.functions[key] != nil {
			return diag.Errorf(diag.ONNXFunction, f.name, "two functions have this name").Suggest("export the model again")
		}
		im.functions[key] = f
	}
	if err := im.checkOptions(); err != nil {
		return err
	}
	im.resolveSizes()
	if err := ir.Try(im.graph); err != nil {
		im.report(err)
	}
	im.reportUnsupported()
	im.errors.Sort()
	return im.errors.Err()
}

// checkOptions checks what can be checked before the walk: sizes, and names of inputs.
func (im *importer) checkOptions() error {
	for _, name := range slices.Sorted(maps.Keys(im.opt.Sizes)) {
		if im.opt.Sizes[name] < 0 {
			return diag.Errorf("W0001", name, "dim %q cannot have the size %d", name, im.opt.Sizes[name]).Suggest("give a size of at least 1")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.opt.Constants)) {
		in := im.inputNamed(name)
		if in == nil {
			d := diag.Errorf("W0002", "--constant", "the model has no input %q", name)
			for _, in := range im.model.graph.inputs {
				d.Note("input %q", in.name)
			}
			return d
		}
		if im.constants[in.name] != nil {
			return diag.Errorf("W0002", "--constant", "input %q is fixed twice", in.name)
		}
		t, err := im.constantOf(in, im.opt.Constants[name])
		if err != nil {
			return err
		}
		im.constants[in.name] = t
	}
	return nil
}

// inputNamed finds an input of the caller by its name, or as in.N; nil where there is none.
func (im *importer) inputNamed(name string) *valueInfoProto {
	number, stored := 0, im.model.graph.stored()
	var numbered *valueInfoProto
	for _, in := range im.model.graph.inputs {
		if in.name == name {
			return in
		}
		if stored[in.name] {
			continue
		}
		if fmt.Sprintf("in.%d", number) == name {
			numbered = in
		}
		number++
	}
	return numbered
}

// constantOf converts what an input is fixed to into its declared type.
func (im *importer) constantOf(in *valueInfoProto, t *ir.Tensor) (*ir.Tensor, error) {
	if t == nil || in.kind == nil || in.kind.tensor == nil {
		return nil, diag.Errorf("W0002", "--constant", "input %q cannot be fixed: it is no tensor", in.name)
	}
	dtype, d := elementType(in.kind.tensor.elem, in.name)
	if d != nil {
		return nil, d
	}
	want := ir.TensorOf(dtype, ir.Consts(t.Shape...)...)
	if in.kind.tensor.hasShape {
		want.Shape = make([]ir.Dim, len(in.kind.tensor.dims))
		for i, dim := range in.kind.tensor.dims {
			want.Shape[i] = ir.Sym(dimName(dim.param, in.name, i))
			if dim.hasValue && dim.value >= 0 {
				want.Shape[i] = ir.Const(dim.value)
			}
		}
	}
	return lower.AsConstant(in.name, t, want)
}

// maxErrors limits how many errors one import lists.
const maxErrors = 40

func (im *importer) report(err error) {
	for _, d := range diag.All(err) {
		if d == poisoned || len(im.errors) >= maxErrors {
			continue
		}
		if len(d.Message) > 1<<12 {
			d.Message = d.Message[:1<<12] + " ..."
		}
		im.errors = append(im.errors, d)
	}
}

// finish cleans the program up and makes the result.
func (im *importer) finish(unified diag.List) (*lower.Imported, error) {
	lower.Simplify(im.program, im.entry, im.known)
	im.orderStates()
	var regions []weights.Region
	for _, s := range im.states {
		im.program.States = append(im.program.States, ir.State{Name: s.name, Type: s.tensor.Type(), Kind: s.kind})
		regions = append(regions, weights.Region{Name: s.name, DType: s.tensor.DType, Shape: s.tensor.Shape, Data: s.tensor.Data})
	}
	im.dropSymbols()
	closers := im.external.closers()
	source, err := weights.FromRegions(regions, closers...)
	if err != nil {
		return nil, err
	}
	warnings := append(unified, im.warnings...)
	warnings.Sort()
	return &lower.Imported{Program: im.program, Weights: source, Warnings: warnings}, nil
}

// orderStates puts the inputs that read states behind the caller's, in the order of the file,
// and drops those that the simplified program does not use.
func (im *importer) orderStates() {
	used := map[ir.Value]bool{}
	im.entry.Body.Uses(func(v *ir.Value) { used[*v] = true })
	im.states = slices.DeleteFunc(im.states, func(s stateUse) bool { return !used[s.value] })
	slices.SortStableFunc(im.states, func(a, b stateUse) int { return cmp.Compare(a.order, b.order) })
	var inputs []ir.Input
	var params []ir.Value
	for i, in := range im.entry.Inputs {
		if in.State == "" {
			inputs, params = append(inputs, in), append(params, im.entry.Body.Params[i])
		}
	}
	for _, s := range im.states {
		inputs, params = append(inputs, ir.Input{Name: s.name, State: s.name}), append(params, s.value)
	}
	for i, in := range im.entry.Inputs {
		if s := im.program.State(in.State); s != nil && s.Kind == ir.Generator {
			inputs, params = append(inputs, in), append(params, im.entry.Body.Params[i])
		}
	}
	im.entry.Inputs, im.entry.Body.Params = inputs, params
}

// dropSymbols removes symbols that no type of an input mentions, but those that have one size.
func (im *importer) dropSymbols() {
	used := map[string]bool{}
	for _, p := range im.entry.Body.Params {
		for _, d := range im.entry.Type(p).Shape {
			d.Symbols(func(name string) { used[name] = true })
		}
	}
	im.program.Symbols = slices.DeleteFunc(im.program.Symbols, func(s ir.Symbol) bool { return !used[s.Name] && s.Min < s.Max })
}

// unsupportedUse is a node whose operator has no row in the table.
type unsupportedUse struct{ operator, place string }

func (im *importer) reportUnsupported() {
	if len(im.unsupported) == 0 {
		return
	}
	places := map[string][]string{}
	var order []string
	for _, u := range im.unsupported {
		if places[u.operator] == nil {
			order = append(order, u.operator)
		}
		places[u.operator] = append(places[u.operator], u.place)
	}
	slices.Sort(order)
	d := diag.Errorf("W2001", "", "%s of %s not supported", count(len(im.unsupported), "node"), count(len(order), "operator"))
	if len(im.unsupported) == 1 {
		d.Message = "1 node of an operator that is not supported"
	}
	for _, op := range order {
		at := places[op]
		shown := at[:min(len(at), 8)]
		more := ""
		if len(shown) < len(at) {
			more = fmt.Sprintf(" and %d more", len(at)-len(shown))
		}
		d.Note("%s (%s): %s%s", op, count(len(at), "node"), strings.Join(shown, ", "), more)
	}
	d.Suggest("%s", unsupportedAdvice(order))
	im.errors = append(im.errors, d)
}

// withoutLowering says what to do about operators that cannot have a lowering.
func withoutLowering() map[string]string {
	const strings = "weft computes with numbers: map strings to numbers before the run"
	return map[string]string{
		"NonMaxSuppression": "NonMaxSuppression keeps a number of boxes that depends on data: end the model at its boxes and scores, and suppress after the run; or take a fixed number with TopK",
		"Unique":            "Unique gives a number of elements that depends on data: end the model at its input, and remove duplicates after the run; to count known values, Equal and ReduceSum",
		"ImageDecoder":      "ImageDecoder gives an image whose size depends on data: decode before the run, and make the pixels an input",
		"StringConcat":      strings, "StringSplit": strings, "StringNormalizer": strings, "RegexFullMatch": strings,
	}
}

// unsupportedAdvice says what is known about operators, given in the order of their names.
func unsupportedAdvice(operators []string) string {
	known := withoutLowering()
	var parts []string
	for _, op := range operators {
		advice, ok := known[op]
		if !ok {
			advice = "`weft support FILE` lists what is; export without these operators or for another opset"
		}
		if !slices.Contains(parts, advice) {
			parts = append(parts, advice)
		}
	}
	return strings.Join(parts, "; ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
