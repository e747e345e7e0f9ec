package store

import "testing"

// Settings of a room in use do not age away.
func TestSettingsAreRenewed(t *testing.T) {
	dir, ctx := t.TempDir(), testContext(t)
	s, _, _ := open(t, alone(t, dir), dir, "n1")
	rev, err := s.Settings.PutSettings(ctx, "demo", []byte("title"), 0)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.SettingsRecord(ctx, "demo")
	if err != nil {
		t.Fatal(err)
	}
	s.Settings.renew(ctx, stored, stored.Time.Add(settingsAge*2/3))
	payload, now, err := s.Settings.Settings(ctx, "demo")
	if err != nil || string(payload) != "title" || now <= rev {
		t.Errorf("%q at revision %d, %v", payload, now, err)
	}
	if _, err := s.Compare(ctx, map[string]int64{"demo": 0}); err != nil { // which asks the store for the time
		t.Fatal(err)
	}
	if _, again, err := s.Settings.Settings(ctx, "demo"); err != nil || again != now {
		t.Errorf("young settings were renewed: %d, %v", again, err)
	}
}
