package config

import (
	"fmt"
	"slices"
	"strings"

	"liveroom/internal/hook"
	"liveroom/internal/journal"
	"liveroom/protocol"
)

// Webhook is an address of the platform that events are delivered to.
type Webhook struct {
	Name  string   `yaml:"name"`
	URL   string   `yaml:"url"`
	Rooms []string `yaml:"rooms"` // none: all
	Kinds []string `yaml:"kinds"` // none: all
}

const (
	maxWebhooks     = 16
	maxWebhookName  = 32
	maxWebhookRooms = 100
)

// webhooks checks the endpoints one by one.
func (v *validator) webhooks(all []Webhook, h Hooks) {
	if len(all) > maxWebhooks {
		v.add("webhooks", fmt.Sprintf("at most %d", maxWebhooks), fmt.Sprint(len(all)))
	}
	if len(all) > 0 && len(h.Secrets) == 0 {
		v.add("hooks.secrets", "one or more, since webhooks is set", "none")
	}
	seen := map[string]bool{}
	for i, w := range all {
		at := fmt.Sprintf("webhooks[%d].", i)
		switch {
		case !protocol.ValidRoom(w.Name) || len(w.Name) > maxWebhookName:
			v.add(at+"name", fmt.Sprintf("1 to %d of A-Z a-z 0-9 _ -", maxWebhookName), quote(w.Name))
		case seen[w.Name]:
			v.add(at+"name", "a name once", quote(w.Name)+" again")
		}
		seen[w.Name] = true
		if fault := hook.CheckURL(w.URL, h.Plain); fault != "" {
			v.add(at+"url", "https://host/path, or http:// where hooks.plain_http lets it", fault)
		}
		if len(w.Rooms) > maxWebhookRooms {
			v.add(at+"rooms", fmt.Sprintf("at most %d", maxWebhookRooms), fmt.Sprint(len(w.Rooms)))
		}
		for _, room := range w.Rooms {
			if !protocol.ValidRoom(room) {
				v.add(at+"rooms", "each 1 to 64 of A-Z a-z 0-9 _ -", quote(room))
			}
		}
		for _, kind := range w.Kinds {
			if !slices.Contains(journal.Kinds(), journal.Kind(kind)) {
				v.add(at+"kinds", strings.Trim(fmt.Sprint(journal.Kinds()), "[]"), quote(kind))
			}
		}
	}
}
