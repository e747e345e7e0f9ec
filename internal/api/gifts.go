package api

import (
	"net/http"

	"liveroom/internal/catalogue"
	"liveroom/protocol"
)

// maxCatalogueBytes bounds a catalogue in a request, which may be indented.
const maxCatalogueBytes = 4 * protocol.MaxCatalogueBytes

func (a *API) giftCalls() []route {
	return []route{
		{http.MethodGet, "/gifts", a.enters, a.getGifts},
		{http.MethodPut, "/gifts", administers, a.putGifts},
		{http.MethodGet, "/gifts/versions", speaks, a.listCatalogues},
		{http.MethodPost, "/gifts/rollback", administers, a.rollbackGifts},
	}
}

// offered is the catalogue as everybody sees it: who changed it when is in the history.
type offered struct {
	Version uint64                   `json:"version"`
	Gifts   []protocol.CatalogueGift `json:"gifts"`
}

// catalogueError is an error of a change of the catalogue.
type catalogueError struct{ error }

// Unwrap returns what the store said.
func (e catalogueError) Unwrap() error { return e.error }

func (a *API) getGifts(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	is := a.cfg.Catalogue.Current()
	if unchanged(w, r, is.Version) {
		return nil, nil
	}
	return offered{is.Version, is.Gifts}, nil
}

func (a *API) putGifts(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	if r.Header.Get("If-Match") == "" {
		return noIfMatch(), nil
	}
	version, err := ifMatch(r)
	if err != nil {
		return nil, catalogueError{err}
	}
	note := r.URL.Query().Get("note")
	if err := checkNote(note); err != nil {
		return nil, err
	}
	var b struct {
		Version uint64                    `json:"version"` // so that what GET answered can be sent back; If-Match decides
		Gifts   *[]protocol.CatalogueGift `json:"gifts"`
	}
	if err := decodeUpTo(w, r, &b, maxCatalogueBytes); err != nil {
		return nil, err
	}
	if b.Gifts == nil { // no slip may take all gifts away
		return nil, protocol.BadField("gifts", "a list of gifts", "nothing")
	}
	e, err := a.cfg.Catalogue.Publish(r.Context(), *b.Gifts, c.User, note, version)
	return changedCatalogue(w, e, err)
}

func changedCatalogue(w http.ResponseWriter, e *catalogue.Edition, err error) (any, error) {
	if err != nil {
		return nil, storeError{catalogueError{err}}
	}
	w.Header().Set("ETag", etag(e.Version))
	return e, nil
}

func (a *API) listCatalogues(_ http.ResponseWriter, r *http.Request, _ call) (any, error) {
	before, most, err := page(r, "before", 200, 20)
	if err != nil {
		return nil, err
	}
	all, failed := a.cfg.Catalogue.History(r.Context(), before, most)
	if failed != nil {
		return nil, storeError{failed}
	}
	return struct {
		Versions []*catalogue.Edition `json:"versions"`
	}{all}, nil
}

func (a *API) rollbackGifts(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	to, on, note, err := readRollback(w, r)
	if err != nil {
		return nil, err
	}
	e, err := a.cfg.Catalogue.Rollback(r.Context(), to, on, c.User, note)
	return changedCatalogue(w, e, err)
}
