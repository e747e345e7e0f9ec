package store

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"liveroom/fanout/link"
)

func TestMarksOutliveATornWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, known, err := openMarks(dir, slog.New(slog.DiscardHandler))
	if err != nil || known {
		t.Fatalf("new ones: %v, %v", known, err)
	}
	for seq := range uint64(5) {
		m.met(link.GiftStream, seq+1)
		m.write()
	}
	m.close()
	name := filepath.Join(dir, MarksFile)
	whole, err := os.ReadFile(name)
	if err != nil || len(whole) > slots*slotBytes {
		t.Fatalf("%d bytes, %v", len(whole), err)
	}
	for slot, want := range map[int]uint64{0: 5, 1: 4} { // turn 5 is in slot 1, turn 4 in slot 0
		torn := bytes.Clone(whole)
		torn[slot*slotBytes+20] ^= 1
		if err := os.WriteFile(name, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		m, known, err := openMarks(dir, slog.New(slog.DiscardHandler))
		if err != nil || !known || m.last(link.GiftStream) != want {
			t.Errorf("slot %d torn: %d, %v, %v", slot, m.last(link.GiftStream), known, err)
		}
		m.close()
	}
}
