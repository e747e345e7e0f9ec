package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// written is a backup of these streams' pieces.
func written(t rapid.TB, secret string, streams [][]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, Manifest{Version: "liveserver v9", Node: "n1", Made: time.Unix(1_700_000_000, 0)}, secret)
	for i, pieces := range streams {
		err = errors.Join(err, w.Stream(fmt.Sprintf("s%d", i), json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))))
		for _, p := range pieces {
			err = errors.Join(err, w.Chunk([]byte(p)))
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// all reads a backup as a restore does.
func all(raw []byte) (secret string, streams [][]string, err error) {
	r, err := NewReader(bytes.NewReader(raw))
	if err != nil {
		return "", nil, err
	}
	for {
		if _, _, err = r.Stream(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return r.Secret, streams, err
		}
		streams = append(streams, nil)
		for {
			piece, err := r.Chunk()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return r.Secret, streams, err
			}
			streams[len(streams)-1] = append(streams[len(streams)-1], string(piece))
		}
	}
}

// What is read is what was written; cut short anywhere, or with any byte changed, it is told from a whole one by Verify and by reading.
func TestABackupIsWholeOrSaysSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom([]string{"", "a secret"}).Draw(t, "secret")
		streams := rapid.SliceOfN(rapid.SliceOfN(rapid.StringN(1, 40, -1), 0, 4), 0, 4).Draw(t, "streams")
		raw := written(t, secret, streams)
		got, have, err := all(raw)
		if err != nil || got != secret || fmt.Sprint(have) != fmt.Sprint(streams) {
			t.Fatalf("read %q %q (%v), written %q %q", got, have, err, secret, streams)
		}
		if m, err := Verify(bytes.NewReader(raw)); err != nil || m.Node != "n1" || m.Format != Format {
			t.Fatalf("%+v %v", m, err)
		}
		body := len(raw) - 1024 // behind it are tar's two empty blocks alone
		if _, err := Verify(bytes.NewReader(raw[:rapid.IntRange(0, body-513).Draw(t, "cut")])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut short: %v", err)
		}
	})
}

func TestAChangedBackupIsNoBackup(t *testing.T) {
	raw := written(t, "secret", [][]string{{"first", "second"}, {"third"}})
	for from, to := range map[string]string{"second": "Second", "third": "thirD", `{"n":1}`: `{"n":2}`, "secret\x00": "sekret\x00", "streams/s1/00000001": "streams/s2/00000001"} {
		if !strings.Contains(string(raw), from) {
			t.Fatalf("no %q in it", from)
		}
		changed := bytes.Replace(raw, []byte(from), []byte(to), 1)
		if _, _, err := all(changed); err == nil {
			t.Errorf("%q in place of %q passes", to, from)
		}
		if _, err := Verify(bytes.NewReader(changed)); err == nil {
			t.Errorf("%q in place of %q verifies", to, from)
		}
	}
	later := bytes.Replace(raw, []byte(`"format":1`), []byte(`"format":2`), 1)
	if _, err := Verify(bytes.NewReader(later)); err == nil || !strings.Contains(err.Error(), "liveserver v9 wrote this backup in format 2, and this one reads up to 1") {
		t.Errorf("of a later version: %v", err)
	}
}
