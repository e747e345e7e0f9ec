package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/fanout/link"
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
		for _, r := range got.Records {
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
	if none, err := s.Audit.AuditOf(testContext(t), "quiet", 0, 1); err != nil || len(none.Records) != 0 || none.Dropped != 0 {
		t.Errorf("of a room without records: %v, %v", none, err)
	}
	if _, err := s.Audit.AuditOf(testContext(t), "demo", 0, 0); err == nil {
		t.Error("a limit of 0 is taken")
	}
}

// An audit that is full says how much it had and has no more, also one that a version began which did not count.
func TestAFullAuditSaysSo(t *testing.T) {
	dir := t.TempDir()
	l := alone(t, dir)
	s, _, _ := open(t, l, dir, "a")
	ctx := testContext(t)
	for i := range auditPerRoom - 1 {
		if i%100 == 0 {
			<-l.JS.PublishAsyncComplete()
		}
		for _, room := range []string{"before", "counted"} {
			m := &nats.Msg{Subject: link.AuditPrefix + room, Data: fmt.Append(nil, i), Header: nats.Header{}}
			if room == "counted" {
				m.Header.Set(link.NthHeader, fmt.Sprint(i+1))
			}
			if _, err := l.JS.PublishMsgAsync(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-l.JS.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal("the store does not answer")
	}
	for _, room := range []string{"before", "counted"} {
		was := testutil.ToFloat64(s.metrics.auditDropped)
		for dropped := range uint64(3) {
			if _, err := s.Audit.Audit(ctx, room, []byte("more")); err != nil {
				t.Fatal(err)
			}
			page, err := s.Audit.AuditOf(ctx, room, 0, 1)
			if err != nil || len(page.Records) != 1 || page.Dropped != dropped || page.Since.IsZero() != (dropped == 0) {
				t.Errorf("%s: %+v, %v, want %d dropped", room, page, err, dropped)
			}
			if got := testutil.ToFloat64(s.metrics.auditDropped) - was; got != float64(dropped) {
				t.Errorf("%s: the metric grew by %v, want %d", room, got, dropped)
			}
		}
	}
}

// Where danmaku are kept, the recent ones come from the log that they are kept in: the newest of a busy room, without what else is there, also
// after a restart, and wherever that is switched off and on again.
func TestRecentDanmakuAreReadFromTheLog(t *testing.T) {
	dir := t.TempDir()
	const said = latelyMost + 500
	for start, of := range []struct {
		off, quiet bool
		last       int // start in which something was said
	}{{}, {quiet: true}, {off: true, last: 2}, {last: 3}} {
		l := alone(t, dir)
		s, _, stop := openWith(t, l, dir, "n1", Danmaku{Off: of.off, Age: time.Hour, Bytes: 64 << 20})
		for i := range said {
			if of.quiet {
				break
			}
			publish := func(subject, event string) {
				if err := l.Publish(subject, []byte(event)); err != nil {
					t.Fatal(err)
				}
			}
			publish(link.RoomSubject("demo", "danmaku"), fmt.Sprintf(`{"ev":"danmaku","n":"%d/%d"}`, start, i))
			if i%10 == 0 {
				publish(link.RoomSubject("demo", link.KindLikes), "12")
				publish(link.SaidPrefix+"demo", `{"ev":"danmaku","hidden":true}`)
				publish(link.SaidPrefix+"demo", `{"ev":"audience"}`)
			}
		}
		text := func(i int) string { return fmt.Sprintf(`{"ev":"danmaku","n":"%d/%d"}`, of.last, i) }
		var got [][]byte
		for end := time.After(wait); len(got) == 0 || string(got[len(got)-1]) != text(said-1); {
			var err error
			if got, err = s.Recent.Recent(testContext(t), "demo", 1000); err != nil {
				t.Fatal(err)
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-end:
				t.Fatalf("start %d: %d of them, %q", start, len(got), got)
			}
		}
		if len(got) != recentPerRoom {
			t.Errorf("start %d: %d of them", start, len(got))
		}
		for i, event := range got {
			if want := text(said - len(got) + i); string(event) != want {
				t.Fatalf("start %d: the %dth is %s, want %s", start, i, event, want)
			}
		}
		all, err := s.Recent.RecentOfAll(testContext(t), 50)
		if err != nil || len(all) != 50 || string(all[0]) != text(said-50) || string(all[49]) != text(said-1) {
			t.Errorf("start %d: of all rooms %d, %q, %v", start, len(all), all, err)
		}
		stop()
		l.Shut()
	}
}
