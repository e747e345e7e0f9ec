package config

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestNoFileCostsMoreThanItIsWorth: what unfolds, nests or is long is one fault of the file, at a bounded cost.
func TestNoFileCostsMoreThanItIsWorth(t *testing.T) {
	laughs := "a0: &a0 [x, x, x]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	for name, text := range map[string]string{
		"laughs": laughs, "self": "gifts: &a [*a]\n", "brackets": "gifts: " + strings.Repeat("[", 200_000), "braces": strings.Repeat("{a: ", 60_000),
		"long": "addr: " + strings.Repeat("x", maxFileBytes), "lines": strings.Repeat("#\n", maxFileMarks+1), "list": "gifts: [" + strings.Repeat("1,", maxFileMarks+1) + "]",
		"dashes": strings.Repeat("- ", 100_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Load([]string{"-config", write(t, text)}, nil, nil)
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 128 {
			t.Errorf("%s: %d MB for %d bytes", name, mb, len(text))
		}
		var faults Faults
		if !errors.As(err, &faults) || faults[0].Path != fileFlag || len(err.Error()) > 4096 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
