package config

import (
	"fmt"
	"io"
	"strings"
)

// Usage writes the help text of the server's flags.
func Usage(w io.Writer) {
	fmt.Fprintf(w, "  -config FILE\n      One YAML file with any of the keys below; also %sCONFIG.\n", EnvPrefix)
	for _, s := range Settings() {
		fmt.Fprintf(w, "  -%s (%s", s.Flag(), s.Unit)
		if d := s.shortDefault(); d != "" {
			fmt.Fprintf(w, ", default %s", d)
		}
		fmt.Fprintf(w, ")\n      %s Key %s, variable %s.\n", s.Doc, s.Key, s.Env())
	}
}

// Markdown is the table as it stands in the README.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		d := s.shortDefault()
		switch d {
		case "":
			d = "–"
		case s.Default:
			d = "`" + d + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Unit, d, s.Doc)
	}
	return b.String()
}

// shortDefault is the default where it fits on a line.
func (s Setting) shortDefault() string {
	if strings.Contains(s.Default, "\n") {
		return "a small catalogue"
	}
	return s.Default
}
