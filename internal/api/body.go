package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"liveroom/protocol"
)

// decode reads one strict JSON object into v: a field that v does not have is named in the refusal, and nothing may
// follow the object.
func decode(w http.ResponseWriter, r *http.Request, v any) *protocol.Error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, protocol.MaxRequestBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bodyError(err)
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "body: allowed is one JSON object; received more behind it"}
	}
	return nil
}

func bodyError(err error) *protocol.Error {
	var tooBig *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	detail := "body: allowed is one JSON object"
	switch {
	case errors.As(err, &tooBig):
		return &protocol.Error{Reason: protocol.ReasonTooLong, Detail: fmt.Sprintf("body: allowed is at most %d bytes", tooBig.Limit)}
	case errors.As(err, &kind) && kind.Field != "":
		detail = fmt.Sprintf("%s: allowed is %s; received %s", kind.Field, typeWord(kind.Type.Kind().String()), kind.Value)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		detail = strings.TrimPrefix(err.Error(), "json: unknown field ") + ": allowed is a known field; received an unknown one"
	}
	return &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: detail}
}

// typeWord turns Go's word for a type into JSON's.
func typeWord(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case kind == "bool":
		return "true or false"
	case kind == "struct", kind == "map", kind == "ptr":
		return "an object"
	case kind == "slice":
		return "a list"
	}
	return "a " + kind
}
