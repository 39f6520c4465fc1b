package render

import (
	"net/url"
	"path/filepath"
	"slices"

	"weft/ir/diag"
)

// The part of SARIF 2.1.0 (OASIS, sarif-schema-2.1.0.json) that diagnostics need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string       `json:"id"`
		Short sarifMessage `json:"shortDescription"`
		Full  sarifMessage `json:"fullDescription"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
)

func sarifOf(list diag.List, version string) sarifLog {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "weft", Version: version, Rules: []sarifRule{}}
	rules := &run.Tool.Driver.Rules
	for _, d := range list {
		index := slices.IndexFunc(*rules, func(r sarifRule) bool { return r.ID == string(d.Code) })
		if index < 0 {
			index = len(*rules)
			*rules = append(*rules, ruleOf(d.Code))
		}
		result := sarifResult{RuleID: string(d.Code), RuleIndex: index, Level: d.Severity.String(), Message: sarifMessage{body(d)}}
		if at, ok := locationOf(d); ok {
			result.Locations = []sarifLocation{at}
		}
		run.Results = append(run.Results, result)
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

func ruleOf(code diag.Code) sarifRule {
	info, ok := diag.Lookup(code)
	if !ok {
		info.Title, info.Help = string(code), string(code)
	}
	return sarifRule{string(code), sarifMessage{info.Title}, sarifMessage{info.Help}}
}

// locationOf is the file with the line in it where the place is one, else the place as a
// logical location: module path, node name, byte offset.
func locationOf(d *diag.Diagnostic) (at sarifLocation, ok bool) {
	line, column := position(d.Place)
	if d.File != "" {
		at.Physical = &sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: filepath.ToSlash(d.File)}).String()}}
		if line > 0 {
			at.Physical.Region = &sarifRegion{line, column}
		}
	}
	if d.Place != "" && line == 0 {
		at.Logical = []sarifLogical{{d.Place}}
	}
	return at, at.Physical != nil || at.Logical != nil
}
