package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"liveroom/limit/cluster"
)

// answer is a call on its way.
type answer struct {
	key    string
	blob   []byte
	script *script
	cmd    *redis.Cmd
	reply  cluster.Reply
	err    error
}

// send carries the calls out, by server. They are of one server nearly always:
// more only while a cluster's slots move.
func (s *Store) send(ctx context.Context, answers []answer) {
	l := s.link.Load()
	groups := map[*redis.Client][]*answer{}
	for i := range answers {
		a := &answers[i]
		if a.err != nil {
			continue
		}
		client, err := l.master(ctx, a.key)
		if err != nil {
			a.err = err
			continue
		}
		groups[client] = append(groups[client], a)
	}
	var others sync.WaitGroup
	last := len(groups)
	for client, group := range groups {
		if last--; last == 0 {
			exchange(ctx, client, group)
			break
		}
		others.Go(func() { exchange(ctx, client, group) })
	}
	others.Wait()
	s.learn(ctx, l, answers)
}

// master returns the client of the server that has a key.
func (l *link) master(ctx context.Context, key string) (*redis.Client, error) {
	if cluster, ok := l.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return l.client.(*redis.Client), nil // what NewUniversalClient returns else
}

// exchange sends the calls of one server in one pipeline, and those for which it
// lacks the script once more after loading it.
func exchange(ctx context.Context, client *redis.Client, group []*answer) {
	run(ctx, client, group, nil)
	var again []*answer
	missing := map[*script]bool{}
	for _, a := range group {
		if a.err != nil && redis.HasErrorPrefix(a.err, "NOSCRIPT") {
			again = append(again, a)
			missing[a.script] = true
		}
	}
	if len(again) > 0 {
		run(ctx, client, again, missing)
	}
}

func run(ctx context.Context, client *redis.Client, group []*answer, load map[*script]bool) {
	pipe := client.Pipeline()
	for s := range load {
		pipe.ScriptLoad(ctx, s.text)
	}
	for _, a := range group {
		a.queue(ctx, pipe)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, a := range group {
		a.read()
	}
}

func (a *answer) queue(ctx context.Context, pipe redis.Pipeliner) {
	a.cmd = pipe.EvalSha(ctx, a.script.hash, []string{a.key}, a.blob)
}

func (a *answer) read() {
	a.reply = cluster.Reply{}
	v, err := a.cmd.Result()
	switch {
	case err == nil:
		a.err = readReply(&a.reply, v)
	case refuses(err):
		a.err = fmt.Errorf("%w: %w", cluster.ErrRefused, err)
	default:
		a.err = err
	}
}

// refusals begin the errors by which a server tells that it carries out nothing
// that writes, whatever the key.
var refusals = []string{"MISCONF ", "OOM ", "NOREPLICAS ", "READONLY ", "NOPERM ", "NOAUTH ", "WRONGPASS ", "LOADING ", "MASTERDOWN ", "CLUSTERDOWN ", "BUSY ", "ERR The user executing the script can't run"}

// refuses tells such an error. Redis 6 puts what went wrong within a script into
// a sentence of its own, after a minus.
func refuses(err error) bool {
	text := err.Error()
	return slices.ContainsFunc(refusals, func(word string) bool {
		return strings.HasPrefix(text, word) || strings.HasPrefix(text, "ERR Error running script") && strings.Contains(text, "-"+word)
	})
}

// learn looks at what failed: a server that is a replica now is left at once; of
// a cluster whose slots have moved the map is fetched anew, and the calls that
// were told to go elsewhere go there. Those have not been executed.
func (s *Store) learn(ctx context.Context, l *link, answers []answer) {
	var moved []*answer
	for i := range answers {
		a := &answers[i]
		switch {
		case a.err == nil || a.err == cluster.ErrStale:
		case redis.IsReadOnlyError(a.err):
			s.renew(l)
		case isRedirect(a.err):
			moved = append(moved, a)
		default:
			l.suspect(ctx)
		}
	}
	if cluster, ok := l.client.(*redis.ClusterClient); ok && len(moved) > 0 {
		cluster.ReloadState(ctx)
		if t := l.shards.Load(); t != nil {
			t.stale.Store(true)
		}
		follow(ctx, cluster, moved)
	}
}

func isRedirect(err error) bool {
	if _, ok := redis.IsMovedError(err); ok {
		return true
	}
	_, ok := redis.IsAskError(err)
	return ok
}

// follow lets go-redis follow the redirections, which may lead to a server that
// lacks the script: so this once the text travels.
func follow(ctx context.Context, cluster *redis.ClusterClient, moved []*answer) {
	pipe := cluster.Pipeline()
	for _, a := range moved {
		a.cmd = pipe.Eval(ctx, a.script.text, []string{a.key}, a.blob)
	}
	_, _ = pipe.Exec(ctx)
	for _, a := range moved {
		a.read()
	}
}

// suspect lets a cluster's client look who its masters are when one of them did
// not answer. It does not wait.
func (l *link) suspect(ctx context.Context) {
	if cluster, ok := l.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}
