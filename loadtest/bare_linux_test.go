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
	before, err := processTime(b.writer.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.pass(500, time.Nanosecond, 1000); err != nil {
		t.Fatal(err)
	}
	after, err := processTime(b.writer.cmd.Process.Pid)
	if err != nil || after <= before {
		t.Errorf("1,500 writes took %v s (%v)", after-before, err)
	}
	if err := b.ask("tea"); err == nil {
		t.Error("it took an order that makes no sense")
	}
	b.stop()
	if b.writer.alive() || b.reader.alive() {
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
