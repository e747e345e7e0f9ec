package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"liveroom/internal/catalogue"
	"liveroom/internal/edition"
	"liveroom/internal/preview"
	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
)

// Changes tells what is thought of a change of the limits.
type Changes interface {
	// Preview tells what a proposed set would have done to the last minutes of traffic.
	Preview(ctx context.Context, today, proposed *limit.Rules) (*preview.Report, error)
	// Watching tells what the guard sees of the last change that this node watches or has watched.
	Watching() preview.Watch
}

// maxRulesBytes bounds a set of limits in a request.
const maxRulesBytes = 256 << 10

// rulesDraft is a set that somebody proposes. The note is a query parameter, since the body is a set and nothing else.
type rulesDraft struct {
	note  string
	rules []limit.Rule
}

func (a *API) ruleCalls() []route {
	return []route{
		{http.MethodGet, "/limits/rules", speaks, a.getRules},
		{http.MethodPut, "/limits/rules", administers, a.putRules},
		{http.MethodGet, "/limits/versions", speaks, a.listVersions},
		{http.MethodPost, "/limits/rollback", administers, a.rollback},
		{http.MethodPost, "/limits/preview", administers, a.previewRules},
		{http.MethodGet, "/limits/guard", speaks, a.getGuard},
	}
}

func (a *API) getRules(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	set := a.cfg.Book.Current()
	if unchanged(w, r, set.Version) {
		return nil, nil
	}
	return set, nil
}

// unchanged names the version, and answers a caller who has it.
func unchanged(w http.ResponseWriter, r *http.Request, version uint64) bool {
	tag := etag(version)
	w.Header().Set("ETag", tag)
	has := noneMatch(r.Header.Get("If-None-Match"), tag)
	if has {
		w.WriteHeader(http.StatusNotModified)
	}
	return has
}

// etag renders a version as a strong entity tag (RFC 9110, section 8.8.3).
func etag(version uint64) string { return `"v` + strconv.FormatUint(version, 10) + `"` }

// noneMatch tells whether a list of entity tags, weak ones and * included, has tag (RFC 9110, section 13.1.2).
func noneMatch(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			return true
		}
	}
	return false
}

// ifMatch reads the version that a change was made on. A weak tag is the same one after a compressing proxy; a tag of some
// other form can't be that of the rules in force.
func ifMatch(r *http.Request) (uint64, error) {
	tag := r.Header.Get("If-Match")
	text, ok := strings.CutPrefix(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), "v")
	version, err := strconv.ParseUint(text, 10, 64)
	switch {
	case ok && err == nil:
		return version, nil
	case strings.HasSuffix(tag, `"`):
		return 0, fmt.Errorf("%w: the change was made on %.40q", edition.ErrConflict, tag)
	}
	return 0, protocol.BadField("If-Match", `the ETag of what the change was made on, such as "v7"`, tag)
}

// noIfMatch asks which version a change was made on (RFC 6585, section 3).
func noIfMatch() protocol.Ack {
	err := protocol.BadField("If-Match", "the ETag of what the change was made on", "")
	return protocol.Ack{Code: http.StatusPreconditionRequired, Err: err}
}

func (a *API) putRules(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	override, fault := truth(r, "override")
	if fault != nil {
		return nil, fault
	}
	if r.Header.Get("If-Match") == "" {
		return noIfMatch(), nil
	}
	version, err := ifMatch(r)
	if err != nil {
		return nil, err
	}
	draft, err := readRules(w, r)
	if err != nil {
		return nil, err
	}
	set, err := a.cfg.Book.Publish(r.Context(), rulebook.Draft{Rules: draft.rules, Author: c.User, Note: draft.note, Override: override}, version)
	if err != nil {
		return nil, storeError{err}
	}
	w.Header().Set("ETag", etag(set.Version))
	return set, nil
}

// readRules reads a set in JSON or, with a content type that says so, in YAML.
func readRules(w http.ResponseWriter, r *http.Request) (rulesDraft, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRulesBytes))
	if err != nil {
		return rulesDraft{}, bodyError(err)
	}
	draft := rulesDraft{note: r.URL.Query().Get("note")}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/yaml", "application/json", "text/yaml", "", "application/x-www-form-urlencoded": // the last is what curl -d says
	default:
		return draft, protocol.BadField("Content-Type", "application/json or application/yaml", kind)
	}
	if err := checkNote(draft.note); err != nil {
		return draft, err
	}
	spec, err := limit.Parse(withoutRecord(body)) // JSON is YAML
	if err != nil {
		return draft, err
	}
	draft.rules = spec.Rules
	return draft, nil
}

// withoutRecord takes from a set that was read from this API what the server wrote to it, so that it can be sent back as it
// came, but for the rules that were changed. Any other key that is none of a set is still a fault.
func withoutRecord(body []byte) []byte {
	var set map[string]json.RawMessage
	if json.Unmarshal(body, &set) != nil {
		return body
	}
	for _, key := range []string{"kind", "author", "note", "override", "restores", "time", "node", "changes", "watch"} {
		delete(set, key)
	}
	rest, err := json.Marshal(set)
	if err != nil {
		return body
	}
	return rest
}

// maxNote bounds the reason that an author gives, in bytes.
const maxNote = 500

func checkNote(note string) *protocol.Error {
	if len(note) > maxNote {
		return protocol.BadField("note", fmt.Sprintf("at most %d bytes", maxNote), fmt.Sprintf("%d bytes", len(note)))
	}
	return nil
}

// NeedsOverride is an error of a [rulebook.Config] Judge that carries the preview it judged by.
type NeedsOverride struct {
	Report  any
	Reasons []string
}

// Error implements error.
func (n *NeedsOverride) Error() string { return strings.Join(n.Reasons, "; ") }

// Unwrap makes it an [rulebook.ErrNeedsOverride].
func (n *NeedsOverride) Unwrap() error { return rulebook.ErrNeedsOverride }

// unchangedRules is the body of a refused change: what every refusal has, and what its author needs to mend it.
type unchangedRules struct {
	Code          int           `json:"code"`
	Reason        string        `json:"reason"`
	Msg           string        `json:"msg"`
	Faults        []limit.Fault `json:"faults,omitempty"`
	NeedsOverride bool          `json:"needs_override,omitempty"`
	Reasons       []string      `json:"reasons,omitempty"`
	Preview       any           `json:"preview,omitempty"`
}

// rulesRefusal turns an error about a set of limits, or a catalogue, into the body that says so; ok tells whether it is one.
func rulesRefusal(err error) (body unchangedRules, ok bool) {
	var (
		faults limit.Faults
		gifts  catalogue.Faults
		needs  *NeedsOverride
	)
	body = unchangedRules{Code: http.StatusConflict, Reason: string(protocol.ReasonConflict)}
	switch {
	case errors.As(err, &faults):
		body.Code, body.Reason, body.Faults = http.StatusBadRequest, string(protocol.ReasonBadRequest), faults
	case errors.As(err, &gifts):
		body.Code, body.Reason = http.StatusBadRequest, string(protocol.ReasonBadRequest)
		for _, f := range gifts {
			body.Faults = append(body.Faults, limit.Fault{Path: "gifts" + f.Path, Problem: "want " + f.Allowed + ", have " + f.Received})
		}
	case errors.As(err, &needs):
		body.NeedsOverride, body.Reasons, body.Preview = true, needs.Reasons, needs.Report
	case errors.Is(err, rulebook.ErrNeedsOverride):
		body.NeedsOverride = true
	case errors.Is(err, edition.ErrConflict):
		body.Code = http.StatusPreconditionFailed
	case errors.Is(err, rulebook.ErrFileSource):
	case errors.Is(err, edition.ErrNotFound):
		body.Code, body.Reason = http.StatusNotFound, string(protocol.ReasonNotFound)
	default:
		return body, false
	}
	return body, true
}

func (a *API) listVersions(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	before, most, err := page(r, "before", 200, 20)
	if err != nil {
		return nil, err
	}
	sets, failed := a.cfg.Book.History(r.Context(), before, most)
	if failed != nil {
		return nil, storeError{failed}
	}
	return struct {
		Versions []*rulebook.Set `json:"versions"`
	}{sets}, nil
}

func (a *API) rollback(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	to, on, note, err := readRollback(w, r)
	if err != nil {
		return nil, err
	}
	set, failed := a.cfg.Book.Rollback(r.Context(), to, on, c.User, note)
	if failed != nil {
		return nil, storeError{failed}
	}
	w.Header().Set("ETag", etag(set.Version))
	return set, nil
}

// readRollback reads which version is to come back, and on top of which one; 0: whatever is in force.
func readRollback(w http.ResponseWriter, r *http.Request) (to, on uint64, note string, err error) {
	var b struct {
		Version uint64 `json:"version"`
		Note    string `json:"note"`
	}
	if err := decode(w, r, &b); err != nil {
		return 0, 0, "", err
	}
	if b.Version == 0 {
		return 0, 0, "", protocol.BadField("version", "a version of the history", "")
	}
	if err := checkNote(b.Note); err != nil {
		return 0, 0, "", err
	}
	if r.Header.Get("If-Match") != "" {
		on, err = ifMatch(r)
	}
	return b.Version, on, b.Note, err
}

func (a *API) previewRules(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	draft, err := readRules(w, r)
	if err != nil {
		return nil, err
	}
	proposed, err := a.cfg.Book.Examine(draft.rules)
	if err != nil {
		return nil, err
	}
	report, err := a.cfg.Changes.Preview(r.Context(), a.cfg.Book.Current().Compiled(), proposed)
	if err != nil {
		return nil, fmt.Errorf("preview limits: %w", err)
	}
	return report, nil
}

// getGuard tells what the guard sees of the last change that this node watches or has watched.
func (a *API) getGuard(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	return a.cfg.Changes.Watching(), nil
}
