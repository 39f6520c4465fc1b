package runtime

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/ir/diag"
)

var targetName = regexp.MustCompile(`^sm_(\d{1,3})(\d)(a?)$`)

// RunsOn tells whether kernels for a target run on a device. Those for an
// architecture-specific target (sm_90a) need exactly that compute capability, PTX for a plain
// one (sm_80) is assembled by newer devices too.
func RunsOn(target string, p Properties) bool {
	rank, specific := targetRank(target)
	device := 10*p.ComputeMajor + p.ComputeMinor
	return rank > 0 && (rank == device || rank < device && !specific)
}

// targetRank is the compute capability of a target, times ten; 0 for no target.
func targetRank(target string) (rank int, specific bool) {
	m := targetName.FindStringSubmatch(target)
	if m == nil {
		return 0, false
	}
	rank, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		panic("BUG: digits that are no number")
	}
	return rank, m[3] != ""
}

// ChooseTarget picks the kernels to run on a device: those for exactly its architecture, else
// those for the newest plain target that it runs. want overrules the choice when it is not
// empty. The error is a diagnostic (W7021) that lists the targets.
func ChooseTarget(targets []string, want string, p Properties) (string, error) {
	best, bestScore := "", 0
	for _, t := range targets {
		if want != "" && t != want || !RunsOn(t, p) {
			continue
		}
		rank, specific := targetRank(t)
		score := 2 * rank
		if specific {
			score++
		}
		if score > bestScore {
			best, bestScore = t, score
		}
	}
	if best != "" {
		return best, nil
	}
	device := fmt.Sprintf("%s (compute capability %d.%d)", p.Name, p.ComputeMajor, p.ComputeMinor)
	what := "any of its targets"
	if want != "" {
		what = fmt.Sprintf("target %.100q", want)
	}
	return "", diag.Errorf(diag.RunTarget, "", "%s does not run the artifact's kernels for %s", device, what).
		Note("the artifact has kernels for: %s", strings.Join(targets, ", ")).
		Suggest("compile with --target sm_%d%d", p.ComputeMajor, p.ComputeMinor)
}
