package protocol

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableRows returns the back-quoted or plain first cells of the table whose header row begins with head, with the rest
// of each row.
func tableRows(t *testing.T, doc, head string) map[string]string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n| "+head+" |")
	if !ok {
		t.Fatalf("docs/protocol.md has no table %q", head)
	}
	rows := map[string]string{}
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue // the rest of the header, the rule
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.SplitN(strings.Trim(line, "| "), "|", 2)
		rows[strings.Trim(cells[0], " `")] = cells[1]
	}
	return rows
}

func sorted[S ~string](in []S) []string {
	var out []string
	for _, s := range in {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return out
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: has %v\n  package protocol has %v", what, got, want)
	}
}

// TestDocsSayWhatTheCodeSays compares docs/protocol.md with this package.
func TestDocsSayWhatTheCodeSays(t *testing.T) {
	raw, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	equal(t, "ops", keys(tableRows(t, doc, "op")), sorted(Ops()))
	equal(t, "actions", keys(tableRows(t, doc, "action")), sorted(Actions()))
	equal(t, "events", keys(tableRows(t, doc, "ev")), sorted(Events()))

	reasons := tableRows(t, doc, "reason")
	equal(t, "reasons", keys(reasons), sorted(Reasons()))
	for _, r := range Reasons() {
		if code := strings.TrimSpace(strings.SplitN(reasons[string(r)], "|", 2)[0]); code != fmt.Sprint(int(r.Code())) {
			t.Errorf("%s: docs say %s, code says %d", r, code, r.Code())
		}
	}
	closes := tableRows(t, doc, "close code")
	equal(t, "close codes", keys(closes), closeNumbers())
	for _, c := range CloseCodes() {
		if !strings.Contains(closes[fmt.Sprint(int(c))], "`"+c.String()+"`") {
			t.Errorf("%d: docs do not say %s", c, c)
		}
	}
}

func closeNumbers() []string {
	var out []string
	for _, c := range CloseCodes() {
		out = append(out, fmt.Sprint(int(c)))
	}
	slices.Sort(out)
	return out
}

// TestJavaScriptClientSaysWhatTheCodeSays compares web/client/codes.js with this package.
func TestJavaScriptClientSaysWhatTheCodeSays(t *testing.T) {
	raw, err := os.ReadFile("../web/client/codes.js")
	if err != nil {
		t.Fatal(err)
	}
	js := string(raw)
	kinds := jsList(t, js, "KINDS")
	equal(t, "OPS", union(kinds, jsList(t, js, "OPS")), sorted(Ops()))
	equal(t, "EVENTS", union(kinds, jsList(t, js, "EVENTS")), sorted(Events()))
	equal(t, "ACTIONS", jsList(t, js, "ACTIONS"), sorted(Actions()))
	equal(t, "ROLES", jsList(t, js, "ROLES"), sorted([]Role{RoleViewer, RoleHost, RoleModerator, RoleService, RoleAdmin}))
	equal(t, "OUTCOMES", jsList(t, js, "OUTCOMES"), sorted([]Outcome{OutcomeRefused, OutcomeUnknown}))

	reasons := jsTable(t, js, "REASONS")
	equal(t, "REASONS", keys(reasons), sorted(Reasons()))
	for _, r := range Reasons() {
		if reasons[string(r)] != fmt.Sprint(int(r.Code())) {
			t.Errorf("%s: JavaScript says %s, code says %d", r, reasons[string(r)], r.Code())
		}
	}
	closes := jsTable(t, js, "CLOSE_CODES")
	equal(t, "CLOSE_CODES", keys(closes), closeNumbers())
	for _, c := range CloseCodes() {
		if closes[fmt.Sprint(int(c))] != c.String() {
			t.Errorf("%d: JavaScript says %s, code says %s", c, closes[fmt.Sprint(int(c))], c)
		}
	}
	for name, want := range map[string]int{"MAX_LIKE_COUNT": MaxLikeCount, "MAX_GIFT_COUNT": MaxGiftCount} {
		if !strings.Contains(js, fmt.Sprintf("%s = %d;", name, want)) {
			t.Errorf("%s is not %d", name, want)
		}
	}
}

func union(a, b []string) []string { return sorted(slices.Concat(a, b)) }

func jsList(t *testing.T, js, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?s)export const ` + name + ` = \[(.*?)\]`).FindStringSubmatch(js)
	if m == nil {
		t.Fatalf("codes.js has no %s", name)
	}
	var out []string
	for _, w := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(m[1], -1) {
		out = append(out, w[1])
	}
	slices.Sort(out)
	return out
}

func jsTable(t *testing.T, js, name string) map[string]string {
	t.Helper()
	m := regexp.MustCompile(`(?s)export const ` + name + ` = \{(.*?)\n\}`).FindStringSubmatch(js)
	if m == nil {
		t.Fatalf("codes.js has no %s", name)
	}
	out := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\s*"?(\w+)"?: "?(\w+)"?,`).FindAllStringSubmatch(m[1], -1) {
		out[row[1]] = row[2]
	}
	return out
}
