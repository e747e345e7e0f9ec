package preview

import "math"

// Proportion is a share with what is known of its error. The interval accounts for which users were sampled, not for
// traffic that will be another.
type Proportion struct {
	// Count of Of is what was seen among the sampled users.
	Count int64 `json:"count"`
	Of    int64 `json:"of"`
	// Share is the estimate for everybody, 0 to 1; StdErr its standard error; Low and High bound it with 95 %
	// confidence (Wilson's interval). With every user sampled nothing is estimated and the error is 0.
	Share  float64 `json:"share"`
	StdErr float64 `json:"std_err"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// z95 bounds 95 % of a normal distribution.
const z95 = 1.96

// sums are the counts of many users, of whom each stands for itself: messages of one user share their fate, so the error of
// a share of messages follows from the number of users (ratio estimator, Cochran, Sampling Techniques, section 6.3 and 9A).
type sums struct {
	whose
	newly, spared int64 // users whom only the proposed set refuses something, and only today's
	met           [sides][outcomes]struct {
		users, y int64
		yy, yn   float64
	}
}

// whose are the users whose messages they are.
type whose struct {
	users, n int64
	nn       float64
}

// add adds a user with n messages, of which c met something.
func (s *sums) add(c *counts, n int64) {
	s.users++
	s.n += n
	s.nn += float64(n) * float64(n)
	switch was, is := c.met[today][refused] > 0, c.met[proposed][refused] > 0; {
	case is && !was:
		s.newly++
	case was && !is:
		s.spared++
	}
	for i := range s.met {
		for o := range s.met[i] {
			if y := c.met[i][o]; y > 0 {
				m := &s.met[i][o]
				m.users++
				m.y += y
				m.yy += float64(y) * float64(y)
				m.yn += float64(y) * float64(n)
			}
		}
	}
}

func (s *sums) outcome(side int, sampled float64) Outcome {
	return Outcome{Refused: s.figures(side, refused, sampled), Degraded: s.figures(side, degraded, sampled)}
}

func (s *sums) figures(side, outcome int, sampled float64) Figures {
	m := &s.met[side][outcome]
	return Figures{
		Messages: messageShare(m.y, s.n, m.yy, m.yn, s.nn, s.users, sampled),
		Users:    userShare(m.users, s.users, sampled),
	}
}

// userShare is a share of users, of whom a sampled share was seen.
func userShare(count, of int64, sampled float64) Proportion {
	p := Proportion{Count: count, Of: of}
	if of > 0 {
		p.Share = float64(count) / float64(of)
		p.StdErr = math.Sqrt((1 - sampled) * p.Share * (1 - p.Share) / max(float64(of-1), 1))
	}
	return p.bounded(float64(of), sampled)
}

// messageShare is a share of the messages of so many users.
func messageShare(y, n int64, yy, yn, nn float64, users int64, sampled float64) Proportion {
	p := Proportion{Count: y, Of: n}
	if n == 0 {
		return p.bounded(0, sampled)
	}
	p.Share = float64(y) / float64(n)
	spread := max(yy-2*p.Share*yn+p.Share*p.Share*nn, 0)
	p.StdErr = math.Sqrt((1-sampled)*spread*float64(users)/max(float64(users-1), 1)) / float64(n)
	independent := float64(users) // as many users as would give this error
	if v := p.StdErr * p.StdErr; v > 0 {
		independent = (1 - sampled) * p.Share * (1 - p.Share) / v
	}
	return p.bounded(independent, sampled)
}

// bounded sets the interval for a share that was seen on so many independent draws from a finite population.
func (p Proportion) bounded(draws, sampled float64) Proportion {
	switch {
	case sampled >= 1:
		p.Low, p.High = p.Share, p.Share
		return p
	case draws <= 0:
		p.High = 1
		return p
	}
	n := draws / (1 - sampled)
	centre := (p.Share + z95*z95/(2*n)) / (1 + z95*z95/n)
	half := z95 / (1 + z95*z95/n) * math.Sqrt(p.Share*(1-p.Share)/n+z95*z95/(4*n*n))
	p.Low, p.High = min(max(centre-half, 0), p.Share), max(min(centre+half, 1), p.Share)
	return p
}
