package rulebook

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// overtaken is a shelf whose answer to the first publish comes after somebody else's publish is stored and told.
type overtaken struct {
	*shelf
	once sync.Once
	then func()
}

func (o *overtaken) Publish(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	version, err := o.shelf.Publish(ctx, payload, after)
	if after > 0 {
		o.once.Do(o.then)
	}
	return version, err
}

// Of two nodes that publish at once the one whose answer is late has the newer set in force, and keeps that one for a start
// without the store.
func TestOlderSetNeverReplacesANewer(t *testing.T) {
	store := &overtaken{shelf: &shelf{}}
	keep := filepath.Join(t.TempDir(), "limits.json")
	rules := spec(t, 5).Rules
	late := openBook(t, Config{Store: store, Keep: keep})
	other := openBook(t, Config{Store: store.shelf})
	store.then = func() {
		if _, err := other.Publish(t.Context(), Draft{Rules: rules, Author: "other"}, 2); err != nil {
			t.Error(err)
		}
	}
	if _, err := late.Publish(t.Context(), Draft{Rules: rules, Author: "late"}, 1); err != nil {
		t.Fatal(err)
	}
	if v := late.Current().Version; v != 3 || late.Current().Author != "other" {
		t.Errorf("version %d of %s is in force", v, late.Current().Author)
	}
	raw, err := os.ReadFile(keep)
	var k struct{ Version uint64 }
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err != nil || k.Version != 3 {
		t.Errorf("kept version %d, want 3: %v", k.Version, err)
	}
}
