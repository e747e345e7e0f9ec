package raid

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
)

// honest are what people say in a room; the generator adds names, numbers and endings.
var honest = []string{
	"主播今天状态真好", "哈哈哈笑死我了", "这个操作太秀了吧", "前面的等等我", "求问这是什么歌", "来晚了刚刚发生什么", "支持支持一直支持", "这波可以的", "我觉得还行吧", "明天还播吗", "声音有点小", "画质好清晰",
	"what game is this", "that was so close", "anyone from brazil here", "i missed the start", "the music is too loud", "best stream this week", "how long have you been live", "can you show the map again",
	"no way he made that", "first time here and i like it", "which keyboard do you use", "greetings from berlin", "lets go team", "that boss is unfair", "my cat loves this stream", "is this a replay",
}

type message struct {
	at    int64
	user  uint64
	text  string
	young bool
	raid  bool
}

// newcomer draws by the user, the same each time.
func newcomer(u uint64, share float64) bool { return float64(mix(u)%1000) < 1000*share }

type crowd struct{ r *rand.Rand }

// chat is n messages over a time by people of whom a share are newcomers.
func (c crowd) chat(n, people int, young float64, ms int64) (out []message) {
	for range n {
		u := uint64(c.r.IntN(people))
		text := honest[c.r.IntN(len(honest))]
		if c.r.IntN(2) == 0 {
			text += fmt.Sprint(" ", []string{"!", "~", "吧", "lol", "haha", fmt.Sprint(c.r.IntN(100))}[c.r.IntN(6)])
		}
		out = append(out, message{c.r.Int64N(ms), u, text, newcomer(u, young), false})
	}
	return out
}

// shout is everybody saying one word in his own way, once or twice.
func (c crowd) shout(people int, young float64, ms int64, words ...string) (out []message) {
	for u := range people {
		for range 1 + c.r.IntN(2) {
			w := words[c.r.IntN(len(words))] + strings.Repeat("!", c.r.IntN(4))
			out = append(out, message{c.r.Int64N(ms), uint64(u), w, newcomer(uint64(u), young), false})
		}
	}
	return out
}

// raid is accounts that came lately and each send a variant of one text.
func (c crowd) raid(accounts int, ms int64) (out []message) {
	const text = "join group 8812 for free coins and gifts today only"
	for u := range accounts {
		words := strings.Fields(text)
		for range c.r.IntN(3) {
			i := c.r.IntN(len(words))
			words[i] = []string{words[i], words[i] + "🎁", "✨" + words[i], fmt.Sprint(c.r.IntN(1000)), strings.ToUpper(words[i])}[c.r.IntN(5)]
		}
		out = append(out, message{c.r.Int64N(ms), 1_000_000 + uint64(u), strings.ToLower(strings.Join(words, " ")), true, true})
	}
	return out
}

// play returns after how many of the raid's messages it was seen (-1: never), how many of the raid were shown, and how many honest messages of
// newcomers or like the raid's would have been held from then on, of all honest ones.
func play(all []message) (seen, shown, wrong, right int) {
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	d, seen := &Detector{}, -1
	var sample Sketch
	for _, m := range all {
		s := Of(m.text)
		held := seen >= 0 && (m.young || s.Like(sample))
		switch {
		case m.raid && !held:
			shown++
		case !m.raid && held:
			wrong++
		case !m.raid:
			right++
		}
		if !held && d.Saw(m.at, s, m.user, m.young) && seen < 0 {
			seen, sample = shown, s
		}
	}
	return seen, shown, wrong, right
}

// Attack and false-positive rates, told in docs/protocol.md. 10 rounds of each, seeded.
func TestRates(t *testing.T) {
	const rounds = 10
	for _, c := range []struct {
		name  string
		raids bool
		most  float64 // of the raid shown, or rounds with a raid seen where there is none
		make  func(c crowd) []message
	}{
		{"raid of 50 in a minute, 300 people", true, .30, func(c crowd) []message { return append(c.chat(600, 300, .1, 60_000), c.raid(50, 60_000)...) }},
		{"raid of 500 in a minute, 5,000 people", true, .03, func(c crowd) []message { return append(c.chat(3000, 5000, .1, 60_000), c.raid(500, 60_000)...) }},
		{"raid of 50 in a minute, a quiet room", true, .60, func(c crowd) []message { return append(c.chat(20, 10, .2, 60_000), c.raid(50, 60_000)...) }},
		{"talk, 5,000 people", false, 0, func(c crowd) []message { return c.chat(3000, 5000, .1, 60_000) }},
		{"goal, 5,000 people, a tenth new", false, 0, func(c crowd) []message {
			return append(c.chat(1000, 5000, .1, 60_000), c.shout(5000, .1, 20_000, "goal", "goaaal", "GOAL goal", "球进了进了", "球进啦球进啦")...)
		}},
		{"goal, 5,000 people, half new", false, 0, func(c crowd) []message {
			return append(c.chat(1000, 5000, .5, 60_000), c.shout(5000, .5, 20_000, "goal", "goaaal", "球进了进了")...)
		}},
		{"a room where all are new", false, 0, func(c crowd) []message {
			return append(c.chat(1000, 2000, 1, 60_000), c.shout(2000, 1, 60_000, "hello everybody", "主播好呀大家好")...)
		}},
	} {
		share, seen, wrong, honest := 0.0, 0, 0, 0
		for round := range rounds {
			all := c.make(crowd{rand.New(rand.NewPCG(uint64(round), 7))})
			of := 0
			for _, m := range all {
				if m.raid {
					of++
				}
			}
			at, shown, bad, good := play(all)
			if at >= 0 {
				seen++
				wrong, honest = wrong+bad, honest+bad+good
			}
			share += float64(shown) / float64(max(of, 1)) / rounds
		}
		t.Logf("%s: seen in %d of %d rounds, %.1f %% of the raid shown, %.1f %% of honest messages held", c.name, seen, rounds, 100*share, 100*float64(wrong)/float64(max(honest, 1)))
		if c.raids && (seen < rounds || share > c.most) || !c.raids && seen > 0 {
			t.Errorf("%s: seen in %d of %d rounds, %.3f of the raid shown", c.name, seen, rounds, share)
		}
	}
}

// What staff found harmless is seen no more for a while; short texts never are a raid.
func TestPardonedAndShort(t *testing.T) {
	d := &Detector{}
	shout := func(text string, from int64) (seen bool) {
		for u := range uint64(40) {
			seen = d.Saw(from+100*int64(u), Of(text), u, true) || seen
		}
		return seen
	}
	if shout("666", 1) {
		t.Error("a short text is a raid")
	}
	if !shout("join us for free coins", 100_000) {
		t.Error("a raid is not seen")
	}
	d.Pardon(200_000, Of("join us for free coins"))
	if shout("join us for free coins", 200_001) || !shout("another text of a raid", 300_000) || !shout("join us for free coins", 900_000) {
		t.Error("pardoned are others, or for ever")
	}
}

func BenchmarkSaw(b *testing.B) {
	c := crowd{rand.New(rand.NewPCG(1, 1))}
	all := c.chat(memory*2, 5000, .1, 20_000)
	d := &Detector{}
	for _, m := range all {
		d.Saw(1000, Of(m.text), m.user, m.young)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m := all[i%len(all)]
		d.Saw(1000, Of(m.text), m.user, m.young)
		i++
	}
}
