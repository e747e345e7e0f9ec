package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liveroom/fanout"
	"liveroom/internal/edition"
	"liveroom/internal/filter"
	"liveroom/protocol"
)

// The platform's list is one edition: changed if nobody was faster, undone, and there after a restart.
func TestThePlatformsListIsKept(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	open := func() (f *fanout.Fabric, b *filter.Book, enforced *[]*filter.Set) {
		f, err := fanout.Open(ctx, fanout.Config{NodeID: "n1", DataDir: dir}, log)
		if err != nil {
			t.Fatal(err)
		}
		enforced = &[]*filter.Set{}
		b, err = filter.Open(ctx, edition.Config[filter.Edition]{Store: editions{f.Store.Filter}, Keep: filepath.Join(dir, keptWords), Node: "n1", Log: log}, func(s *filter.Set) { *enforced = append(*enforced, s) })
		if err != nil {
			t.Fatal(err)
		}
		return f, b, enforced
	}
	end := func(f *fanout.Fabric, b *filter.Book) {
		b.Close()
		if err := f.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}
	f, b, enforced := open()
	seed := b.Current()
	if seed.Count != 0 || (*enforced)[0].Words() != 0 {
		t.Errorf("at first: %+v", seed.Story)
	}
	long := protocol.WordList{Pinyin: false, Traditional: true}
	const words = 5_000 // fifty thousand take a minute with the race detector
	for i := range words {
		long.Words = append(long.Words, protocol.Word{Word: fmt.Sprintf("w%xx%dy", i*2654435761%(1<<32), i), Action: "refuse"})
	}
	first, err := b.Publish(ctx, long, "op", "all of them", seed.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(ctx, long, "op", "", seed.Version); !errors.Is(err, edition.ErrConflict) {
		t.Errorf("the slower one is told %v", err)
	}
	short := protocol.WordList{Words: []protocol.Word{long.Words[0], {Word: "another", Action: "hold"}}}
	second, err := b.Publish(ctx, short, "op", "", first.Version)
	if err != nil {
		t.Fatal(err)
	}
	wrong := protocol.WordList{Words: []protocol.Word{{Word: "...", Action: "hold"}}}
	var fault *protocol.Error
	if _, err := b.Publish(ctx, wrong, "op", "", second.Version); !errors.As(err, &fault) || !strings.HasPrefix(fault.Detail, "words[0].word") {
		t.Errorf("a wrong list: %v", err)
	}
	all, err := b.History(ctx, 0, 10)
	if err != nil || len(all) != 3 || all[0].Words != nil || all[0].Changes.Added != 1 || all[0].Changes.Removed != words-1 || !all[0].Changes.Options || all[1].Count != words {
		t.Errorf("history: %d, %v", len(all), err)
	}
	if b.Current().Words == nil {
		t.Error("the list in force has lost its words in its history")
	}
	end(f, b)

	f, b, enforced = open()
	defer func() { end(f, b) }()
	if is := b.Current(); is.Version != second.Version || is.Count != 2 || (*enforced)[len(*enforced)-1].Words() != 2 {
		t.Errorf("after a restart: %+v", is.Story)
	}
	back, err := b.Rollback(ctx, first.Version, 0, "op", "undone")
	if err != nil || back.Restores != first.Version || b.Current().Count != words {
		t.Errorf("undone: %+v, %v", b.Current().Story, err)
	}
	if hits := (*enforced)[len(*enforced)-1].Hits("say "+long.Words[4711].Word, nil); len(hits) != 1 {
		t.Errorf("it is not in force: %v", hits)
	}
}
