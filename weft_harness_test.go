package weft

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weft/codegen"
	"weft/codegen/llvm"
	"weft/codegen/ptx"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/eval"
	"weft/ir/plan"
	"weft/ir/target"
	"weft/passes"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/emu"
)

// subject is a program under test, on its way from text to results on the emulator.
type subject struct {
	name     string
	program  *ir.Program
	spec     spec
	compiled *Compiled
}

// spec is what the comments of a program of testdata/programs ask for:
//
//	// sizes: n=1 m=7          one run with these sizes of the dims; any number of lines
//	// input NAME: STYLE       how values are made (see styled); also for states
//	// within: N ulp | N       the error allowed; see spec.allowed
//	// schedule: GROUP {...}   a variant of the program with this schedule for all groups of a kind; GROUP.warpgroup {...}: on
//	                           targets that multiply by warpgroups
//	// unoptimised             a variant with all optional passes left out
type spec struct {
	sizes       []map[string]int64
	styles      map[string]string
	ulps        float64
	relative    float64 // to the element and to the largest element of the tensor
	schedules   []override
	unoptimised bool
}

// override is a schedule for all kernel groups of a kind.
type override struct {
	group    string
	schedule ir.Schedule
}

var directive = regexp.MustCompile(`(?m)^// (sizes|input ([^:\n]+)|within|schedule|unoptimised)(?:: *(.*))?$`)

func parseSpec(text string) (spec, error) {
	s := spec{styles: map[string]string{}, ulps: -1}
	for _, m := range directive.FindAllStringSubmatch(text, -1) {
		var err error
		switch what, rest := strings.Fields(m[1])[0], strings.TrimSpace(m[3]); what {
		case "sizes":
			sizes := map[string]int64{}
			for _, pair := range strings.Fields(rest) {
				name, value, _ := strings.Cut(pair, "=")
				if sizes[name], err = strconv.ParseInt(value, 10, 64); err != nil {
					return s, err
				}
			}
			s.sizes = append(s.sizes, sizes)
		case "input":
			s.styles[m[2]] = rest
		case "within":
			if number, ok := strings.CutSuffix(rest, " ulp"); ok {
				s.ulps, err = strconv.ParseFloat(number, 64)
			} else {
				s.relative, err = strconv.ParseFloat(rest, 64)
			}
		case "schedule":
			var o override
			if o, err = parseOverride(rest); err == nil {
				s.schedules = append(s.schedules, o)
			}
		case "unoptimised":
			s.unoptimised = true
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", m[0], err)
		}
	}
	if len(s.sizes) == 0 {
		s.sizes = []map[string]int64{{}}
	}
	return s, nil
}

// parseOverride reads "GROUP {threads = 64, ...}" by way of a kernel's text.
func parseOverride(text string) (override, error) {
	group, schedule, _ := strings.Cut(text, " ")
	kind, _, _ := strings.Cut(group, ".")
	p, err := ir.ParseProgram("schedule", fmt.Appendf(nil, "entry e() {\n() = kernel() {group = %s, schedule = %s} do { yield }\nreturn }", kind, schedule))
	if err != nil {
		return override{}, err
	}
	a := p.Entries[0].Body.Ops[0].Attrs.(*ir.KernelAttrs)
	return override{group, a.Schedule}, nil
}

// allowed is the error allowed for an element: an ulp count of the type, by default 0 for
// integers and bools, 4 for float32 and float64, 1 for the half types (the float32 below is
// exact to a few ulp, so that the rounding can only go to a neighbour); or a fraction of the
// element and of the largest element of the tensor.
func (s spec) allowed(t ir.DType, want, largest float64) float64 {
	if !t.IsFloat() {
		return 0
	}
	ulps := s.ulps
	if ulps < 0 {
		ulps = 4
		if t.Bits() == 16 {
			ulps = 1
		}
	}
	return max(ulps*ulp(t, want), s.relative*(math.Abs(want)+largest))
}

// ulp is the distance between neighbouring values of a type at x.
func ulp(t ir.DType, x float64) float64 {
	digits, least := map[ir.DType]int{ir.F64: 52, ir.F32: 23, ir.F16: 10, ir.BF16: 7}[t], map[ir.DType]int{ir.F64: -1022, ir.F32: -126, ir.F16: -14, ir.BF16: -126}[t]
	exponent := least
	if x != 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
		exponent = max(math.Ilogb(x), least)
	}
	return math.Ldexp(1, exponent-digits)
}

// compareTensors tells the first elements that are too far from what they should be.
func (s spec) compareTensors(got, want *ir.Tensor) error {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("%s, not %s", got.Type(), want.Type())
	}
	if !want.DType.IsFloat() {
		if bytes.Equal(got.Data, want.Data) {
			return nil
		}
		for i := range want.Numel() {
			if got.Int(i) != want.Int(i) {
				return fmt.Errorf("%s: element %d is %d, not %d", want.Type(), i, got.Int(i), want.Int(i))
			}
		}
	}
	largest := 0.0
	for i := range want.Numel() {
		if x := math.Abs(want.Float(i)); x > largest && !math.IsInf(x, 0) {
			largest = x
		}
	}
	wrong, first := 0, ""
	for i := range want.Numel() {
		x, y := got.Float(i), want.Float(i)
		equal := x == y || math.IsNaN(x) && math.IsNaN(y)
		if s.ulps == 0 && s.relative == 0 {
			equal = equal && math.Signbit(x) == math.Signbit(y) || math.IsNaN(x) && math.IsNaN(y)
		}
		if !equal && !(math.Abs(x-y) <= s.allowed(want.DType, y, largest)) {
			if wrong == 0 {
				first = fmt.Sprintf("element %d is %g, not %g", i, x, y)
			}
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of %d wrong; %s", want.Type(), wrong, want.Numel(), first)
	}
	return nil
}

// schedule runs the passes, checking after each that the program is valid, prints and parses,
// and that the pass says so when it changes it.
func (s *subject) schedule(disabled []string, o *override) error {
	if err := ir.Verify(s.program); err != nil {
		return err
	}
	scheduled := s.program.Clone()
	before := scheduled.String()
	report, err := passes.Run(scheduled, passes.Options{Disabled: disabled, Verify: true, After: func(pass string, changed bool, p *ir.Program) error {
		if pass == "fuse" && o != nil {
			applyOverride(p, *o)
		}
		text := p.String()
		if !changed && text != before {
			return fmt.Errorf("pass %s says that it changed nothing, and made\n%s\nof\n%s", pass, text, before)
		}
		before = text
		again, err := ir.ParseProgram(pass, []byte(text))
		if err != nil {
			return fmt.Errorf("after %s the program does not parse: %w\n%s", pass, err, text)
		}
		if again.String() != text {
			return fmt.Errorf("after %s the program prints otherwise when parsed again:\n%s\n%s", pass, text, again)
		}
		return nil
	}})
	if err != nil {
		return err
	}
	s.compiled = &Compiled{Imported: s.program, Scheduled: scheduled, Report: report, PTX: map[string][]byte{}}
	s.compiled.aim(corpusTargets...)
	if s.compiled.Lowered, err = codegen.Lower(scheduled, s.compiled.targets...); err != nil {
		return err
	}
	for _, l := range s.compiled.Lowered {
		if _, err := plan.Prove(l.Plans, l.Targets, 0); err != nil {
			return err
		}
	}
	s.compiled.aim(corpusTargets[:len(s.compiled.Lowered)]...)
	return nil
}

// aim sets the targets of an artifact.
func (c *Compiled) aim(names ...string) {
	targets, err := target.FindAll(names)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	c.config.Targets, c.targets = names, targets
}

func applyOverride(p *ir.Program, o override) {
	for _, e := range p.Entries {
		e.Body.Walk(func(op *ir.Op) {
			a, ok := op.Attrs.(*ir.KernelAttrs)
			switch {
			case ok && a.Group.String() == o.group:
				a.Schedule = o.schedule
			case ok && a.Group.String()+".warpgroup" == o.group:
				a.Schedule, a.Warpgroup = warpgroupsElsewhere, o.schedule
				if !ir.CopiesInBulk(p, e, op.Regions[0]) {
					a.Warpgroup = withoutBulk(o.schedule)
				}
			}
		})
	}
}

// withoutBulk is a schedule whose tiles all warps copy.
func withoutBulk(s ir.Schedule) ir.Schedule {
	if s.Blocks > 0 {
		s.Threads, s.Blocks, s.WarpM = s.Threads-128, 0, 16
	}
	s.Bulk = false
	return s
}

func optionalPasses() []string {
	var names []string
	for _, p := range passes.Table() {
		if !p.Required {
			names = append(names, p.Name)
		}
	}
	return names
}

// corpusTargets are the targets whose kernels run on the emulator: the second where its kernels are others.
var corpusTargets = []string{corpusTarget, "sm_90a"}

const corpusTarget = "sm_80"

// warpgroupsElsewhere is the schedule for other targets of groups whose schedule for warpgroups is overridden.
var warpgroupsElsewhere = ir.Schedule{Threads: 128, TileM: 64, TileN: 64, TileK: 64, WarpM: 32, WarpN: 32, Stages: 3}

// assembleAll makes the PTX of all subjects for their targets with few runs of llc. It returns the kernels by target, and
// for each the first subject that has it.
func assembleAll(t testing.TB, subjects []*subject) (kernels [][]llvm.Module, owner map[string]string) {
	t.Helper()
	owner = map[string]string{}
	for i, cpu := range corpusTargets {
		aimed := slices.DeleteFunc(slices.Clone(subjects), func(s *subject) bool { return len(s.compiled.targets) <= i })
		kernels = append(kernels, assemble(t, aimed, cpu, owner))
	}
	return kernels, owner
}

// assemble makes the PTX of subjects for one target, and returns the kernels that have no owner yet.
func assemble(t testing.TB, subjects []*subject, cpu string, owner map[string]string) []llvm.Module {
	t.Helper()
	var kernels, all []llvm.Module
	seen := map[string]bool{}
	for _, s := range subjects {
		for _, k := range codegen.For(s.compiled.Lowered, cpu).Kernels {
			if !seen[k.Name] {
				seen[k.Name] = true
				all = append(all, k)
			}
			if owner[k.Name] == "" {
				owner[k.Name] = s.name
				kernels = append(kernels, k)
			}
		}
	}
	byName := map[string]ptx.Entry{}
	for _, e := range compileKernels(t, all, cpu) {
		byName[e.Name] = e
	}
	header, err := target.Find(cpu)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		text := fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n", header.PTX, cpu)
		var entries []ptx.Entry
		for _, k := range codegen.For(s.compiled.Lowered, cpu).Kernels {
			entries = append(entries, byName[k.Name])
		}
		if len(entries) > 0 {
			if text, err = ptx.Join(entries[0].Header, entries); err != nil {
				t.Fatal(err)
			}
		}
		s.compiled.PTX[cpu] = []byte(text)
	}
	return kernels
}

func compileKernels(t testing.TB, kernels []llvm.Module, cpu string) []ptx.Entry {
	t.Helper()
	compiler, err := llvm.FindCompiler(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	compiler.Jobs = 2
	entries, err := compiler.Compile(context.Background(), kernels, cpu)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// check runs the program in every way that there is, at all sizes, and compares.
func (s *subject) check(t *testing.T) {
	a, device, values := s.open(t)
	for _, target := range s.compiled.targets {
		s.checkTarget(t, a, device, target.Name, values)
	}
}

// open writes the artifact of a subject and opens it, and an emulator, for the time of the test. It gives the first values of
// the states too.
func (s *subject) open(t *testing.T) (*artifact.Artifact, runtime.Device, map[string]*ir.Tensor) {
	t.Helper()
	source, values := s.states()
	s.compiled.weights = source
	a, device := s.opened(t)
	return a, device, values
}

// opened is open for a subject that has its weights.
func (s *subject) opened(t *testing.T) (*artifact.Artifact, runtime.Device) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.weft")
	if err := s.compiled.Write(path); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	device := emu.New(emu.Options{})
	t.Cleanup(func() {
		a.Close()
		device.Close()
	})
	return a, device
}

// checkTarget runs the kernels of a target.
func (s *subject) checkTarget(t *testing.T, a *artifact.Artifact, device runtime.Device, target string, values map[string]*ir.Tensor) {
	for _, e := range s.program.Entries {
		for i, sizes := range s.spec.sizes {
			session, err := runtime.Open(a, device, runtime.Options{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.checkEntry(session, e.Name, sizes, values, uint64(i)); err != nil {
				t.Errorf("entry %s with %v for %s: %v", e.Name, sizes, target, err)
			}
			session.Close()
		}
	}
}

// checkEntry runs an entry once on both programs with the evaluator, and on the emulator.
func (s *subject) checkEntry(session *runtime.Session, entry string, sizes map[string]int64, states map[string]*ir.Tensor, seed uint64) error {
	inputs, err := s.inputs(entry, sizes, seed)
	if err != nil {
		return err
	}
	want, err := eval.Run(s.program, entry, inputs, lookup(states))
	if err != nil {
		return fmt.Errorf("evaluator: %w", err)
	}
	if err := s.checkScheduled(entry, inputs, states, want); err != nil {
		return err
	}
	got, err := session.Run(entry, inputs)
	if err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	for i, w := range want.Outputs {
		if err := s.spec.compareTensors(got.Outputs[i], w); err != nil {
			return fmt.Errorf("output %d on the emulator: %w", i, err)
		}
	}
	for name, w := range want.State {
		g, err := session.State(name)
		if err != nil {
			return err
		}
		if err := s.spec.compareTensors(g, w); err != nil {
			return fmt.Errorf("state %s on the emulator: %w", name, err)
		}
	}
	return nil
}

// checkScheduled compares the evaluator's results for the scheduled program.
func (s *subject) checkScheduled(entry string, inputs []*ir.Tensor, states map[string]*ir.Tensor, want *eval.Result) error {
	p := s.compiled.Scheduled
	all := map[string]*ir.Tensor{}
	for name, v := range states {
		all[name] = v
	}
	if p.Entry(ir.InitEntry) != nil {
		r, err := eval.Run(p, ir.InitEntry, nil, lookup(all))
		if err != nil {
			return fmt.Errorf("evaluator, init: %w", err)
		}
		for name, v := range r.State {
			all[name] = v
		}
	}
	got, err := eval.Run(p, entry, inputs, lookup(all))
	if err != nil {
		return fmt.Errorf("evaluator, scheduled program: %w", err)
	}
	for i, w := range want.Outputs {
		if err := s.spec.compareTensors(got.Outputs[i], w); err != nil {
			return fmt.Errorf("output %d of the scheduled program: %w", i, err)
		}
	}
	for name, w := range want.State {
		if err := s.spec.compareTensors(got.State[name], w); err != nil {
			return fmt.Errorf("state %s of the scheduled program: %w", name, err)
		}
	}
	return nil
}

func lookup(states map[string]*ir.Tensor) func(string) (*ir.Tensor, error) {
	return func(name string) (*ir.Tensor, error) {
		if v, ok := states[name]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("no state %q", name)
	}
}

// states makes the first values of the program's states.
func (s *subject) states() (weights.Source, map[string]*ir.Tensor) {
	values := map[string]*ir.Tensor{}
	var regions []weights.Region
	for i, st := range s.program.States {
		shape := make([]int64, len(st.Type.Shape))
		for d, dim := range st.Type.Shape {
			shape[d], _ = dim.IsConst()
		}
		v := styled(rand.New(rand.NewPCG(uint64(i), 77)), s.spec.styles[st.Name], st.Type.DType, shape)
		if st.Kind == ir.Generator {
			clear(v.Data) // as artifacts have it
		}
		values[st.Name] = v
		regions = append(regions, weights.Region{Name: st.StoredName(), DType: v.DType, Shape: shape, Data: v.Data})
	}
	if len(regions) == 0 {
		return nil, values
	}
	source, err := weights.FromRegions(regions)
	if err != nil {
		panic(err)
	}
	return source, values
}

// inputs makes the caller's inputs of an entry.
func (s *subject) inputs(entry string, sizes map[string]int64, seed uint64) ([]*ir.Tensor, error) {
	e := s.program.Entry(entry)
	var out []*ir.Tensor
	for i, in := range e.Inputs {
		if in.State != "" {
			continue
		}
		t := e.Type(e.Body.Params[i])
		shape := make([]int64, len(t.Shape))
		for d, dim := range t.Shape {
			v, err := dim.Eval(sizes)
			if err != nil {
				return nil, err
			}
			shape[d] = v
		}
		out = append(out, styled(rand.New(rand.NewPCG(seed, uint64(i))), s.spec.styles[in.Name], t.DType, shape))
	}
	return out, nil
}

// styled makes values of a style:
//
//	""         floats of a normal distribution, small integers, any bools
//	special    floats with NaN, infinities, zeros, denormals and extremes among them; integers
//	           with the extremes of their type
//	few        a few different values, so that there are ties; floats are multiples of 1/4
//	fewspecial few, with NaN, infinities and both zeros among them
//	positive   floats above 0.1
//	LO..HI     uniform; integers inclusive
func styled(r *rand.Rand, style string, t ir.DType, shape []int64) *ir.Tensor {
	v := ir.NewTensor(t, shape...)
	lo, hi, isRange := strings.Cut(style, "..")
	low, _ := strconv.ParseFloat(lo, 64)
	high, _ := strconv.ParseFloat(hi, 64)
	for i := range v.Numel() {
		switch {
		case t == ir.Bool:
			v.SetInt(i, int64(r.IntN(2)))
		case isRange && t.IsFloat():
			v.SetFloat(i, low+(high-low)*r.Float64())
		case isRange:
			v.SetInt(i, int64(low)+r.Int64N(int64(high)-int64(low)+1))
		case t.IsFloat():
			v.SetFloat(i, styledFloat(r, style, t))
		default:
			v.SetInt(i, styledInt(r, style, t))
		}
	}
	return v
}

func styledFloat(r *rand.Rand, style string, t ir.DType) float64 {
	tiny := ulp(t, 0)
	specials := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), tiny, -3 * tiny, t.MaxFinite(), -t.MaxFinite(),
		1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 127.5, 255.5, -128.5, 32768, 65535.5, 2147483648, -2147483648, 4294967296, 9.3e18, 1.9e19, 1e-30}
	switch style {
	case "special":
		if r.IntN(2) == 0 {
			return specials[r.IntN(len(specials))]
		}
		return r.NormFloat64() * math.Exp(r.NormFloat64()*3)
	case "few", "fewspecial":
		if style == "fewspecial" && r.IntN(3) == 0 {
			return specials[r.IntN(5)]
		}
		return float64(r.IntN(17)-8) / 4
	case "positive":
		return 0.1 + math.Abs(r.NormFloat64())
	}
	return r.NormFloat64()
}

func styledInt(r *rand.Rand, style string, t ir.DType) int64 {
	bits := t.Bits()
	if style == "special" && r.IntN(3) == 0 {
		return []int64{0, 1, -1, 1 << (bits - 1), 1<<(bits-1) - 1, 1<<(bits-1) + 1, int64(bits), int64(bits) - 1, 2, -2}[r.IntN(10)]
	}
	if t.IsUnsigned() {
		return int64(r.IntN(14))
	}
	return int64(r.IntN(17) - 8)
}

// assembler finds ptxas: WEFT_PTXAS, or the wheel that `make cuda` unpacks. Without it the test
// is skipped, unless WEFT_REQUIRE_TOOLS is set.
func assembler(t testing.TB) string {
	t.Helper()
	path := os.Getenv("WEFT_PTXAS")
	if path == "" {
		path = "build/cuda/nvcc/nvidia/cuda_nvcc/bin/ptxas"
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("WEFT_REQUIRE_TOOLS") != "" {
			t.Fatalf("no ptxas: %v", err)
		}
		t.Skipf("no ptxas: %v", err)
	}
	return path
}

var (
	functionLine = regexp.MustCompile(`Compiling entry function '([^']+)'`)
	frameLine    = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	warningLine  = regexp.MustCompile(`C7[56]\d\d`)
)

// checkAssembly assembles kernels for a target, some at a time, and fails for those that use
// local memory or that ptxas warns of.
func checkAssembly(t *testing.T, kernels []llvm.Module, owner map[string]string, cpu string) {
	path := assembler(t)
	entries := compileKernels(t, kernels, cpu)
	const parts = 2
	var group sync.WaitGroup
	for part := range parts {
		var mine []ptx.Entry
		for i := part; i < len(entries); i += parts {
			mine = append(mine, entries[i])
		}
		if len(mine) == 0 {
			continue
		}
		text, err := ptx.Join(mine[0].Header, mine)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%s.%d.ptx", cpu, part))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			out, err := exec.Command(path, "-v", "-arch="+cpu, file, "-o", os.DevNull).CombinedOutput()
			if err != nil {
				t.Errorf("ptxas for %s: %v\n%s", cpu, err, out)
				return
			}
			checkAssemblerOutput(t, owner, cpu, string(out))
		})
	}
	group.Wait()
}

func checkAssemblerOutput(t *testing.T, owner map[string]string, cpu, out string) {
	function := ""
	for line := range strings.Lines(out) {
		if m := functionLine.FindStringSubmatch(line); m != nil {
			function = fmt.Sprintf("%s of %s", m[1], owner[m[1]])
		}
		if m := frameLine.FindStringSubmatch(line); m != nil && (m[1] != "0" || m[2] != "0" || m[3] != "0") {
			t.Errorf("%s for %s uses local memory: %s", function, cpu, strings.TrimSpace(line))
		}
		if warningLine.MatchString(line) {
			t.Errorf("%s for %s: %s", function, cpu, strings.TrimSpace(line))
		}
	}
}
