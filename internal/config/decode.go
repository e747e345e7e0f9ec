package config

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"liveroom/protocol"
)

// decode writes v, a string from the environment or a value from YAML, into the field p points to. The returned error
// is what would have been allowed.
func decode(p, v any) error {
	switch p := p.(type) {
	case *string:
		s, ok := scalar(v)
		*p = s
		if !ok {
			return errors.New("one value")
		}
		return nil
	case *bool:
		return parse(p, v, strconv.ParseBool, "true or false")
	case *int:
		return parse(p, v, strconv.Atoi, "a whole number")
	case *float64:
		return parse(p, v, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, "a number such as 0.1")
	case *time.Duration:
		return parse(p, v, time.ParseDuration, "a duration with its unit, such as 10s or 250ms")
	case *[]string:
		list, ok := scalars(v)
		*p = list
		if !ok {
			return errors.New("a list of values, in flags and environment with commas between")
		}
		return nil
	case *[]netip.Prefix:
		return decodePrefixes(p, v)
	case *[]protocol.CatalogueGift:
		return decodeList(p, v, "a list of gifts, each {id, name, names, price, icon}")
	case *[]Webhook:
		return decodeList(p, v, "a list of endpoints, each {name, url, rooms, kinds}")
	}
	panic(fmt.Sprintf("config: no decoder for %T", p))
}

func parse[T any](p *T, v any, read func(string) (T, error), allowed string) error {
	s, _ := scalar(v)
	got, err := read(s)
	if err != nil {
		return errors.New(allowed)
	}
	*p = got
	return nil
}

func decodePrefixes(p *[]netip.Prefix, v any) error {
	list, _ := scalars(v)
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		pre, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("addresses or CIDR prefixes such as 10.0.0.0/8")
		}
		out = append(out, pre.Masked())
	}
	*p = out
	return nil
}

// decodeList reads a list of objects, from the file or from one text of YAML.
func decodeList[T any](p *[]T, v any, allowed string) error {
	text, isText := v.(string)
	if !isText {
		b, err := yaml.Marshal(v)
		if err != nil {
			return errors.New(allowed)
		}
		text = string(b)
	}
	var list []T
	strict := yaml.NewDecoder(strings.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s (%s)", allowed, firstLine(err))
	}
	*p = list
	return nil
}

// scalar renders a string, number or boolean as it was written; nil, an empty value in YAML, is "".
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

// scalars accepts a YAML list, or one text with commas between.
func scalars(v any) ([]string, bool) {
	if s, ok := scalar(v); ok {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }), true
	}
	items, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(items))
	for _, it := range items {
		s, ok := scalar(it)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
