package protocol

import (
	"strings"

	"golang.org/x/text/language"

	"liveroom/internal/words"
)

// Lang is a language the server speaks: a place in [words.Languages].
type Lang uint8

// English is spoken to whoever reads none of the others.
const English Lang = 0

var (
	languages = words.Languages()
	sentences = words.Section("server") // by Lang, then by Reason or another key
	matcher   = newMatcher()
	// initials are one of each language but English. A list that has none of them asks for no other language, and needs no matching:
	// so it is with most browsers at most joins.
	initials = newInitials()
)

func newMatcher() language.Matcher {
	var tags []language.Tag
	for _, tag := range languages {
		tags = append(tags, language.MustParse(tag))
	}
	return language.NewMatcher(tags)
}

func newInitials() (out string) {
	for _, tag := range languages[1:] {
		out += strings.ToLower(tag[:1]) + strings.ToUpper(tag[:1])
	}
	return out
}

// String returns the BCP 47 tag.
func (l Lang) String() string { return languages[l] }

// ParseLang picks a language from a tag or an Accept-Language list (RFC 9110, section 12.5.4). What it can't read
// or does not speak is English. It looks at the first 100 bytes only.
func ParseLang(s string) Lang {
	if len(s) > 100 {
		s = s[:100]
	}
	if !strings.ContainsAny(s, initials) {
		return English
	}
	tags, _, err := language.ParseAcceptLanguage(s)
	if err != nil {
		return English
	}
	_, i, _ := matcher.Match(tags...)
	return Lang(i)
}

// Say returns a sentence of the section "server", followed by the detail where there is one.
func (l Lang) Say(key, detail string) string {
	if detail == "" {
		return sentences[l][key]
	}
	return sentences[l][key] + sentences[l]["detail"] + detail
}

// Message is what a person reads for a reason, followed by the detail where there is one.
func Message(l Lang, r Reason, detail string) string {
	if sentences[l][string(r)] == "" {
		r = ReasonInternal
	}
	return l.Say(string(r), detail)
}
