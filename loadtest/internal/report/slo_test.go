package report

import (
	"strings"
	"testing"
)

func TestObjectivesAreReadAndJudged(t *testing.T) {
	o, err := ParseObjectives("p99=200ms, gift_loss=0,delivered>=99.9%,memory_per_session<=6KiB,deliveries_per_second=5000000,slow_ratio<=1.3")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{"p99": 0.2, "gift_loss": 0, "delivered": 1, "memory_per_session": 6144, "deliveries_per_second": 5.1e6, "slow_ratio": 1.3}
	if !Judge(o, values) {
		t.Errorf("all are met: %v", o)
	}
	for name, worse := range map[string]float64{"p99": 0.201, "gift_loss": 1, "delivered": 0.99, "memory_per_session": 6145, "deliveries_per_second": 4e6} {
		before := values[name]
		values[name] = worse
		if Judge(o, values) {
			t.Errorf("%s=%v passes", name, worse)
		}
		values[name] = before
	}
	delete(values, "p99")
	if Judge(o, values) || !strings.Contains(o[0].String(), "not measured") {
		t.Errorf("what was not measured is not met: %s", o[0])
	}
}

func TestAGoalIsToldAndFailsNothing(t *testing.T) {
	o, err := ParseObjectives("gift_loss=0,~gift_p99=200ms")
	if err != nil {
		t.Fatal(err)
	}
	if !Judge(o, map[string]float64{"gift_loss": 0, "gift_p99": 0.322}) || !strings.Contains(o[1].String(), "not reached: it was 322") {
		t.Errorf("a goal that was not reached: %s", o[1])
	}
	if Judge(o, map[string]float64{"gift_loss": 1, "gift_p99": 0.1}) {
		t.Error("a loss passes beside a goal")
	}
}

func TestEveryFaultOfAnObjectiveIsTold(t *testing.T) {
	_, err := ParseObjectives("p98=1s,p99=fast,gift_loss=x,delivered<1,=3,p50=-1s,memory_per_session=6XB")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"p98", "fast", `"x"`, "delivered<1", `"=3"`, `"-1s"`, `"6XB"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told: %v", want, err)
		}
	}
}

func FuzzObjectives(f *testing.F) {
	f.Add("p99=200ms,gift_loss=0")
	f.Add("delivered>=99.9%")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseObjectives(s)
		if err != nil {
			return
		}
		for _, x := range o {
			if _, known := quantityNamed(x.Name); !known || x.Bound != x.Bound {
				t.Fatalf("%q reads as %+v", s, x)
			}
		}
	})
}

func TestQuantitiesHaveOneNameEach(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range Quantities() {
		if seen[q.Name] || q.About == "" {
			t.Errorf("%q is there twice, or says nothing", q.Name)
		}
		seen[q.Name] = true
	}
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{"12.3ms": InSeconds.Format(0.012345), "4.38 KB": inBytes.Format(4380), "42": inCount.Format(42), "0.999": inRatio.Format(0.9991)} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
