package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"liveroom/internal/lock"
)

const (
	// A key set is fetched again after keysRefresh; for a key id that it does not hold, or after a failure, at most once
	// per keysGap, whoever asks. A fetch may take keysTimeout, and a key set keysMost bytes.
	keysRefresh = 10 * time.Minute
	keysGap     = 5 * time.Second
	keysTimeout = 15 * time.Second
	keysMost    = 1 << 20
	// keysDoubt is how long an unknown key id stays judged before it is looked for again, and maxDoubts how many are
	// remembered; of one more nothing is said but that it can't be judged.
	keysDoubt = time.Minute
	maxDoubts = 1024
)

// UnjudgedError says that a token can't be judged now: the keys are not known, or not new enough. It is no verdict.
type UnjudgedError struct {
	RetryAfter time.Duration // when it is worth while to ask again
}

// Error is safe to show.
func (e *UnjudgedError) Error() string { return "the keys of its issuer are not known yet" }

// keySet is the key set of an identity provider, fetched by a goroutine of its own and never by whoever asks. Safe for
// concurrent use.
type keySet struct {
	// Fixed after construction.
	url    string
	client *http.Client
	log    *slog.Logger
	wanted chan struct{} // has one place: a fetch is wanted before keysRefresh is over

	mu     lock.Mutex[lock.Leaf]
	keys   jwt.Keyfunc          // nil before the first fetch that worked
	began  time.Time            // of the last fetch that worked
	next   time.Time            // the earliest time of the next fetch
	doubts map[string]time.Time // key ids that no set held, and when they were first asked for
}

// fetchKeys goes on fetching the set at address until ctx ends, and returns before the first one is there.
func fetchKeys(ctx context.Context, address string, log *slog.Logger) (*keySet, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	s := newKeySet(address, &http.Client{Timeout: keysTimeout}, log.With("url", u.Scheme+"://"+u.Host+u.Path)) // a query may hold a key
	first := make(chan struct{})
	go s.run(ctx, first)
	select { // a provider that answers at once is known before the first token comes
	case <-first:
	case <-time.After(keysGap):
	case <-ctx.Done():
	}
	return s, nil
}

func newKeySet(address string, client *http.Client, log *slog.Logger) *keySet {
	return &keySet{url: address, client: client, log: log, wanted: make(chan struct{}, 1), doubts: map[string]time.Time{}}
}

// run fetches until ctx ends, which also ends a fetch under way.
func (s *keySet) run(ctx context.Context, first chan<- struct{}) {
	defer s.client.CloseIdleConnections()
	for {
		err := s.fetch(ctx)
		if first != nil {
			close(first)
			first = nil
		}
		wait := keysRefresh
		if err != nil && ctx.Err() == nil {
			s.log.Warn("key set not fetched", "err", err)
			wait = keysGap
		}
		gap, refresh := time.NewTimer(keysGap), time.NewTimer(wait)
		select {
		case <-gap.C:
		case <-ctx.Done():
		}
		select {
		case <-s.wanted:
		case <-refresh.C:
		case <-ctx.Done():
		}
		gap.Stop()
		refresh.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// fetch replaces the keys. A key of a kind that nobody here knows is left out; a set without any known one is an error.
func (s *keySet) fetch(ctx context.Context) error {
	began := time.Now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next = time.Now().Add(keysGap)
	}()
	select {
	case <-s.wanted: // this fetch is it
	default:
	}
	raw, err := s.read(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.began = keys, began
	return nil
}

func (s *keySet) read(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which may hold a password
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, keysMost+1))
	if err == nil && len(raw) > keysMost {
		err = fmt.Errorf("longer than %d bytes", keysMost)
	}
	return raw, err
}

func parseKeys(raw []byte) (jwt.Keyfunc, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("no JSON Web Key Set: %w", err)
	}
	storage, known := jwkset.NewMemoryStorage(), 0
	for _, k := range set.Keys {
		key, err := jwkset.NewJWKFromRawJSON(k, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue
		}
		if err := storage.KeyWrite(context.Background(), key); err != nil {
			return nil, err
		}
		known++
	}
	if known == 0 {
		return nil, fmt.Errorf("none of %d keys is of a known kind", len(set.Keys))
	}
	f, err := keyfunc.New(keyfunc.Options{Storage: storage})
	if err != nil {
		return nil, err
	}
	return f.Keyfunc, nil
}

// key is a jwt.Keyfunc. A key id that the set does not hold is unknown only once a set has been fetched after it was first
// asked for; until then the error is an [UnjudgedError].
func (s *keySet) key(t *jwt.Token) (any, error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		return nil, s.unjudgedLocked(now)
	}
	key, err := s.keys(t)
	if !errors.Is(err, jwkset.ErrKeyNotFound) {
		return key, err
	}
	id, _ := t.Header["kid"].(string)
	if unjudged := s.doubtLocked(id, now); unjudged != nil {
		return nil, unjudged
	}
	return nil, err
}

// newest tells the set in use from others: when its fetch began. Zero without one.
func (s *keySet) newest() time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// doubt is the verdict on a token that no key of the set in use at judgedBy fits: an [UnjudgedError], nil once a newer set holds none
// either. A set that came since has not been asked.
func (s *keySet) doubt(id string, judgedBy time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.After(judgedBy) {
		return s.unjudgedLocked(time.Now())
	}
	return s.doubtLocked(id, time.Now())
}

func (s *keySet) doubtLocked(id string, now time.Time) error {
	asked, known := s.doubts[id]
	switch {
	case known && !s.began.Before(asked) && now.Sub(asked) < keysDoubt:
		return nil
	case known && s.began.Before(asked):
	case len(s.doubts) < maxDoubts || s.forgetLocked(now):
		s.doubts[id] = now
	}
	select {
	case s.wanted <- struct{}{}:
	default:
	}
	return s.unjudgedLocked(now)
}

// forgetLocked makes room for another doubt, and reports whether there is any.
func (s *keySet) forgetLocked(now time.Time) bool {
	for id, asked := range s.doubts {
		if now.Sub(asked) >= keysDoubt {
			delete(s.doubts, id)
		}
	}
	return len(s.doubts) < maxDoubts
}

// unjudgedLocked tells to come back when the next fetch may be done.
func (s *keySet) unjudgedLocked(now time.Time) error {
	const fetched = time.Second
	return &UnjudgedError{RetryAfter: max(s.next.Sub(now), 0) + fetched}
}
