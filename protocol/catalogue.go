package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"liveroom/internal/words"
)

// Bounds of a catalogue. Each who enters is sent it.
const (
	MaxGifts          = 500
	MaxCatalogueBytes = 64 << 10        // as it travels
	MaxPrice          = 100_000_000_000 // so that 9999 of them are a whole number in every reader of JSON
	maxIconBytes      = 256
)

// CatalogueGift is one gift of the catalogue.
type CatalogueGift struct {
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	Names map[string]string `json:"names,omitempty"` // by language: en, zh
	Price int64             `json:"price"`           // in the platform's own unit, 1 to MaxPrice
	Icon  string            `json:"icon,omitempty"`  // an emoji or a path on the platform
}

// Catalogue is what can be given.
type Catalogue struct {
	Gifts   []CatalogueGift `json:"gifts"`
	Version uint64          `json:"gifts_version,omitempty"` // grows with each change
}

// AppendGifts appends the event of a catalogue that has come into force.
func AppendGifts(dst []byte, c Catalogue) []byte {
	return appendJSON(dst, struct {
		Ev Event `json:"ev"`
		Catalogue
	}{EvGifts, c})
}

// GiftFault is something in a catalogue that is not allowed.
type GiftFault struct {
	Path     string `json:"path"` // [0].price
	Allowed  string `json:"allowed"`
	Received string `json:"received"`
}

// CheckGifts returns all that is wrong with a catalogue.
func CheckGifts(gifts []CatalogueGift) (faults []GiftFault) {
	add := func(path, allowed, received string) { faults = append(faults, GiftFault{path, allowed, received}) }
	if len(gifts) > MaxGifts {
		add("", fmt.Sprintf("at most %d gifts", MaxGifts), strconv.Itoa(len(gifts)))
		return faults
	}
	seen := map[string]bool{}
	for i, g := range gifts {
		at := fmt.Sprintf("[%d].", i)
		if !ValidRoom(g.ID) {
			add(at+"id", "1 to 64 of A-Z a-z 0-9 _ -", clipped(g.ID))
		}
		if seen[g.ID] {
			add(at+"id", "an id once", clipped(g.ID)+" again")
		}
		seen[g.ID] = true
		if g.Price < 1 || g.Price > MaxPrice {
			add(at+"price", fmt.Sprintf("a whole number from 1 to %d", MaxPrice), strconv.FormatInt(g.Price, 10))
		}
		checkGiftName(add, at+"name", g.Name, 1)
		for _, lang := range slices.Sorted(maps.Keys(g.Names)) {
			if !slices.Contains(words.Languages(), lang) {
				add(at+"names", strings.Join(words.Languages(), ", "), clipped(lang))
			}
			checkGiftName(add, at+"names."+lang, g.Names[lang], 0)
		}
		if len(g.Icon) > maxIconBytes || strings.ContainsFunc(g.Icon, unicode.IsControl) {
			add(at+"icon", fmt.Sprintf("at most %d bytes without control characters", maxIconBytes), clipped(g.Icon))
		}
	}
	if b, err := json.Marshal(gifts); len(faults) == 0 && (err != nil || len(b) > MaxCatalogueBytes) {
		add("", fmt.Sprintf("at most %d bytes of JSON", MaxCatalogueBytes), fmt.Sprintf("%d bytes", len(b)))
	}
	return faults
}

func checkGiftName(add func(path, allowed, received string), at, name string, least int) {
	if n := CountGraphemes(name); n < least || n > MaxNameGraphemes {
		add(at, fmt.Sprintf("1 to %d characters", MaxNameGraphemes), clipped(name))
	}
}

// clipped quotes the beginning of what somebody wrote.
func clipped(s string) string { return fmt.Sprintf("%.60q", s) }
