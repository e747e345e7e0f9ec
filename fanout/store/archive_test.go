package store

import (
	"fmt"
	"testing"
)

func TestAuditIsPagedNewestFirst(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := open(t, alone(t, dir), dir, "a")
	for i := range 5 {
		for _, room := range []string{"demo", "other"} {
			if _, err := s.Audit.Audit(testContext(t), room, fmt.Appendf(nil, "%s %d", room, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := func(before uint64, limit int) (said []string, last uint64) {
		got, err := s.Audit.AuditOf(testContext(t), "demo", before, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if r.Time.IsZero() {
				t.Error("a record without a time")
			}
			said, last = append(said, string(r.Entry)), r.Seq
		}
		return said, last
	}
	first, last := page(0, 3)
	if fmt.Sprint(first) != "[demo 4 demo 3 demo 2]" {
		t.Errorf("first page %q", first)
	}
	if rest, _ := page(last, 3); fmt.Sprint(rest) != "[demo 1 demo 0]" {
		t.Errorf("second page %q", rest)
	}
	if none, err := s.Audit.AuditOf(testContext(t), "quiet", 0, 1); err != nil || len(none) != 0 {
		t.Errorf("of a room without records: %v, %v", none, err)
	}
	if _, err := s.Audit.AuditOf(testContext(t), "demo", 0, 0); err == nil {
		t.Error("a limit of 0 is taken")
	}
}
