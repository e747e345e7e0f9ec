package room

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// nicknames are what people call themselves.
var nicknames = strings.Fields(`小鱼干 夜猫子 Alice 风吹麦浪 DragonFly 橘子汽水 momo 路人甲 MidnightRain 不吃香菜 阿泽 SunnyDay 星河 一只柯基
	Kevin 糖醋排骨 北方的狼 luna 云朵 GreenTea 半糖去冰 Oliver 想去看海 NoodleKing 早睡冠军 Mia 打工人 JazzHands 山有木兮 tofu`)

// crowdOf joins n viewers who are called as real ones are: guests, and users of a platform with and without a number behind
// their name.
func (w *world) crowdOf(n int, r *rand.Rand) []*viewer {
	var out []*viewer
	for range n {
		user, name := fmt.Sprintf("u%d", 10_000_000+r.IntN(90_000_000)), nicknames[r.IntN(len(nicknames))]
		switch r.IntN(3) {
		case 0:
			user = fmt.Sprintf("guest-%012s", strconv.FormatUint(r.Uint64()>>4, 32)) // 60 random bits, as the server draws them
			name = "Guest " + strings.ToUpper(user[len(user)-4:])
		case 1:
			name += fmt.Sprint(r.IntN(1000))
		}
		out = append(out, w.join("demo", user, deflating, func(j *JoinRequest) { j.Who.Name = name }))
	}
	return out
}

// TestBytesPerDanmaku: what a danmaku of real text costs a viewer on the wire, in a room of 250 who take deflated frames,
// with people who write when they like. The room that does not gather is there to be compared with.
func TestBytesPerDanmaku(t *testing.T) {
	text, err := os.ReadFile("../loadtest/internal/client/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	measure := func(t *testing.T, perSecond float64, gatherTick, long time.Duration) (got wire) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, newMemoryBus(), func(cfg *Config) { cfg.Gate, cfg.Audience.GatherTick = gateOf(t, unlimited), gatherTick })
			r := rand.New(rand.NewPCG(1, uint64(perSecond)))
			crowd := w.crowdOf(250, r)
			talk := func(d time.Duration) {
				for end := time.Now().Add(d); time.Now().Before(end); {
					crowd[r.IntN(len(crowd))].say(lines[r.IntN(len(lines))])
					time.Sleep(time.Duration(r.ExpFloat64() / perSecond * float64(time.Second)))
				}
			}
			talk(long / 4)
			before := crowd[0].onWire()
			talk(long)
			got = crowd[0].onWire().minus(before)
			w.stop()
		})
		return got
	}
	for _, c := range []struct{ perSecond, most float64 }{{10, 1}, {20, 1}, {50, 0.75}, {100, 0.55}, {300, 0.42}, {1000, 0.37}} {
		worth := func(danmaku float64) time.Duration {
			return time.Duration(min(20, danmaku/c.perSecond) * float64(time.Second))
		}
		gathering, steady := measure(t, c.perSecond, 0, worth(2000)), measure(t, c.perSecond, time.Millisecond, worth(400))
		plain := float64(steady.plain) / float64(steady.danmaku)
		ratio := float64(gathering.deflated) / float64(gathering.danmaku) / plain
		t.Logf("%4.0f/s: %.0f B plain; every 25 ms: %.1f danmaku per frame, %.2f; gathering: %.1f per frame, %.2f", c.perSecond, plain,
			float64(steady.danmaku)/float64(steady.frames), float64(steady.deflated)/float64(steady.plain),
			float64(gathering.danmaku)/float64(gathering.frames), ratio)
		if ratio > c.most {
			t.Errorf("%.0f/s: %.3f of the bytes, want %.2f at most", c.perSecond, ratio, c.most)
		}
	}
}

func (s *fakeSession) onWire() wire {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wire
}

func (a wire) minus(b wire) wire {
	return wire{a.frames - b.frames, a.danmaku - b.danmaku, a.plain - b.plain, a.deflated - b.deflated}
}
