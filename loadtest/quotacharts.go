package main

// levelOverTime shows the proof: where the exact bucket stands after all admissions of all nodes.
func (r *Result) levelOverTime() chart {
	c := chart{title: "The exact bucket, drained by every admission of all nodes", x: timeAxis, y: countAxis,
		note: "Full at the start. Below zero the bound is broken; at zero nothing is left unused."}
	if r.Quota == nil {
		return c
	}
	level := series{name: "level, the least of each step", colour: 1}
	for _, p := range r.Quota.Levels {
		level.points = append(level.points, point{p.At, p.Level})
	}
	c.series = append(c.series, level)
	return c
}

// nodeColours are those of the page, in the order of the nodes; more nodes begin again.
const nodeColours = 5

func (r *Result) admittedByNode() chart {
	c := chart{title: "Admitted per second, node by node", note: "The room's quota is one for all of them.", x: timeAxis, y: countAxis}
	if r.Quota == nil {
		return c
	}
	var sum []point
	for i, n := range r.Quota.ByNode {
		s := series{name: n.Node, colour: i%nodeColours + 1}
		for second, admitted := range n.Admitted {
			at := float64(second) + 1
			s.points = append(s.points, point{at, float64(admitted)})
			if second == len(sum) {
				sum = append(sum, point{x: at})
			}
			sum[second].y += float64(admitted)
		}
		c.series = append(c.series, s)
	}
	if len(sum) > 1 {
		rate := float64(r.Quota.Rate)
		c.series = append(c.series, series{"all", 6, false, sum}, series{"quota", 5, true, []point{{0, rate}, {sum[len(sum)-1].x, rate}}})
	}
	return c
}

func (r *Result) redisOverTime() chart {
	c := chart{title: "Calls to Redis per second", note: "As the nodes count them, and as Redis itself counts the scripts it runs.", x: timeAxis, y: countAxis}
	if r.Quota == nil || len(r.Quota.Calls) == 0 {
		return c
	}
	room, user, scripts := series{"for the room", 1, false, nil}, series{"for users", 3, false, nil}, series{"scripts that Redis ran", 2, true, nil}
	before := r.Quota.Calls[0]
	for _, x := range r.Quota.Calls[1:] {
		span := max(x.At-before.At, 1e-3)
		room.points = append(room.points, point{x.At, max(0, x.Room-before.Room) / span})
		user.points = append(user.points, point{x.At, max(0, x.User-before.User) / span})
		scripts.points = append(scripts.points, point{x.At, max(0, x.Scripts-before.Scripts) / span})
		before = x
	}
	c.series = append(c.series, room, user, scripts)
	return c
}
