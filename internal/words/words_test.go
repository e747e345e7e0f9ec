package words

import (
	"regexp"
	"slices"
	"testing"

	"golang.org/x/text/language"
)

var (
	plural = regexp.MustCompile(`_(zero|one|two|few|many)$`)
	place  = regexp.MustCompile(`\{\w+\}`)
)

// places are the {places} of a text, each once, since a language may name one twice.
func places(text string) []string {
	all := place.FindAllString(text, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestEveryLanguageSaysTheSame: all sections, all keys and all places of a text, and none more.
func TestEveryLanguageSaysTheSame(t *testing.T) {
	english := read(fallback)
	for _, tag := range Languages() {
		if _, err := language.Parse(tag); err != nil {
			t.Errorf("%s.json is named by no language: %v", tag, err)
		}
		sections := read(tag)
		for name, texts := range english {
			for key, text := range texts {
				if other, ok := sections[name][key]; !ok && !plural.MatchString(key) {
					t.Errorf("%s.json lacks %s %s", tag, name, key)
				} else if ok && !slices.Equal(places(text), places(other)) {
					t.Errorf("%s.json, %s %s: %v, want %v", tag, name, key, places(other), places(text))
				}
			}
		}
		for name, texts := range sections {
			for key, text := range texts {
				base, ok := english[name][plural.ReplaceAllString(key, "")]
				if !ok {
					t.Errorf("%s.json: nobody says %s %s", tag, name, key)
				} else if _, same := english[name][key]; !same && !slices.Equal(places(base), places(text)) {
					t.Errorf("%s.json, %s %s: %v, want %v", tag, name, key, places(text), places(base))
				}
			}
		}
	}
	if tags := Languages(); tags[0] != fallback || !slices.Contains(tags, "zh") {
		t.Errorf("languages %v", tags)
	}
	if Section("none") != nil || len(Section("server")) != len(Languages()) {
		t.Error("a section is of every language, or of none")
	}
}
