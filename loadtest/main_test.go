package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

// TestMain is the tool itself where a test started this binary as one of its children.
func TestMain(m *testing.M) {
	if os.Getenv(process.ChildVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(serverDir) // it lies where the system clears up
		os.Exit(code)
	}))
}

// loadtest runs the tool as main does and returns its result.
func loadtest(t *testing.T, wantCode int, args ...string) (*report.Result, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result.json")
	var out, errs bytes.Buffer
	code := run(context.Background(), append(args, "-json", file, "-quiet"), &out, &errs)
	if code != wantCode {
		t.Fatalf("exit code %d, want %d\n%s\n%s", code, wantCode, out.String(), errs.String())
	}
	var r report.Result
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return &r, out.String()
}

func TestFanoutAgainstAServer(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{})
	report := t.TempDir()
	r, out := loadtest(t, exitOK, "fanout", "-url", srv.URL, "-admin", srv.URL, "-secret", "0123456789abcdef", "-viewers", "40", "-rate", "200",
		"-duration", "400ms", "-warmup", "100ms", "-mix", "danmaku=8,gift=1,like=1", "-report", report,
		"-slo", "p99=5s,gift_loss=0,danmaku_loss=0,delivered=100%,duplicates=0,other_orders=0,unanswered=0,unreadable=0,answered_twice=0,like_falls=0,like_error=0,closes=0")
	d := r.Classes["danmaku"]
	if d.Attempts < 60 || d.Admitted != d.Attempts {
		t.Errorf("danmaku %+v, want all of some 80 admitted", d)
	}
	if r.Delivery.Expected < 40*d.Admitted || r.Delivery.Viewers != 40 {
		t.Errorf("delivery %+v, want 40 of each danmaku", *r.Delivery)
	}
	if r.Latencies["danmaku"].Count != 40*d.Admitted {
		t.Errorf("latency has %d values, want one per delivery, %d", r.Latencies["danmaku"].Count, 40*d.Admitted)
	}
	if g := r.Classes["gift"]; g.Admitted == 0 || r.Latencies["gift"].Count < 40*g.Admitted {
		t.Errorf("gifts %+v with %d receipts", g, r.Latencies["gift"].Count)
	}
	for _, want := range []string{"40 of 40 joined", "met    p99", "fanout.html", "server fake v0"} {
		if !strings.Contains(out, want) {
			t.Errorf("the summary lacks %q:\n%s", want, out)
		}
	}
	page, err := os.ReadFile(filepath.Join(report, "fanout.html"))
	if err != nil || !bytes.Contains(page, []byte("<svg")) || bytes.Contains(page, []byte("0123456789abcdef")) {
		t.Errorf("the page (%d bytes, %v) must hold charts and no secret", len(page), err)
	}
}

func TestLossesAreSeen(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{dropOne: true})
	r, out := loadtest(t, exitMissed, "fanout", "-url", srv.URL, "-secret", "0123456789abcdef", "-viewers", "10", "-rate", "100", "-duration", "500ms",
		"-warmup", "0s", "-mix", "danmaku=1,gift=1", "-slo", "gift_loss=0,danmaku_loss=0")
	if r.Delivery.Lost != 1 || r.Delivery.GiftLost != 1 || r.Delivery.GiftHole != 1 {
		t.Errorf("delivery %+v, want one danmaku and one gift lost", *r.Delivery)
	}
	if !strings.Contains(out, "MISSED gift_loss") {
		t.Errorf("the summary does not say what was missed:\n%s", out)
	}
}

func TestAnotherOrderIsSeen(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{swap: true})
	r, _ := loadtest(t, exitMissed, "fanout", "-url", srv.URL, "-viewers", "6", "-rate", "100", "-duration", "200ms", "-warmup", "0s",
		"-slo", "danmaku_loss=0,other_orders=0")
	if r.Delivery.Lost != 0 || r.Delivery.Orders != 1 {
		t.Errorf("delivery %+v, want one viewer with another order and no loss", *r.Delivery)
	}
}

func TestPulseChecksTheBound(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{refuse: func(n int64) bool { return n%2 == 0 }})
	r, _ := loadtest(t, exitMissed, "pulse", "-url", srv.URL, "-viewers", "20", "-rate", "50", "-peak", "1000", "-calm", "300ms",
		"-duration", "300ms", "-mix", "danmaku=1", "-bound", "100,20")
	d := r.Classes["danmaku"]
	if d.Refused == 0 || d.Refused+d.Admitted != d.Attempts || r.Reasons["rate_limited"] != d.Refused {
		t.Errorf("danmaku %+v, reasons %v: half should be refused", d, r.Reasons)
	}
	if r.Bound.Excess == 0 || r.Bound.Admitted != d.Admitted {
		t.Errorf("bound %+v: a hundred a second were exceeded", *r.Bound)
	}
	if len(r.Timeline) == 0 || r.SlotSeconds != 0.1 || len(r.Bands) != 3 {
		t.Errorf("%d slots of %v s, want steps of 100 ms; bands %v", len(r.Timeline), r.SlotSeconds, r.Bands)
	}
}

// Each scenario in its smallest form, against a fake of its own.
func TestEveryScenarioRuns(t *testing.T) {
	for _, c := range []struct {
		args  string
		right func(*report.Result) bool
	}{
		{"ramp -viewers 20 -points 2 -hold 0s", func(r *report.Result) bool {
			return len(r.Ramp) == 4 && r.Ramp[2].Sessions == 20 && r.Values["memory_per_session"] == 0
		}},
		{"churn -viewers 12 -rounds 1 -hold 0s", func(r *report.Result) bool {
			return len(r.Churn) == 1 && r.Connections.Joined == watchers+12
		}},
		{"slow -viewers 10 -frozen 2 -rounds 1 -duration 200ms -warmup 0s -slo danmaku_loss=0", func(r *report.Result) bool {
			return len(r.Slow) == 2 && r.Slow[1].Frozen == 2
		}},
		{"fair -viewers 10 -rounds 1 -rate 50 -churn 20 -duration 300ms -warmup 0s -slo danmaku_loss=0", func(r *report.Result) bool {
			return len(r.Fair) == 2 && r.Fair[1].Beside && r.Values["fair_ratio"] > 0 && r.Delivery.Viewers == smallViewers
		}},
		{"soak -viewers 10 -frozen 1 -churn 20 -duration 2s -warmup 0s -mix danmaku=1,like=1", func(r *report.Result) bool {
			return r.Delivery.Lost == 0 && r.Connections.Joined >= 12
		}},
		{"joins -viewers 20 -pid SELF -rounds 1", func(r *report.Result) bool {
			return len(r.Joins) == 1 && r.Joins[0].Server > 0 && r.Joins[0].Bare > 0 && r.Connections.Joined == 80
		}},
		{"tail -viewers 20 -pid SELF -rooms 4 -rate 1000 -duration 300ms -warmup 0s", func(r *report.Result) bool {
			return len(r.Tail) == 1 && r.Tail[0].Bare > 0 && r.Tail[0].Delivery > 0 && r.Delivery.Expected == 5*300
		}},
		{"frames -viewers 10 -pid SELF -rate 500 -rounds 1 -duration 200ms -slo unreadable=0", func(r *report.Result) bool {
			return len(r.Frames) == 1 && r.Frames[0].Bare > 0 && r.Frames[0].Bytes > 50
		}},
	} {
		args := strings.Fields(strings.Replace(c.args, "SELF", strconv.Itoa(os.Getpid()), 1))
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			srv := startFake(t, &fakeServer{})
			r, out := loadtest(t, exitOK, append(args, "-url", srv.URL, "-admin", srv.URL)...)
			if !c.right(r) {
				t.Errorf("%+v\n%s", *r, out)
			}
		})
	}
}

// What was acknowledged until a kill -9 is in the ledger.
func TestGiftsAreInTheLedger(t *testing.T) {
	r, out := loadtest(t, exitOK, strings.Fields("gifts -spawn 1 -kill -server "+liveserver(t)+" -viewers 20 -rooms 2 -senders 20 -rate 300 -duration 2s -warmup 0s -slo ledger_missing=0")...)
	if r.Classes["gift"].Admitted == 0 || r.Values["gifts_per_sync"] <= 0 {
		t.Errorf("%+v\n%s", *r, out)
	}
}

func TestAnInterruptKeepsTheSummary(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, errs bytes.Buffer
	progress := writerFunc(func(p []byte) {
		if bytes.Contains(p, []byte("deliveries/s")) { // however late a busy machine shows the first second
			cancel()
		}
	})
	code := run(ctx, []string{"fanout", "-url", srv.URL, "-viewers", "5", "-rate", "50", "-duration", "1h", "-warmup", "0s"}, &out, progress)
	if code != exitOK || !strings.Contains(out.String(), "interrupted") || !strings.Contains(out.String(), "latency") {
		t.Errorf("code %d\n%s\n%s", code, out.String(), errs.String())
	}
}

func TestViewersWhoAreClosedInsteadOfWelcomedAreSeen(t *testing.T) {
	t.Parallel()
	srv := startFake(t, &fakeServer{full: 4})
	var out, errs bytes.Buffer
	code := run(context.Background(), []string{"fanout", "-url", srv.URL, "-viewers", "10", "-quiet"}, &out, &errs)
	if code != exitMissed || !strings.Contains(errs.String(), "30 closed instead of welcomed") || !strings.Contains(errs.String(), "4003:30") {
		t.Errorf("code %d, said %q", code, errs.String())
	}
}

func TestEncryptedSocketsAreReadByThePortableReader(t *testing.T) {
	t.Parallel()
	srv := startFakeTLS(t, &fakeServer{})
	r, _ := loadtest(t, exitOK, "fanout", "-url", srv.URL, "-insecure", "-viewers", "10", "-rate", "50", "-duration", "300ms", "-warmup", "0s",
		"-slo", "danmaku_loss=0,closes=0")
	if r.Delivery.Expected != 10*r.Classes["danmaku"].Admitted || r.Delivery.Expected == 0 {
		t.Errorf("delivery %+v", *r.Delivery)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func TestArgumentsThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no scenario":      {[]string{"tea"}, `no scenario "tea"`},
		"no server":        {[]string{"fanout"}, "either -url or -spawn"},
		"too many viewers": {[]string{"fanout", "-url", "http://x", "-viewers", "99999999"}, "do not fit"},
		"unknown figure":   {[]string{"fanout", "-url", "http://x", "-slo", "p98=1s"}, `"p98" is no figure`},
		"gifts of guests":  {[]string{"fanout", "-url", "http://x", "-mix", "gift=1"}, "guests send no gifts"},
		"odd mix":          {[]string{"fanout", "-url", "http://x", "-mix", "tea=1"}, "mix: want"},
		"unknown flag":     {[]string{"fanout", "-tea"}, "not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(context.Background(), c.args, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), c.want) {
				t.Errorf("code %d, want 2; said %q, want %q", code, errs.String(), c.want)
			}
		})
	}
}

// With -compress nothing is lost or misread, and the bytes counted are those that came.
func TestCompress(t *testing.T) {
	t.Parallel()
	args := []string{"-viewers", "10", "-rate", "50", "-duration", "300ms", "-warmup", "0s", "-slo", "danmaku_loss=0,unreadable=0,closes=0"}
	plain, _ := loadtest(t, exitOK, append([]string{"fanout", "-url", startFake(t, &fakeServer{deflate: true}).URL}, args...)...)
	r, out := loadtest(t, exitOK, append([]string{"fanout", "-compress", "-url", startFake(t, &fakeServer{deflate: true}).URL}, args...)...)
	if r.Delivery.Expected != 10*r.Classes["danmaku"].Admitted || r.Delivery.Expected == 0 {
		t.Errorf("delivery %+v", *r.Delivery)
	}
	if v := r.Values["deflated_to"]; v < 0.3 || v > 0.9 || !strings.Contains(out, "compression: deflated to") {
		t.Errorf("deflated to %v, said %s", v, out)
	}
	if a, b := r.Values["bytes_per_delivery"], plain.Values["bytes_per_delivery"]; a >= b {
		t.Errorf("%.0f bytes per delivery, %.0f without", a, b)
	}
	var errs bytes.Buffer
	code := run(t.Context(), append([]string{"fanout", "-compress", "-quiet", "-url", startFake(t, &fakeServer{}).URL}, args...), &bytes.Buffer{}, &errs)
	if code == exitOK || !strings.Contains(errs.String(), "did not agree to permessage-deflate") {
		t.Errorf("code %d, said %s", code, errs.String())
	}
}
