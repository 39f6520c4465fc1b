package precision

import (
	"slices"
	"strings"

	"weft/ir"
)

// Row says in which types an operator computes, and why. Equal rows are one, counted.
type Row struct {
	Entry    string   `json:"entry"`
	Operator string   `json:"operator"`
	Loc      string   `json:"loc,omitempty"`
	In       []string `json:"in"`
	Out      []string `json:"out"`
	Why      string   `json:"why"`
	Count    int      `json:"count"`
}

// report describes the operations of the rewritten entry that have to do with floats.
func (r *rewriter) report() []Row {
	var rows []Row
	r.entry.Body.Walk(func(op *ir.Op) {
		row := Row{Entry: r.entry.Name, Operator: op.Kind.String(), Loc: op.Loc, In: []string{}, Out: []string{}, Count: 1}
		floats := false
		for _, v := range op.Operands {
			row.In = append(row.In, r.typeName(v))
			floats = floats || r.entry.Type(v).DType.IsFloat()
		}
		for _, v := range op.Results {
			row.Out = append(row.Out, r.typeName(v))
			floats = floats || r.entry.Type(v).DType.IsFloat()
		}
		if floats && op.Kind.Info().Class != ir.ClassSource {
			row.Why = r.reason(op)
			if i := slices.Index(r.entry.Body.Params, firstOperand(op)); row.Loc == "" && i >= 0 {
				row.Loc = r.entry.Inputs[i].Name
			}
			rows = append(rows, row)
		}
	})
	return rows
}

func firstOperand(op *ir.Op) ir.Value {
	if len(op.Operands) == 0 {
		return ir.NoValue
	}
	return op.Operands[0]
}

func (r *rewriter) typeName(v ir.Value) string {
	if t := r.entry.Type(v); t.Kind != ir.TensorKind {
		return t.String()
	}
	return r.entry.Type(v).DType.String()
}

// reason says why an operation has its types.
func (r *rewriter) reason(op *ir.Op) string {
	if why, ok := r.made[op]; ok {
		return why
	}
	for _, v := range op.Results {
		if int(v) < len(r.why) && r.why[v] != "" {
			return r.why[v]
		}
	}
	if op.Kind == ir.OpConvert {
		return "the model's own cast"
	}
	return "as the model has it"
}

// merge counts equal rows, in the order in which they come first.
func merge(rows []Row) []Row {
	type key struct{ entry, operator, loc, in, out, why string }
	at := map[key]int{}
	var merged []Row
	for _, row := range rows {
		k := key{row.Entry, row.Operator, row.Loc, strings.Join(row.In, ", "), strings.Join(row.Out, ", "), row.Why}
		if i, ok := at[k]; ok {
			merged[i].Count += row.Count
			continue
		}
		at[k] = len(merged)
		merged = append(merged, row)
	}
	return merged
}
