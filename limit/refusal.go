package limit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/text/language"
)

// maxRetrySeconds is what Retry-After says where no wait helps.
const maxRetrySeconds = 24 * 60 * 60

// refusal is the body of a 429.
type refusal struct {
	Code       int    `json:"code"`
	Reason     string `json:"reason"`
	Msg        string `json:"msg"`
	Scope      string `json:"scope,omitempty"`
	Rule       string `json:"rule,omitempty"`
	RetryAfter int64  `json:"retry_after_ms"`
}

var (
	languages = language.NewMatcher([]language.Tag{language.English, language.Chinese})

	tooMany = [...]string{"Too many requests, please try again later", "访问过于频繁，请稍后再试"}
	away    = [...]string{"Temporarily unavailable, please try again later", "服务暂时不可用，请稍后再试"}
	noPlace = [...]string{"Too busy to take on another client, please try again later", "服务繁忙，请稍后再试"}
)

// WriteRefusal answers a rejected request: status 429, Retry-After in whole
// seconds of at least 1, the headers of SetHeaders, and a body that says
// scope, rule and retry_after_ms with jitter. Its message is in Chinese or
// English by Accept-Language. Of a rejection that is Unavailable the status is
// 503 and the reason unavailable.
func WriteRefusal(w http.ResponseWriter, r *http.Request, d Decision, rules *Rules) {
	if d.Unavailable {
		body := refusal{Code: http.StatusServiceUnavailable, Reason: "unavailable", Scope: d.Scope.String(), Rule: d.Rule}
		writeRefusal(w, r, body, d.Told(), away)
		return
	}
	SetHeaders(w.Header(), d, rules)
	body := refusal{Code: http.StatusTooManyRequests, Reason: "rate_limited", Scope: d.Scope.String(), Rule: d.Rule}
	writeRefusal(w, r, body, d.Told(), tooMany)
}

// writeUnavailable answers when no place is left to keep a client's buckets.
func writeUnavailable(w http.ResponseWriter, r *http.Request) {
	body := refusal{Code: http.StatusServiceUnavailable, Reason: "unavailable"}
	writeRefusal(w, r, body, Jitter(unjudged), noPlace)
}

func writeRefusal(w http.ResponseWriter, r *http.Request, body refusal, wait time.Duration, messages [2]string) {
	wait = min(wait, maxRetrySeconds*time.Second)
	tags, _, _ := language.ParseAcceptLanguage(r.Header.Get("Accept-Language"))
	_, i, _ := languages.Match(tags...)
	body.Msg, body.RetryAfter = messages[i], wait.Milliseconds()
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Language", [...]string{"en", "zh"}[i])
	h.Add("Vary", "Accept-Language")
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", strconv.FormatInt(max(ceilSeconds(wait), 1), 10))
	w.WriteHeader(body.Code)
	json.NewEncoder(w).Encode(body) // the client may be gone; nobody is left to tell
}

// SetHeaders sets RateLimit-Policy and RateLimit for the rule that decided, as
// in draft-ietf-httpapi-ratelimit-headers-10: q is the burst, w the seconds in
// which it fills, r what remains of it, t the seconds until it is full again,
// or, of a rejection, until it is worth coming back. Of a rule with tiers the
// policy is the first tier's, of one with multipliers that of other roles.
func SetHeaders(h http.Header, d Decision, rules *Rules) {
	r, ok := rules.byName[d.Rule]
	if !ok {
		return
	}
	l := r.spec.Limit
	if len(r.spec.Tiers) > 0 {
		l = r.spec.Tiers[0].Limit
	}
	policy := `"` + r.name + `";q=` + strconv.FormatInt(l.Burst, 10)
	if w := l.fill(l.Burst); w > 0 {
		policy += ";w=" + strconv.FormatInt(w, 10)
	}
	state := `"` + r.name + `";r=` + strconv.FormatInt(d.Remaining, 10)
	t := l.fill(l.Burst - min(d.Remaining, l.Burst))
	if d.Verdict == Reject {
		t = min(max(ceilSeconds(d.RetryAfter), 1), maxRetrySeconds)
	}
	if t > 0 {
		state += ";t=" + strconv.FormatInt(t, 10)
	}
	h.Set("RateLimit-Policy", policy)
	h.Set("RateLimit", state)
}

// fill returns the whole seconds in which n tokens come, 0 when they never do.
func (l Limit) fill(n int64) int64 {
	if l.Rate == 0 {
		return 0
	}
	return scale(n, int64(l.Per), l.Rate*int64(time.Second), 1)
}

func ceilSeconds(d time.Duration) int64 {
	return int64((d-1)/time.Second) + 1
}
