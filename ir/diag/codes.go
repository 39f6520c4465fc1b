package diag

import "slices"

// Status is the exit status of the command for an error of some class.
type Status int

// The exit statuses of the command.
const (
	OK          Status = 0
	Differs     Status = 1 // --expect, diff, check
	Usage       Status = 2
	BadInput    Status = 3
	Unsupported Status = 4
	InternalBug Status = 5
	RunFailed   Status = 6
)

// Info documents a code.
type Info struct {
	Code   Code
	Status Status
	Title  string // a few words
	Help   string // what it means and what to do: a paragraph, printed by weft explain
}

// Codes lists all codes in ascending order. Ranges: W00 command line, W09 bugs, W10 files and
// weights, W11 torch.export archives, W12 ONNX, W20 unsupported operators, W30 program text
// and verifier, W40 compiling, W50 plan, W60 artifact, W70 running.
func Codes() []Info {
	all := slices.Concat(commandCodes, fileCodes, fxCodes, onnxCodes, programCodes, compileCodes, parallelCodes, planCodes, artifactCodes, runCodes)
	slices.SortFunc(all, func(a, b Info) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return all
}

// Lookup finds a code's documentation.
func Lookup(code Code) (Info, bool) {
	for _, i := range Codes() {
		if i.Code == code {
			return i, true
		}
	}
	return Info{}, false
}

// ExitStatus is the exit status for err: the most severe class among its errors, where a bug
// outranks bad input and bad input outranks unsupported.
func ExitStatus(err error) Status {
	if err == nil {
		return OK
	}
	rank := map[Status]int{OK: 0, Differs: 1, RunFailed: 2, Unsupported: 3, BadInput: 4, Usage: 5, InternalBug: 6}
	status := OK
	for _, d := range All(err) {
		if d.Severity != Error {
			continue
		}
		s := InternalBug
		if info, ok := Lookup(d.Code); ok {
			s = info.Status
		}
		if rank[s] > rank[status] {
			status = s
		}
	}
	return status
}
