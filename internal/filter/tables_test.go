package filter

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/longbridgeapp/opencc"
	"github.com/mozillazg/go-pinyin"
	"github.com/mtibben/confusables"
	"golang.org/x/text/unicode/norm"
)

var update = flag.Bool("update", false, "write the tables anew, from the libraries that their data is of")

// The tables have what the libraries have, which would bring megabytes into the server: UTS 39 by mtibben/confusables, the characters of OpenCC, go-pinyin.
func TestTablesAreTheLibraries(t *testing.T) {
	for name, want := range map[string]string{"alike.txt": alike(), "traditional.txt": traditional(t), "pinyin.txt": readings()} {
		path := "tables/" + name
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != want {
			t.Errorf("%s is another one (%v): go test ./internal/filter -run TestTablesAreTheLibraries -update", path, err)
		}
	}
}

// lines writes a line for each key: the key, and all that belongs to it.
func lines(of map[string][]rune) string {
	var b strings.Builder
	keys := make([]string, 0, len(of))
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "%s %s\n", k, string(of[k]))
	}
	return b.String()
}

// alike are characters that look like a Latin letter or a digit, and that neither NFKC nor lower case makes one.
func alike() string {
	of := map[string][]rune{}
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if !unicode.IsPrint(r) || unicode.Is(unicode.Han, r) {
			continue
		}
		is := strings.ToLower(norm.NFKC.String(string(r)))
		to := strings.ToLower(confusables.Skeleton(is))
		if is[0] >= 0x80 && len(to) == 1 && (to[0] >= 'a' && to[0] <= 'z' || to[0] >= '0' && to[0] <= '9') {
			of[to] = append(of[to], r)
		}
	}
	return lines(of)
}

func traditional(t *testing.T) string {
	c, err := opencc.New("t2s")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]rune{}
	for r := rune(firstHan); r <= lastHan; r++ {
		to, err := c.Convert(string(r))
		if err != nil {
			t.Fatal(err)
		}
		if s := []rune(to); len(s) == 1 && s[0] != r && s[0] >= firstHan && s[0] <= lastHan {
			of[to] = append(of[to], r)
		}
	}
	return lines(of)
}

func readings() string {
	of := map[string][]rune{}
	for r := rune(firstHan); r <= lastHan; r++ {
		if all := pinyin.SinglePinyin(r, pinyin.NewArgs()); len(all) > 0 {
			s := strings.ReplaceAll(all[0], "ü", "v")
			of[s] = append(of[s], r)
		}
	}
	return lines(of)
}
