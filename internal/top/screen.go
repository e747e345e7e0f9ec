package top

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Screen shows a node until somebody is done.
type Screen struct {
	Source *Source
	Every  time.Duration           // between two looks
	Sort   string                  // viewers, messages, gifts or name
	Keys   io.Reader               // nil: none come
	Size   func() (wide, high int) // of the terminal, in columns and lines; 0: unbounded

	view view
}

// Sorts are what rooms can be sorted by.
func Sorts() (names []string) {
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// Once prints what two looks, Every apart, come to.
func (s *Screen) Once(ctx context.Context, out io.Writer) error {
	s.begin()
	from, err := s.Source.Look(ctx, "")
	if err != nil {
		return err
	}
	select {
	case <-time.After(s.Every):
	case <-ctx.Done():
		return ctx.Err()
	}
	to, err := s.Source.Look(ctx, "")
	if err != nil {
		return err
	}
	for _, l := range s.view.lines(since{from, to}, 0, 0) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(l.text, " ")); err != nil {
			return err
		}
	}
	return nil
}

func (s *Screen) begin() {
	s.view.by = max(slices.Index(Sorts(), s.Sort), 0)
}

// Sequences of ECMA-48 and of xterm.
const (
	enter    = "\x1b[?1049h\x1b[?25l" // the other screen, no cursor
	leave    = "\x1b[?25h\x1b[?1049l"
	home     = "\x1b[H"
	lineEnd  = "\x1b[K\r\n"
	rest     = "\x1b[J"
	standOut = "\x1b[7m"
	plain    = "\x1b[0m"
)

// help is the last line.
const help = "q quit  s sort (v m g n)  ↑↓ choose  enter a room  esc back"

// Run draws until ctx ends or a key says so. A node that does not answer is said to, and asked again.
func (s *Screen) Run(ctx context.Context, out io.Writer) error {
	s.begin()
	if _, err := io.WriteString(out, enter); err != nil {
		return err
	}
	defer io.WriteString(out, leave)
	keys := make(chan string)
	over, end := context.WithCancel(ctx)
	defer end()
	if s.Keys != nil {
		go readKeys(over, s.Keys, keys) // not waited for: a read of a terminal can't be taken back, and the process ends
	}
	var d since
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	fault := ""
	for look, due := true, true; ; {
		if look {
			opened := ""
			if s.view.opened {
				opened = s.view.selected
			}
			l, err := s.Source.Look(ctx, opened)
			fault = ""
			switch {
			case err != nil:
				fault = err.Error()
			case d.from == nil:
				d = since{l, l}
			case due:
				d = since{d.to, l}
			default: // too soon for rates
				d.to = l
			}
		}
		if err := s.draw(out, d, fault); err != nil {
			return err
		}
		look, due = true, true
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case k := <-keys:
			was := s.view
			if !s.view.press(k, d.to) {
				return nil
			}
			look, due = s.view.opened && !was.opened, false
		}
	}
}

func (s *Screen) draw(out io.Writer, d since, fault string) error {
	wide, high := 80, 24
	if s.Size != nil {
		wide, high = s.Size()
	}
	var b strings.Builder
	b.WriteString(home)
	put := func(l line) {
		if l.marked {
			b.WriteString(standOut + l.text + plain + lineEnd)
			return
		}
		b.WriteString(l.text + lineEnd)
	}
	if d.to != nil {
		for _, l := range s.view.lines(d, wide, max(high-2, 1)) {
			put(l)
		}
	}
	if fault != "" {
		put(line{cut(clean(fault), wide), true})
	}
	b.WriteString(cut(help, wide) + rest)
	_, err := io.WriteString(out, b.String())
	return err
}

// press does what a key says, and reports whether to go on.
func (v *view) press(key string, l *Look) bool {
	if key == "q" || key == "\x03" { // Ctrl-C, which a raw terminal makes no signal
		return false
	}
	if l == nil {
		return true
	}
	step := 0
	switch key {
	case "s":
		v.by = (v.by + 1) % len(orders)
	case "\x1b", "b":
		v.opened = false
	case "\r", "\n":
		if rooms := v.rooms(l); v.selected == "" && len(rooms) > 0 {
			v.selected = rooms[0].ID
		}
		v.opened = v.selected != ""
	case "\x1b[A", "k":
		step = -1
	case "\x1b[B", "j":
		step = 1
	default:
		if i := slices.IndexFunc(orders, func(o order) bool { return key == string(o.key) }); i >= 0 {
			v.by = i
		}
	}
	if rooms := v.rooms(l); step != 0 && len(rooms) > 0 && !v.opened {
		at := slices.IndexFunc(rooms, func(r listed) bool { return r.ID == v.selected })
		if at < 0 {
			at = max(-step, 0) - 1 // the first, either way
		}
		v.selected = rooms[min(max(at+step, 0), len(rooms)-1)].ID
	}
	return true
}

// readKeys hands over keys, an arrow as one.
func readKeys(ctx context.Context, from io.Reader, keys chan<- string) {
	r := bufio.NewReader(from)
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return
		}
		key := string(c)
		if c == '\x1b' && r.Buffered() >= 2 {
			more := make([]byte, 2)
			if _, err := io.ReadFull(r, more); err != nil {
				return
			}
			key += string(more)
		}
		select {
		case keys <- key:
		case <-ctx.Done():
			return
		}
	}
}
