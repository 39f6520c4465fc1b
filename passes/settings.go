package passes

import (
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/ir/target"
	"weft/passes/precision"
	"weft/passes/shard"
)

// Settings are what a user says to the passes, in the words of flags and of weft.yaml. Artifacts
// record them.
type Settings struct {
	Disabled []string `json:"disabled_passes,omitempty"` // names of the table
	Mesh     string   `json:"mesh,omitempty"`            // "dp=8,tp=4"; empty is one rank
	Parallel string   `json:"parallel,omitempty"`        // strategies as shard.ParseStrategies reads them, or auto
	// Links are bandwidths between ranks for the strategy auto, "dp=50,tp=450" in GB/s; MemoryLimit is
	// what a rank may use in bytes (0: the target's memory).
	Links       string `json:"links,omitempty"`
	MemoryLimit int64  `json:"memory_limit,omitempty"`
	// Shardings and InputShardings are rules as shard.ParseRule reads them, by name of a state
	// or an input.
	Shardings      []string `json:"shardings,omitempty"`
	InputShardings []string `json:"input_shardings,omitempty"`
	// Precision is a policy as precision.Parse reads it; empty leaves the model's types.
	Precision string `json:"precision,omitempty"`
}

// Options reads the settings for a program, and for the targets that its artifact is for. own is the
// mesh of the program's own collectives, without axes where it has none.
func (s Settings) Options(own ir.Mesh, targets []target.Target) (o Options, err error) {
	o.Disabled = s.Disabled
	if s.Precision != "" {
		if o.Precision, err = precision.Parse(s.Precision); err != nil {
			return o, err
		}
	}
	o.Sharding, err = s.sharding(own, targets)
	return o, err
}

// sharding reads how the program is to be divided over a mesh.
func (s Settings) sharding(own ir.Mesh, targets []target.Target) (o shard.Options, err error) {
	rules := len(s.Shardings)+len(s.InputShardings) > 0
	switch {
	case s.Mesh == "" && rules && len(own.Axes) > 0:
		o.Mesh = own
	case s.Mesh == "":
		if s.Parallel != "" || rules {
			return o, diag.Errorf(diag.BadMesh, "", "there is no mesh to divide the program over").Suggest("give one: --mesh dp=8")
		}
		return o, nil
	default:
		if o.Mesh, err = mesh.Parse(s.Mesh); err != nil {
			return o, err
		}
	}
	switch {
	case s.Parallel == "" && len(own.Axes) > 0: // nothing to divide
	case s.Parallel == "auto":
		o.Auto, err = s.hardware(o.Mesh, targets)
	default:
		o.Strategies, err = shard.ParseStrategies(s.Parallel, o.Mesh)
	}
	if err != nil {
		return o, err
	}
	if o.Parameters, err = shard.ParseRules(s.Shardings); err != nil {
		return o, err
	}
	o.Inputs, err = shard.ParseRules(s.InputShardings)
	return o, err
}

// hardware is what the strategy auto plans for: the weakest of the targets.
func (s Settings) hardware(m ir.Mesh, targets []target.Target) (h *shard.Hardware, err error) {
	h = &shard.Hardware{Memory: target.Memory(targets, s.MemoryLimit)}
	for i, t := range targets {
		if i == 0 || t.HalfTFLOPS*1e12 < h.FLOPS {
			h.FLOPS, h.Bandwidth = t.HalfTFLOPS*1e12, t.BandwidthGBs*1e9
		}
	}
	h.Links, err = shard.ParseLinks(s.Links, m)
	return h, err
}
