package diag

// Codes of package runtime/artifact.
const (
	NotArtifact       Code = "W6000"
	ArtifactDamaged   Code = "W6001"
	ArtifactDigest    Code = "W6002"
	ArtifactVersion   Code = "W6003"
	ArtifactManifest  Code = "W6004"
	ArtifactNoPart    Code = "W6005"
	ArtifactNoWeights Code = "W6006"
)

var artifactCodes = []Info{
	{NotArtifact, BadInput, "not a weft artifact", "The file is not a .weft artifact: it is no zip archive, or has no manifest.json. Artifacts are what `weft compile -o OUT` writes."},
	{ArtifactDamaged, BadInput, "damaged artifact", "The container of the artifact is damaged or crafted: members overlap, are compressed, missing, unknown or have impossible sizes. Copy it again or compile again."},
	{ArtifactDigest, BadInput, "artifact digest differs", "A part of the artifact does not have the contents that its manifest records: the file was changed or damaged after it was written. Copy it again or compile again."},
	{ArtifactVersion, BadInput, "artifact of an unknown version", "The artifact was written by a weft whose artifact format this one does not know. Use a newer weft, or compile again with this one."},
	{ArtifactManifest, BadInput, "malformed artifact manifest", "The manifest of the artifact is not valid: a field is missing, has a value out of range or contradicts the members. Compile again."},
	{ArtifactNoPart, Usage, "artifact has no such part", "The artifact holds no plan or kernels for the target or entry that was asked for. The message lists those that it has; compile with another --target to add one."},
	{ArtifactNoWeights, BadInput, "artifact holds no value for a weight", "The artifact refers to its weights instead of holding them. Give them with --weights FILE, DIR or random:SEED."},
}
