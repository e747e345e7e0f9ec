package main

import (
	"testing"
	"time"
)

func TestTheBareLoopWritesWhatItIsTold(t *testing.T) {
	t.Parallel()
	b, err := startBare(t.Context(), 3, "", "")
	if b != nil {
		defer b.stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, sockets := range []int{3, 2} {
		if took, err := b.timed(Passes{500, time.Nanosecond, 1000, sockets}); err != nil || took <= 0 {
			t.Errorf("%d writes took %v s (%v)", 500*sockets, took, err)
		}
	}
	if err := b.ask("Tea", 1); err == nil {
		t.Error("it took an order that makes no sense")
	}
	b.stop()
	if b.writer.Alive() || b.reader.Alive() {
		t.Error("something is left")
	}
}

func TestTextsMakeFramesOfTheSizeWanted(t *testing.T) {
	for size, want := range map[int][2]int{128: {1, 1}, 1024: {894, 1}, 4096: {maxText, 8}} {
		if n, each := len(textOf(size)), eachBurst(size); n != want[0] || each != want[1] {
			t.Errorf("%d bytes: %d messages of %d bytes, want %d of %d", size, each, n, want[1], want[0])
		}
	}
}
