package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ErrHelp is returned by [Load] when the arguments asked for help instead of a start.
var ErrHelp = flag.ErrHelp

// Load reads the configuration from args (flags alone) and environ (as [os.Environ] gives it), and the file that one of
// them names. A subcommand may define flags of its own in extra, which is nil otherwise. The error is [ErrHelp], or
// [Faults] with everything that is wrong.
func Load(args, environ []string, extra func(*flag.FlagSet)) (Config, error) {
	l := loader{values: map[string]any{}, source: map[string]string{}}
	flags, err := l.flags(args, extra)
	if err != nil {
		return Config{}, err
	}
	env, file := l.environment(environ)
	if v, ok := flags[fileFlag]; ok {
		file = fmt.Sprint(v)
		delete(flags, fileFlag)
	}
	l.layer(defaults(), func(Setting) string { return "" })
	if file != "" {
		l.layer(l.file(file), func(Setting) string { return "in " + file })
	}
	l.layer(env, func(s Setting) string { return "by " + s.Env() })
	l.layer(flags, func(s Setting) string { return "by -" + s.Flag() })
	return l.decode()
}

// fileFlag names the flag of the file itself, the one setting that is no row of the table.
const fileFlag = "config"

// formerly are keys' earlier names, which still count.
var formerly = map[string]string{"gifts": "gifts.catalogue"}

// gone are keys of earlier versions, each with what has taken its place.
var gone = map[string]string{"auth.guest_gifts": "nothing: gifts.authority says who may give, and open lets guests too"}

type loader struct {
	values map[string]any    // by key: what is in force
	source map[string]string // by key: where that was written
	faults Faults
}

// layer lays one source's values over what is there.
func (l *loader) layer(flat map[string]any, source func(Setting) string) {
	for _, s := range Settings() {
		if v, ok := flat[s.Key]; ok {
			l.values[s.Key], l.source[s.Key] = v, source(s)
		}
	}
}

func defaults() map[string]any {
	out := map[string]any{}
	for _, s := range Settings() {
		out[s.Key] = s.Default
	}
	return out
}

// flags parses the arguments into the values that were given.
func (l *loader) flags(args []string, extra func(*flag.FlagSet)) (map[string]any, error) {
	out := map[string]any{}
	set := flag.NewFlagSet("liveserver", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	if extra != nil {
		extra(set)
	}
	set.Func(fileFlag, "", func(v string) error { out[fileFlag] = v; return nil })
	for _, s := range Settings() {
		put := func(v string) error { out[s.Key] = v; return nil }
		if _, isBool := s.into(&Config{}).(*bool); isBool {
			set.BoolFunc(s.Flag(), s.Doc, put)
		} else {
			set.Func(s.Flag(), s.Doc, put)
		}
	}
	for old, key := range formerly {
		set.Func(Setting{Key: old}.Flag(), "", func(v string) error { out[key] = v; return nil })
	}
	for old, instead := range gone {
		set.BoolFunc(Setting{Key: old}.Flag(), "", func(string) error { return errors.New("it is gone, and allowed is " + instead) })
	}
	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, ErrHelp
	} else if err != nil {
		return nil, Faults{{Path: "flags", Sentence: flagSentence(set, err)}}
	}
	if set.NArg() > 0 {
		return nil, Faults{{Path: "arguments", Sentence: fmt.Sprintf("%s is no flag, and no command can stand here: liveserver -help tells how to say it", quote(set.Arg(0)))}}
	}
	return out, nil
}

// flagSentence says in words what package flag says in its own.
func flagSentence(set *flag.FlagSet, err error) string {
	const see = "; liveserver -help lists them all"
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var names []string
		set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := nearest(strings.ReplaceAll(name, ".", "-"), names); near != "" {
			return "there is no flag -" + name + ", perhaps -" + near + " was meant" + see
		}
		return "there is no flag -" + name + see
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "the flag " + name + " needs a value behind it" + see
	}
	if rest, ok := strings.CutPrefix(text, "invalid value "); ok {
		value, name, _ := strings.Cut(rest, " for flag ")
		name, why, _ := strings.Cut(name, ": ")
		return "the flag " + name + " can't be " + value + ": " + why
	}
	return text + see
}

// serviceLink matches the variables that Kubernetes gives to every container beside a Service called liveroom or
// liveroom-…: nobody wrote them, so they are no misspelt keys.
var serviceLink = regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$`)

// environment picks the server's variables, and the file that one of them may name.
func (l *loader) environment(environ []string) (flat map[string]any, file string) {
	byEnv := map[string]Setting{}
	var names []string
	for _, s := range Settings() {
		byEnv[s.Env()] = s
		names = append(names, s.Env())
	}
	for old, key := range formerly {
		byEnv[Setting{Key: old}.Env()] = Setting{Key: key}
	}
	for old := range gone {
		names = append(names, Setting{Key: old}.Env())
	}
	flat = map[string]any{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		switch s, known := byEnv[name]; {
		case !strings.HasPrefix(name, EnvPrefix):
		case name == EnvPrefix+"CONFIG":
			file = value
		case known:
			flat[s.Key] = value
		case serviceLink.MatchString(name):
		default:
			l.unknown(name, names, "in the environment")
		}
	}
	return flat, file
}

// file reads the YAML file into flat values, without the keys that no row knows.
func (l *loader) file(name string) map[string]any {
	raw, err := readFile(name)
	if err != nil {
		l.faults = append(l.faults, Fault{Path: fileFlag, Allowed: "a YAML file that can be read, of at most 256 KiB and 16,000 lines and commas", Received: err.Error()})
		return nil
	}
	var tree map[string]any
	if err := yaml.Unmarshal(raw, &tree); err != nil {
		l.faults = append(l.faults, Fault{Path: fileFlag, Source: "in " + name, Allowed: "one YAML mapping", Received: firstLine(err)})
		return nil
	}
	known := map[string]bool{}
	var names []string
	for _, s := range Settings() {
		known[s.Key] = true
		names = append(names, s.Key)
	}
	for old, key := range formerly { // a section may have taken the name
		if v, ok := tree[old]; ok {
			if _, section := v.(map[string]any); !section {
				delete(tree, old)
				tree[key] = v
			}
		}
	}
	flat := map[string]any{}
	flatten(flat, "", tree)
	for key, v := range flat {
		if known[key] {
			continue
		}
		section := v == nil && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, key+".") })
		if !section { // with nothing written under it
			l.unknown(key, names, "in "+name)
		}
	}
	return flat
}

// flatten writes a tree's leaves by their paths; a branch without any is a leaf.
func flatten(flat map[string]any, path string, tree map[string]any) {
	for key, v := range tree {
		branch, _ := v.(map[string]any)
		if len(branch) > 0 {
			flatten(flat, path+key+".", branch)
			continue
		}
		if branch != nil {
			v = nil
		}
		flat[path+key] = v
	}
}

// The bounds of the file, as those of a set of limits; the reader itself ends aliases that unfold to too much, and nesting.
const (
	maxFileBytes = 256 << 10
	maxFileMarks = 16_000
)

// readFile reads at most what a configuration can be.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxFileBytes:
		return nil, fmt.Errorf("more than %d bytes", maxFileBytes)
	case bytes.Count(raw, []byte("\n"))+bytes.Count(raw, []byte(",")) > maxFileMarks:
		return nil, fmt.Errorf("more than %d lines and commas", maxFileMarks)
	}
	return raw, nil
}

// unknown records a key that no row knows, with the row it was most likely meant to be.
func (l *loader) unknown(key string, names []string, source string) {
	f := Fault{Path: key, Source: source, Allowed: "a known key", Received: "an unknown one"}
	for old, instead := range gone {
		if key == old || key == (Setting{Key: old}).Env() {
			f.Allowed, f.Received = instead, "a value"
			l.faults = append(l.faults, f)
			return
		}
	}
	if near := nearest(key, names); near != "" {
		f.Received += ", perhaps " + near + " was meant"
	}
	l.faults = append(l.faults, f)
}

// decode turns the layers into a Config and checks it.
func (l *loader) decode() (Config, error) {
	var c Config
	bad := map[string]bool{}
	for _, s := range Settings() {
		v := l.values[s.Key]
		if err := decode(s.into(&c), v); err != nil {
			bad[s.Key] = true
			l.faults = append(l.faults, Fault{Path: s.Key, Source: l.source[s.Key], Allowed: err.Error(), Received: s.show(v)})
		}
	}
	c.Gifts.chosen = l.source["gifts.authority"] != ""
	for _, f := range c.Validate() {
		if !bad[f.Path] {
			f.Source = l.source[f.Path]
			l.faults = append(l.faults, f)
		}
	}
	if err := l.faults.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// show renders a received value for a fault.
func (s Setting) show(v any) string {
	if s.Secret {
		return "one that is not shown"
	}
	return quote(v)
}

// nearest returns the name that key is at most two edits away from, "" for none.
func nearest(key string, names []string) string {
	best, bestAt := "", 3
	sort.Strings(names)
	for _, n := range names {
		if d := distance(key, n); d < bestAt {
			best, bestAt = n, d
		}
	}
	return best
}

// distance is Levenshtein's, by bytes, one row at a time.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
