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

// later is messages, later.
func (crowd) later(all []message, ms int64) []message {
	for i := range all {
		all[i].at += ms
	}
	return all
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

// figures are what becomes of messages in all rounds of a scene.
type figures struct {
	raided, shown, left int // rounds in which a raid was seen; messages of a raid that were shown, and that were not taken back
	attack              int // messages of raids
	held, taken, honest int // honest messages that were held and that were taken back, of all in rounds with a raid
}

func (f *figures) play(all []message) {
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	as := make([]Message, len(all))
	for i, m := range all {
		as[i] = Message{At: m.at, Sketch: Of(m.text), User: m.user, Young: m.young}
	}
	fates, seen := Play(as)
	if len(seen) > 0 {
		f.raided++
	}
	for i, m := range all {
		switch {
		case m.raid:
			f.attack++
			if fates[i] != Held {
				f.shown++
			}
			if fates[i] == Shown {
				f.left++
			}
		case len(seen) > 0:
			f.honest++
			if fates[i] == Held {
				f.held++
			}
			if fates[i] == TakenBack {
				f.taken++
			}
		}
	}
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// Attack and false-positive rates, told in docs/protocol.md. Ten rounds of each raid and three of what is none, seeded.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		name  string
		raids bool
		shown float64 // percent of the raid, at most
		left  float64 // and of it what is not taken back
		make  func(c crowd) []message
	}{
		{"raid of 50 in a minute, 300 people", true, 25, 3, func(c crowd) []message { return append(c.chat(600, 300, .1, 60_000), c.raid(50, 60_000)...) }},
		{"raid of 500 in a minute, 5,000 people", true, 3, 1, func(c crowd) []message { return append(c.chat(3000, 5000, .1, 60_000), c.raid(500, 60_000)...) }},
		{"raid of 50 in a minute, a quiet room", true, 50, 10, func(c crowd) []message { return append(c.chat(20, 10, .2, 60_000), c.raid(50, 60_000)...) }},
		{"raid of 50 in a minute, a room where three have talked in four minutes", true, 60, 10, func(c crowd) []message {
			return append(c.chat(20, 3, 0, 240_000), c.later(c.raid(50, 60_000), 240_000)...)
		}},
		{"raid of 50 in a minute, nobody talks", true, 70, 10, func(c crowd) []message { return c.raid(50, 60_000) }},
		{"raid of 50 in ten milliseconds, 300 people", true, 50, 3, func(c crowd) []message {
			return append(c.chat(600, 300, .1, 60_000), c.later(c.raid(50, 10), 30_000)...)
		}},
		{"raid of 50 in five seconds, 300 people", true, 25, 3, func(c crowd) []message {
			return append(c.chat(600, 300, .1, 60_000), c.later(c.raid(50, 5_000), 30_000)...)
		}},
		{"a show begins: five talk, then 300 come and greet", false, 0, 0, func(c crowd) []message {
			return append(c.chat(40, 5, 0, 240_000), c.later(append(c.chat(300, 300, 1, 60_000), c.shout(150, 1, 60_000, "hello everybody", "good evening", "hi all of you", "大家晚上好", "主播好呀")...), 240_000)...)
		}},
		{"talk, 5,000 people", false, 0, 0, func(c crowd) []message { return c.chat(3000, 5000, .1, 60_000) }},
		{"goal, 5,000 people, a tenth new", false, 0, 0, func(c crowd) []message {
			return append(c.chat(1000, 5000, .1, 60_000), c.shout(5000, .1, 20_000, "goal", "goaaal", "GOAL goal", "球进了进了", "球进啦球进啦")...)
		}},
		{"goal, 5,000 people, half new", false, 0, 0, func(c crowd) []message {
			return append(c.chat(1000, 5000, .5, 60_000), c.shout(5000, .5, 20_000, "goal", "goaaal", "球进了进了")...)
		}},
		{"a room where all are new", false, 0, 0, func(c crowd) []message {
			return append(c.chat(1000, 2000, 1, 60_000), c.shout(2000, 1, 60_000, "hello everybody", "主播好呀大家好")...)
		}},
	} {
		var f figures
		rounds := 10
		if !c.raids {
			rounds = 3 // they are large
		}
		for round := range rounds {
			f.play(c.make(crowd{rand.New(rand.NewPCG(uint64(round), 7))}))
		}
		t.Logf("%s: seen in %d of %d rounds; of the raid %.1f %% shown, %.1f %% left; of honest messages %.1f %% held, %.2f %% taken back", c.name, f.raided, rounds,
			percent(f.shown, f.attack), percent(f.left, f.attack), percent(f.held, f.honest), percent(f.taken, f.honest))
		if c.raids && (f.raided < rounds || percent(f.shown, f.attack) > c.shown || percent(f.left, f.attack) > c.left) || !c.raids && f.raided > 0 {
			t.Errorf("%s: seen in %d of %d rounds, %+v", c.name, f.raided, rounds, f)
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
	if shout("join us for free coins", 200_001) || !shout("another text of a raid", 300_000) || !shout("join us for free coins", 901_000) {
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
