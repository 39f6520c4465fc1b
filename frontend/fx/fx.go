// Package fx imports models that torch.export wrote (.pt2 archives, or their graph alone) as
// programs: the functional form of their ATen operators in weft's primitives.
package fx

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// Options say how to import.
type Options struct {
	// Entry is the name of the program's entry; "forward" when empty.
	Entry string
	// Mesh has the sizes of the process groups that collectives name, as axes: by the name that the
	// group's axis has without it (group0), or in the order of the groups. Without axes, operators
	// tell the sizes. A graph without collectives does not ask.
	Mesh ir.Mesh
}

// Model is an imported program with its weights.
type Model = lower.Imported

// The versions of torch's export schema that this package reads: schemaOldest to schemaMajor, 8
// since torch 2.6. Minor versions up to 8.20 hold no field that it does not know.
const (
	schemaOldest = 5
	schemaMajor  = 8
)

// Import reads the archive at path: a .pt2 file of torch.export.save, or a zip with the
// graph's model.json alone. Weights are read from the mapped file when they are asked for.
func Import(file string, opt Options) (*Model, error) {
	z, err := weights.OpenZip(file)
	if err != nil {
		return nil, err
	}
	m, err := importZip(z, opt)
	if err != nil {
		z.Close()
		return nil, inFile(err, file)
	}
	for _, w := range m.Warnings {
		w.File = file
	}
	if m.Weights == nil {
		z.Close()
	}
	return m, nil
}

// ImportBytes is Import for an archive in memory.
func ImportBytes(data []byte, opt Options) (*Model, error) {
	z, err := weights.ParseZip(data)
	if err != nil {
		return nil, err
	}
	return importZip(z, opt)
}

// inFile names the file in the diagnostics of an error.
func inFile(err error, file string) error {
	list := diag.All(err)
	for _, d := range list {
		if d.File == "" {
			d.File = file
		}
	}
	return list
}

// archive finds the parts of one model in a zip.
type archive struct {
	zip               *weights.Zip
	root, name        string // root folder with a slash, or empty; the model's name
	model             string // member with the graph
	weights, constant map[string]payload
	saved             map[string]*weights.Region // weights and constants of releases before torch 2.8
}

// Sniff tells whether an archive has a graph that this package reads.
func Sniff(z *weights.Zip) bool {
	_, ok := graphMember(z)
	return ok
}

// graphMember finds ROOT/models/NAME.json, or model.json alone.
func graphMember(z *weights.Zip) (string, bool) {
	alone := ""
	for _, m := range z.Names() {
		dir, base := path.Split(m)
		if !strings.HasSuffix(base, ".json") {
			continue
		}
		if strings.HasSuffix(dir, "models/") {
			return m, true
		}
		if base == "model.json" || base == "exported_program.json" || base == "serialized_exported_program.json" {
			alone = m
		}
	}
	return alone, alone != ""
}

func importZip(z *weights.Zip, opt Options) (*Model, error) {
	member, ok := graphMember(z)
	if !ok {
		return nil, diag.Errorf(diag.FXArchive, "", "the archive has no models/NAME.json").
			Suggest("export the model with torch.export.export and torch.export.save")
	}
	data, err := z.Verified(member)
	if err != nil {
		return nil, err
	}
	a := &archive{zip: z, model: member}
	dir, base := path.Split(member)
	a.root, a.name = strings.TrimSuffix(dir, "models/"), strings.TrimSuffix(base, ".json")
	if err := a.readConfigs(); err != nil {
		return nil, err
	}
	m, err := importGraph(data, a.literal, opt)
	if err != nil {
		return nil, err
	}
	if a.weights == nil && a.constant == nil && a.saved == nil {
		return m, nil
	}
	m.Weights, err = a.source(m.Program)
	return m, err
}

// importGraph makes the program of a graph's JSON.
func importGraph(data []byte, constant func(string) *ir.Tensor, opt Options) (*Model, error) {
	ep, bad := decodeProgram(data)
	if bad != nil {
		return nil, bad
	}
	m := &Model{}
	if ep.major < schemaOldest || ep.major > schemaMajor {
		return nil, diag.Errorf(diag.FXVersion, "", "the archive has schema version %d.%d (torch %s); weft reads %d.x to %d.x",
			ep.major, ep.minor, ep.torch, schemaOldest, schemaMajor)
	}
	if len(ep.unknown) > 0 {
		d := diag.Warnf(diag.FXUnknown, "", "the archive (schema %d.%d) has fields that weft does not know: %s", ep.major, ep.minor, strings.Join(ep.unknown, ", "))
		m.Warnings = append(m.Warnings, d)
	}
	name := opt.Entry
	if name == "" {
		name = "forward"
	}
	im := &importer{ep: ep, mesh: opt.Mesh, constant: constant, prog: &ir.Program{}, entry: &ir.Entry{Name: name},
		dims: map[string]ir.Dim{}, states: map[string]*tensor{}, outputs: map[string]bool{}}
	im.prog.Entries = []*ir.Entry{im.entry}
	im.random = lower.NewGenerator(im.prog, im.entry)
	if err := im.build(); err != nil {
		return nil, err
	}
	m.Program = im.prog
	m.Warnings = append(m.Warnings, im.warnings...)
	return m, nil
}

// readConfigs reads where weights and constants are. Archives of a graph alone have none.
func (a *archive) readConfigs() error {
	var err error
	if a.weights, err = a.readConfig("weights"); err != nil {
		return err
	}
	if a.constant, err = a.readConfig("constants"); err != nil {
		return err
	}
	return a.readSaved()
}

// readSaved reads the tensors of a release before torch 2.8, which lie beside the graph in
// files of torch.save.
func (a *archive) readSaved() error {
	for _, kind := range []string{"constants", "state_dict"} {
		member := a.root + "serialized_" + kind + ".pt"
		if !a.zip.Has(member) {
			continue
		}
		v, err := a.torchFile(member)
		if err != nil {
			return err
		}
		tensors, err := tensorsOf(v, member)
		if err != nil {
			return err
		}
		if a.saved == nil {
			a.saved = map[string]*weights.Region{}
		}
		maps.Copy(a.saved, tensors)
	}
	return nil
}

// torchFile reads a member that torch.save wrote.
func (a *archive) torchFile(member string) (any, error) {
	data, err := a.zip.Bytes(member)
	if err != nil {
		return nil, err
	}
	return readTorchFile(data, member)
}

func (a *archive) readConfig(kind string) (map[string]payload, error) {
	member := fmt.Sprintf("%sdata/%s/%s_%s_config.json", a.root, kind, a.name, kind)
	if !a.zip.Has(member) {
		return nil, nil
	}
	data, err := a.zip.Verified(member)
	if err != nil {
		return nil, err
	}
	list, bad := decodePayloads(data)
	if bad != nil {
		bad.Place = member + ": " + bad.Place
		return nil, bad
	}
	all := make(map[string]payload, len(list))
	for _, p := range list {
		p.path = fmt.Sprintf("%sdata/%s/%s", a.root, kind, p.path)
		all[p.name] = p
	}
	return all, nil
}

// region finds the data of a parameter, buffer or constant.
func (a *archive) region(name string) (weights.Region, *diag.Diagnostic) {
	if saved := a.saved[name]; saved != nil {
		r := *saved
		r.Name = name
		return r, nil
	}
	p, ok := a.weights[name]
	if !ok {
		p, ok = a.constant[name]
	}
	bad := func(format string, args ...any) (weights.Region, *diag.Diagnostic) {
		return weights.Region{}, diag.Errorf(diag.FXWeights, name, format, args...)
	}
	switch {
	case !ok:
		return bad("the archive has no data for it")
	case p.pickled:
		return a.pickled(p)
	case p.meta == nil:
		return bad("its data has no type")
	case p.meta.layout != stridedLayout:
		return bad("its data has a sparse layout")
	}
	r := weights.Region{Name: name, Offset: p.meta.offset.value}
	var known bool
	if r.DType, known = scalarTypes[p.meta.dtype]; !known {
		return bad("its data has the unknown dtype %d", p.meta.dtype)
	}
	if r.Shape, known = constants(p.meta.sizes); !known {
		return bad("its data has a symbolic size")
	}
	if r.Strides, known = constants(p.meta.strides); !known || len(r.Strides) != len(r.Shape) {
		return bad("its data has symbolic strides or lacks some")
	}
	data, err := a.zip.Bytes(p.path)
	if err != nil {
		return bad("its data cannot be read: %v", err)
	}
	r.Data = data
	return r, nil
}

// pickled is the tensor of a payload that torch.save wrote.
func (a *archive) pickled(p payload) (weights.Region, *diag.Diagnostic) {
	v, err := a.torchFile(p.path)
	if err != nil {
		return weights.Region{}, diag.All(err)[0]
	}
	r, ok := v.(*weights.Region)
	if !ok {
		return weights.Region{}, diag.Errorf(diag.FXWeights, p.name, "its data is %s, not a plain tensor", describePickled(v)).
			Suggest("save the model without tensor subclasses")
	}
	named := *r
	named.Name = p.name
	return named, nil
}

// constants are sizes without expressions.
func constants(list []symInt) ([]int64, bool) {
	values := make([]int64, len(list))
	for i, s := range list {
		if s.expr != "" {
			return nil, false
		}
		values[i] = s.value
	}
	return values, true
}

// source makes the weights of the program's states.
func (a *archive) source(p *ir.Program) (weights.Source, error) {
	var regions []weights.Region
	var missing diag.List
	for _, s := range p.States {
		if s.Kind == ir.Generator {
			continue
		}
		r, bad := a.region(s.Name)
		r = pairs(r)
		if bad == nil {
			if t := ir.TensorOf(r.DType, ir.Consts(r.Shape...)...); !t.Equal(s.Type) {
				bad = diag.Errorf(diag.FXWeights, s.Name, "the graph declares %s, the archive holds %s", s.Type, t)
			}
		}
		if bad != nil {
			missing = append(missing, bad)
		}
		regions = append(regions, r)
	}
	if len(missing) > 0 {
		return nil, missing
	}
	return weights.FromRegions(regions, a.zip)
}

// pairs sees complex numbers as their two parts, along a last dim.
func pairs(r weights.Region) weights.Region {
	part, ok := partTypes[r.DType]
	if !ok {
		return r
	}
	r.DType, r.Offset, r.Shape = part, 2*r.Offset, append(slices.Clone(r.Shape), 2)
	if r.Strides != nil {
		r.Strides = append(slices.Clone(r.Strides), 1)
		for i := range len(r.Strides) - 1 {
			r.Strides[i] *= 2
		}
	}
	return r
}

// literal reads a constant of a few elements; nil when there is none that can be read.
func (a *archive) literal(name string) *ir.Tensor {
	r, bad := a.region(name)
	if bad != nil {
		return nil
	}
	source, err := weights.FromRegions([]weights.Region{r})
	if err != nil {
		return nil
	}
	t, err := weights.Load(source, name)
	if err != nil {
		return nil
	}
	t.Data = bytes.Clone(t.Data)
	return t
}
