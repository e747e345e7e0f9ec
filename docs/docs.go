// Package docs holds the one page of the documentation that a server hands out itself.
package docs

import _ "embed" // for the page

// OpenAPI describes the HTTP API, in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
