package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft/codegen/ptx"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
	weftruntime "weft/runtime"
)

// conformanceFlags are the flags of weft conformance.
type conformanceFlags struct {
	device, target  string
	outputs, expect string
	exact, asJSON   bool
}

func (a *app) conformanceCommand() *cobra.Command {
	f := &conformanceFlags{}
	cmd := &cobra.Command{
		Use:   "conformance DIR --device reference|emu|cuda",
		Short: "Run all models of a folder on all their inputs, and compare",
		Long: "conformance runs each artifact and model of DIR and the folders in it on each tensor file io*.safetensors or\n" +
			"io*.npz beside it, and compares the outputs with those that the file expects, by the tolerances of run. A file\n" +
			"io_ENTRY... is for that entry, where the model has several. All is one process: one line a case.\n\n" +
			"--outputs keeps what was computed; --expect takes such a folder in place of what the files expect. With --exact\n" +
			"outputs must then be equal bit for bit: what the emulator computed on one machine, a GPU computes on another.\n" +
			"Cases whose kernels have instructions that leave bits open (tensor cores, approximations) are listed with these\n" +
			"and held to the tolerances.",
		Example: "  weft conformance cases --device emu --outputs cases.emu\n" +
			"  weft conformance cases --device cuda --expect cases.emu --exact",
		Args: exactly("a DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.device == "" {
				return usage(cmd, "--device is missing").Suggest("it takes %s", listText(devices))
			}
			return a.conformance(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(choice(&f.device, devices...), "device", "run on `DEVICE`: reference (the float64 evaluator), emu (the emulator) or cuda")
	flags.StringVar(&f.target, "target", "", "kernels of the artifacts to use (those that fit the device)")
	flags.StringVar(&f.outputs, "outputs", "", "write the outputs of each case into `FOLDER`")
	flags.StringVar(&f.expect, "expect", "", "compare with the outputs in `FOLDER`, as --outputs wrote them")
	flags.BoolVar(&f.exact, "exact", false, "outputs are equal bit for bit, but for kernels that leave bits open")
	flags.BoolVar(&f.asJSON, "json", false, "print as JSON")
	completeWith(cmd, "device", devices)
	return cmd
}

// conformanceReport is what a run over a folder prints.
type conformanceReport struct {
	Device string            `json:"device"`
	Exact  bool              `json:"exact"`
	Cases  []conformanceCase `json:"cases"`
}

// conformanceCase is one model on one file of inputs.
type conformanceCase struct {
	Folder      string         `json:"folder"`
	Model       string         `json:"model"`
	Inputs      string         `json:"inputs"`
	Entry       string         `json:"entry,omitempty"`
	Target      string         `json:"target,omitempty"`
	Kernels     int            `json:"kernels"`
	Approximate []string       `json:"approximate,omitempty"` // instructions of its kernels that leave bits open
	Outputs     []outputReport `json:"outputs,omitempty"`
	Result      string         `json:"result"`
	Error       string         `json:"error,omitempty"`
}

// What comes of a case.
const (
	caseEqual   = "equal"   // bit for bit
	caseWithin  = "within"  // the tolerances
	caseRan     = "ran"     // nothing was expected
	caseDiffers = "differs" // in at least one output
	caseFailed  = "failed"
)

// conformanceRun is one run over a folder.
type conformanceRun struct {
	*app
	flags  *conformanceFlags
	folder string
	cuda   weftruntime.Device // opened once: its context takes long to make
	report conformanceReport
}

func (a *app) conformance(ctx context.Context, folder string, f *conformanceFlags) error {
	models, err := modelsWithInputs(folder)
	if err != nil {
		return err
	}
	r := &conformanceRun{app: a, flags: f, folder: folder, report: conformanceReport{Device: f.device, Exact: f.exact}}
	if f.device == "cuda" {
		if r.cuda, err = openDevice("cuda", f.target, nil, 0); err != nil {
			return err
		}
		defer r.cuda.Close()
	}
	for _, m := range models {
		if err := r.model(ctx, m); err != nil {
			return err
		}
	}
	if f.asJSON {
		err = a.printJSON(r.report)
	} else {
		a.printConformance(r.report)
	}
	if err != nil {
		return err
	}
	return r.report.differs(folder)
}

// differs is the error of cases that differ or failed.
func (r conformanceReport) differs(folder string) error {
	wrong := 0
	for _, c := range r.Cases {
		if c.Result == caseDiffers || c.Result == caseFailed {
			wrong++
		}
	}
	if wrong == 0 {
		return nil
	}
	return diag.Errorf(diag.OutputsDiffer, "", "%d of %s differ or failed", wrong, plural(len(r.Cases), "case")).In(folder)
}

// modelInputs is a model file with the tensor files beside it.
type modelInputs struct {
	folder, model string // folder is relative to the one that was asked for
	inputs        []string
}

// modelsWithInputs finds the models below a folder that have inputs, in the order of their names.
func modelsWithInputs(root string) ([]modelInputs, error) {
	models, inputs := map[string][]string{}, map[string][]string{}
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := entry.Name()
		isInputs := strings.HasPrefix(name, "io") && hasSuffix(name, ".safetensors", ".npz")
		switch {
		case isInputs:
			inputs[folder] = append(inputs[folder], name)
		case hasSuffix(name, ".weft", ".pt2", ".onnx", ".json.zip"):
			models[folder] = append(models[folder], name)
		default:
			return nil
		}
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil {
		return nil, diag.Errorf(diag.FileUnreadable, "", "the folder cannot be read: %v", err).In(root).Because(err)
	}
	var list []modelInputs
	for _, folder := range folders {
		for _, model := range models[folder] {
			if len(inputs[folder]) > 0 {
				list = append(list, modelInputs{folder, model, inputs[folder]})
			}
		}
	}
	if list == nil {
		return nil, diag.Errorf(diag.RunInputMissing, "", "no folder has both a model and inputs io*.safetensors").In(root)
	}
	return list, nil
}

func hasSuffix(name string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// model runs all cases of a model. Only a signal ends the whole run.
func (r *conformanceRun) model(ctx context.Context, files modelInputs) error {
	held := &heldModel{path: filepath.Join(r.folder, files.folder, files.model)}
	defer held.close()
	for _, inputs := range files.inputs {
		c := conformanceCase{Folder: filepath.ToSlash(files.folder), Model: files.model, Inputs: inputs}
		if err := r.run(ctx, held, &c); err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.Result, c.Error = caseFailed, firstLine(err.Error())
			held.close()
		}
		r.report.Cases = append(r.report.Cases, c)
	}
	return nil
}

// heldModel is an open model, and its session as long as further cases can run in it.
type heldModel struct {
	path    string
	model   *model
	session session
}

// open opens the model, if it is not open.
func (h *heldModel) open() (err error) {
	if h.model == nil {
		h.model, err = openModel(h.path, func(diag.List) {})
	}
	return err
}

func (h *heldModel) close() {
	if h.session != nil {
		h.session.Close()
	}
	if h.model != nil {
		h.model.Close()
	}
	h.model, h.session = nil, nil
}

// keepsStates tells whether no entry replaces a state, so that cases can follow each other.
func (m *model) keepsStates() bool {
	return !slices.ContainsFunc(m.entries(), func(s signature) bool { return len(s.Replaced) > 0 })
}

// run runs one case. States have their first values.
func (r *conformanceRun) run(ctx context.Context, held *heldModel, c *conformanceCase) error {
	if err := held.open(); err != nil {
		return err
	}
	s, err := choose(held.model.entries(), entryOf(held.model, c.Inputs))
	if err != nil {
		return err
	}
	c.Entry = s.Name
	given, err := readTensors(filepath.Join(r.folder, c.Folder, c.Inputs), "in.0")
	if err != nil {
		return err
	}
	defer given.Close()
	inputs, states, err := given.inputs(s)
	if err != nil {
		return err
	}
	if err := r.open(ctx, held, states); err != nil {
		return err
	}
	if err := c.describe(held.model, held.session); err != nil {
		return err
	}
	tensors, err := held.session.run(ctx, s.Name, inputs)
	if err != nil {
		return err
	}
	outputs, err := outputsOf(s, tensors, held.session.state)
	if err != nil {
		return err
	}
	err = r.keepAndCompare(c, outputs, given)
	if len(states) > 0 || !held.model.keepsStates() {
		held.close()
	}
	return err
}

// entryOf finds the entry that the name of a tensor file names, io_ENTRY or io_ENTRY_...: the
// longest; empty for none.
func entryOf(m *model, file string) string {
	word, _, _ := strings.Cut(strings.TrimPrefix(file, "io"), ".")
	found := ""
	for _, s := range m.entries() {
		if strings.HasPrefix(word+"_", "_"+s.Name+"_") && len(s.Name) > len(found) {
			found = s.Name
		}
	}
	return found
}

// open makes the session, where the case before has left none; given are the first values of
// states that the case has.
func (r *conformanceRun) open(ctx context.Context, held *heldModel, given []weights.Named) error {
	if held.session != nil && len(given) == 0 {
		return nil
	}
	if held.session != nil {
		held.close()
		if err := held.open(); err != nil {
			return err
		}
	}
	values, err := held.model.givenWeights("", given)
	if err != nil {
		return err
	}
	if r.cuda == nil {
		held.session, err = held.model.open(ctx, r.flags.device, r.flags.target, values)
	} else {
		held.session, err = held.model.openOn(ctx, &deviceSession{name: "cuda", device: r.cuda}, r.flags.target, values)
	}
	return err
}

// describe notes which kernels a case runs, and their instructions that leave bits open.
func (c *conformanceCase) describe(m *model, s session) error {
	device, ok := s.(*deviceSession)
	if !ok {
		return nil
	}
	c.Target = device.Session.Target()
	entry, err := device.Session.Entry(c.Entry)
	if err != nil {
		return err
	}
	kernels := map[string]bool{}
	for _, step := range entry.Plan.Flat() {
		if step.Launch != nil {
			kernels[step.Launch.Kernel] = true
		}
	}
	c.Kernels = len(kernels)
	if m.artifact == nil {
		return nil
	}
	text, err := m.artifact.Kernels(c.Target)
	if err != nil {
		return err
	}
	module, err := ptx.Parse(string(text))
	if err != nil {
		return err
	}
	c.Approximate = approximateInstructions(module, kernels)
	return nil
}

// approximateInstructions lists the opcodes in kernels whose bits the instruction set leaves
// open: approximations, and float sums in tensor cores.
func approximateInstructions(m *ptx.Module, kernels map[string]bool) []string {
	var found []string
	for _, f := range m.Functions {
		if !kernels[f.Name] {
			continue
		}
		for _, in := range f.Body {
			matrix := in.Opcode == "mma" || in.Opcode == "wgmma" && in.Has("mma_async")
			// A reciprocal is approximate on its way to the exact one alone.
			approximate := in.Has("approx") && in.Opcode != "rcp"
			if !approximate && (!matrix || in.Has("s32")) {
				continue
			}
			name, _, _ := strings.Cut(in.Text, " ")
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// keepAndCompare writes the outputs of a case, and compares them.
func (r *conformanceRun) keepAndCompare(c *conformanceCase, outputs []output, expect *tensorFile) error {
	name := filepath.Join(c.Folder, c.Model+"."+strings.TrimSuffix(c.Inputs, filepath.Ext(c.Inputs))+".safetensors")
	if r.flags.outputs != "" {
		path := filepath.Join(r.flags.outputs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return diag.Errorf(diag.FileUnwritable, "", "the folder cannot be made: %v", err).In(path).Because(err)
		}
		if err := writeOutputs(path, outputs); err != nil {
			return err
		}
	}
	if r.flags.expect != "" {
		var err error
		if expect, err = readTensors(filepath.Join(r.flags.expect, name), "out.0"); err != nil {
			return err
		}
		defer expect.Close()
	}
	exact := r.flags.exact && len(c.Approximate) == 0
	c.Result = caseRan
	for _, o := range outputs {
		report := outputReport{Output: o.key, Name: o.name, Type: o.tensor.Type().String()}
		want := expect.expected(o)
		switch {
		case want != nil:
			result := compareCase(o.tensor, want, exact)
			report.Comparison = comparisonOf(result)
			c.take(result, exact)
		case r.flags.expect != "":
			return errors.New("no expected value for " + o.key)
		}
		c.Outputs = append(c.Outputs, report)
	}
	return nil
}

func compareCase(got, want *ir.Tensor, exact bool) compare.Result {
	if exact {
		return compare.Bits(got, want)
	}
	return compare.Tensors(got, want, compare.Default(got.DType))
}

// take notes the comparison of an output in the result of the case.
func (c *conformanceCase) take(r compare.Result, exact bool) {
	switch {
	case !r.Equal():
		c.Result = caseDiffers
	case c.Result == caseRan && exact:
		c.Result = caseEqual
	case c.Result == caseRan:
		c.Result = caseWithin
	}
}

// printConformance prints a row a case, then where outputs differ, then a sum.
func (a *app) printConformance(r conformanceReport) {
	rows := [][]string{{"FOLDER", "MODEL", "INPUTS", "KERNELS", "OUTPUTS", "ELEMENTS", "DIFFERENT", "MAX ABS ERROR", "RESULT"}}
	var details []string
	counts := map[string]int{}
	for _, c := range r.Cases {
		counts[c.Result]++
		elements, different, largest := int64(0), int64(0), 0.0
		for _, o := range c.Outputs {
			if o.Comparison == nil {
				continue
			}
			elements, different = elements+o.Comparison.Elements, different+o.Comparison.Mismatches
			if o.Comparison.Absolute != nil {
				largest = max(largest, float64(o.Comparison.Absolute.Error))
			}
			if detail := o.Comparison.detail(o.Output); detail != "" {
				details = append(details, fmt.Sprintf("%s, %s, %s: %s", c.Folder, c.Model, c.Inputs, detail))
			}
		}
		result := c.Result
		if len(c.Approximate) > 0 {
			result += " (" + strings.Join(c.Approximate, ", ") + ")"
		}
		if c.Error != "" {
			result += ": " + c.Error
		}
		rows = append(rows, []string{c.Folder, c.Model, c.Inputs, fmt.Sprint(c.Kernels), fmt.Sprint(len(c.Outputs)), fmt.Sprint(elements), fmt.Sprint(different),
			fmt.Sprintf("%.3g", largest), result})
	}
	table(a.stdout, rows)
	for _, d := range details {
		a.printf("%s\n", d)
	}
	var sums []string
	for _, result := range []string{caseEqual, caseWithin, caseRan, caseDiffers, caseFailed} {
		if counts[result] > 0 {
			sums = append(sums, fmt.Sprintf("%d %s", counts[result], result))
		}
	}
	a.printf("%s on %s: %s\n", plural(len(r.Cases), "case"), r.Device, strings.Join(sums, ", "))
}

// detail says why an output differs; empty where it does not.
func (c *comparison) detail(name string) string {
	switch {
	case c.Equal:
		return ""
	case c.Problem != "":
		return name + " " + c.Problem
	}
	return fmt.Sprintf("%s%s is %s, expected %s", name, indices(c.Worst.At), c.Worst.Got, c.Worst.Want)
}
