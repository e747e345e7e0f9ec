package limit

import (
	"strconv"
	"strings"
	"time"
)

// share gives a rule that is a share of a room's the numbers of that one, tier
// by tier. What a decision asks is then a rule like any other.
func (s *Spec) share(r Rule, path string, faults *Faults) Rule {
	at := func(key string) string { return join(path, key) }
	text, isShare := strings.CutSuffix(r.Share, "%")
	percent, err := strconv.ParseInt(text, 10, 64)
	if r.Limit == (Limit{}) { // told once, not as a burst that is missing too
		r.Limit = Limit{Rate: 1, Burst: 1}
	} else {
		faults.add(at("rate"), "a rule has either rate, per and burst, or a share")
	}
	if !isShare || err != nil || percent < 1 || percent > 99 {
		faults.add(at("share"), "want 1%% to 99%%, have %.20q", r.Share)
		return r
	}
	if r.Scope != ScopeNetRoom.String() || len(r.Tiers) > 0 || r.Algorithm != "" && r.Algorithm != tokenBucketName {
		faults.add(at("share"), "only a token bucket of scope net_room without tiers is a share of a room")
		return r
	}
	of, problem := s.shared(&r)
	if problem != "" {
		faults.add(at("share"), "%s", problem)
		return r
	}
	if len(of.Tiers) == 0 {
		r.Limit = of.Limit.part(percent)
		return r
	}
	r.Limit = Limit{}
	for _, t := range of.Tiers {
		r.Tiers = append(r.Tiers, Tier{Below: t.Below, Limit: t.Limit.part(percent)})
	}
	return r
}

// shared finds the rule of which r is a share: the room's for the same actions
// and rooms, else the one for all rooms. problem is why there is none.
func (s *Spec) shared(r *Rule) (of *Rule, problem string) {
	for _, room := range []string{r.Room, ""} {
		for i := range s.Rules {
			o := &s.Rules[i]
			if o.Scope != ScopeRoom.String() || o.Room != room || len(o.Role) > 0 || len(o.Where) > 0 || o.Shadow || !covers(o.Action, r.Action) {
				continue
			}
			if of != nil {
				return nil, "want one rule of scope room to be a share of, have " + of.Name + " and " + o.Name
			}
			if of = o; o.Algorithm != "" && o.Algorithm != tokenBucketName {
				return nil, "the room's rule " + o.Name + " is no token bucket"
			}
		}
		if of != nil {
			return of, ""
		}
	}
	return nil, "no rule of scope room for everybody covers " + strings.Join(r.Action, ", ")
}

func covers(all, some StringList) bool {
	for _, a := range some {
		found := false
		for _, b := range all {
			found = found || a == b
		}
		if !found {
			return false
		}
	}
	return true
}

// part is so many hundredths of a limit, exactly; of its burst at least one.
func (l Limit) part(percent int64) Limit {
	per := l.Per
	if per == 0 {
		per = Duration(time.Second)
	}
	rate, of := l.Rate*percent, int64(100)
	for _, prime := range []int64{2, 2, 5, 5} {
		if rate%prime == 0 && of%prime == 0 {
			rate, of = rate/prime, of/prime
		}
	}
	return Limit{Rate: rate, Per: per * Duration(of), Burst: max((l.Burst*percent+99)/100, 1)}
}

// compileCrowd checks from how many sessions on the rule asks.
func (r *rule) compileCrowd(at func(string) string, faults *Faults) {
	const most = 1_000_000
	r.crowd = r.spec.Sessions
	if r.crowd < 0 || r.crowd > most || r.crowd > 0 && r.scope != ScopeNetRoom {
		faults.add(at("sessions"), "want 0 to %d, and only with scope net_room, have %d", most, r.crowd)
	}
	r.spares = r.spares || r.crowd > 0
}
