// Package words holds what people read, a JSON file for each language: the sentences of the server, the words of the pages.
//
// The one idea: the files are the list. A language is known because its file stands here; its name is the BCP 47 tag. Each has the same
// sections with the same keys, and a text keeps its {places}; a test holds it. A key of a page may have forms beside it by
// the plural of n: key_one, key_few and so on (CLDR).
//
//   - server: a sentence for each protocol.Reason, and what stands between it and a detail;
//   - page: what more than one page says, and admin: what the operators' page says besides;
//   - faults: what a page says when its scripts broke down.
//
// It imports nothing of ours, keeps nothing between calls and is safe for concurrent use.
package words

import (
	"embed"
	"encoding/json"
	"strings"
)

//go:embed *.json
var files embed.FS

// fallback is read where none of the others is.
const fallback = "en"

// Languages returns the tags of all languages: English, then the others in their order.
func Languages() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	tags := []string{fallback}
	for _, e := range entries {
		if tag := strings.TrimSuffix(e.Name(), ".json"); tag != fallback {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Section returns the texts of a section by key, for each of [Languages]; nil where there is no such section.
func Section(name string) []map[string]string {
	var out []map[string]string
	for _, tag := range Languages() {
		if texts, ok := read(tag)[name]; ok {
			out = append(out, texts)
		}
	}
	return out
}

// read returns the sections of a language. It panics on a broken file, which no build with passing tests has.
func read(tag string) map[string]map[string]string {
	text, err := files.ReadFile(tag + ".json")
	if err != nil {
		panic(err)
	}
	var sections map[string]map[string]string
	if err := json.Unmarshal(text, &sections); err != nil {
		panic(tag + ".json: " + err.Error())
	}
	return sections
}
