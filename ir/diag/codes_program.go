package diag

// Codes of what programs may hold (W20) and of program text and the verifier (W30).
const (
	UnsupportedOperators Code = "W2001"
	IllTyped             Code = "W2002"
	TextSyntax           Code = "W3000"
	TextUnknownName      Code = "W3001"
	TextValue            Code = "W3002"
	TextType             Code = "W3003"
	TextLimit            Code = "W3004"
	TextDuplicate        Code = "W3005"
	InvalidProgram       Code = "W3010"
)

var programCodes = []Info{
	{UnsupportedOperators, Unsupported, "operators that weft does not compile", "The model uses operators, or forms of operators, that weft has no lowering for. The diagnostic lists all of them with how often and where each occurs; `weft support FILE` shows the same for many files."},
	{IllTyped, BadInput, "operation does not type-check", "An operation of the model asks for shapes or element types that its operator does not take. The message names the rule. The file may be damaged or written by an exporter with a bug: export the model again."},
	{TextSyntax, BadInput, "program text has a syntax error", "The text does not follow the grammar of docs/ir.md. The place is line:column; the message says what was expected there."},
	{TextUnknownName, BadInput, "program text names something unknown", "An operator, element type, attribute or attribute value has a name that weft does not know. docs/ir.md lists all operators with their attributes."},
	{TextValue, BadInput, "program text uses a value that it does not define", "Each value (%name) is defined exactly once in its entry. The message names one that has no definition, or two."},
	{TextType, BadInput, "declared type is wrong", "The type written for a result is not the one that the operation has for its operands and attributes, or the operation does not take them at all. The message gives the rule or the right type."},
	{TextLimit, BadInput, "program text exceeds a limit", "Nesting, a dim expression or a literal is larger than weft accepts from text; this protects against crafted files. Real programs stay far below."},
	{TextDuplicate, BadInput, "program text declares a name twice", "A symbol, state, entry or attribute is declared twice, so that it is not defined which one is meant."},
	{InvalidProgram, BadInput, "program breaks a rule", "The program reads well but breaks a rule of the verifier; the message gives the rule's number, which ir/verify.go and docs/ir.md explain. After a pass this is a bug of that pass."},
}
