package rulebook

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/edition"
	"liveroom/limit"
)

func TestFileIsTheSource(t *testing.T) {
	reg := prometheus.NewRegistry()
	file := filepath.Join(t.TempDir(), "limits.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ruleText(10))
	synctest.Test(t, func(t *testing.T) {
		b := openBook(t, Config{Metrics: edition.NewMetrics(reg, "rules"), File: file})
		if burst(t, b) != 10 || b.Current().Version != 1 || counted(t, reg, "version", "") != 1 {
			t.Fatalf("burst %d, version %d", burst(t, b), b.Current().Version)
		}
		look := func() { time.Sleep(2 * b.cfg.FileEvery); synctest.Wait() }
		write(ruleText(20))
		look()
		if burst(t, b) != 20 {
			t.Fatalf("burst %d", burst(t, b))
		}
		write("rules: [oops")
		look()
		look()
		if burst(t, b) != 20 || counted(t, reg, "loads_total", "failed") != 1 {
			t.Fatal("a bad file changed the limits, or was counted twice")
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		look()
		write(ruleText(30))
		look()
		if burst(t, b) != 30 {
			t.Fatalf("after the file came back: burst %d", burst(t, b))
		}
		if _, err := b.Publish(t.Context(), Draft{Rules: spec(t, 1).Rules}, b.Current().Version); !errors.Is(err, ErrFileSource) {
			t.Errorf("publish: %v", err)
		}
		if _, err := b.Rollback(t.Context(), 1, 0, "", ""); !errors.Is(err, ErrFileSource) {
			t.Errorf("rollback: %v", err)
		}
	})
}

// TestFileHalfWritten: an editor that writes in place shows half a file for a moment, which may well be a set; and a file
// with a set that makes no sense on this server is no better than one that can't be read.
func TestFileHalfWritten(t *testing.T) {
	reg := prometheus.NewRegistry()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ruleText(10))
	synctest.Test(t, func(t *testing.T) {
		check := func(rules []limit.Rule) limit.Faults {
			if rules[0].Burst == 13 {
				return limit.Faults{{Path: "rules[0].burst", Problem: "not here"}}
			}
			return nil
		}
		b := openBook(t, Config{Metrics: edition.NewMetrics(reg, "rules"), File: file, Review: review{check: check}})
		first := b.Current().Version
		time.Sleep(b.cfg.FileEvery - time.Millisecond)
		write(ruleText(1))
		time.Sleep(2 * time.Millisecond) // the look is between the two writes
		write(ruleText(20))
		time.Sleep(2 * b.cfg.FileEvery)
		synctest.Wait()
		if burst(t, b) != 20 || b.Current().Version != first+1 {
			t.Errorf("burst %d, version %d after %d: half a file was in force", burst(t, b), b.Current().Version, first)
		}
		write(ruleText(13))
		time.Sleep(2 * b.cfg.FileEvery)
		synctest.Wait()
		if burst(t, b) != 20 || counted(t, reg, "loads_total", "failed") != 1 {
			t.Errorf("burst %d: a set that the server refuses came from the file", burst(t, b))
		}
	})
}
