package limit

import _ "embed"

//go:embed default.yaml
var defaultText []byte

// Default returns the rules that ship, a copy of its own for each caller.
func Default() *Spec {
	spec, err := Parse(defaultText)
	if err != nil {
		panic("limit: default.yaml: " + err.Error())
	}
	return spec
}
