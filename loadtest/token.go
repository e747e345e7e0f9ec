package main

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// minter signs the tokens of made-up viewers with the server's secret. Without a secret there are only guests.
type minter struct {
	secret []byte
	prefix string        // of the users' ids, different in each run so that nobody's bucket is still empty
	ttl    time.Duration // how long a token is valid
}

// user is the id of viewer i.
func (m *minter) user(i int) string { return fmt.Sprintf("%s%d", m.prefix, i) }

// token is what viewer i says hello with; "" for a guest.
func (m *minter) token(i int) (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.user(i), "name": fmt.Sprintf("Viewer %d", i), "role": string(protocol.RoleViewer)})
}

// admin may call the operators' part of a server; "" without a secret.
func (m *minter) admin() (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.prefix + "admin", "role": string(protocol.RoleAdmin)})
}

func (m *minter) sign(claims jwt.MapClaims) (string, error) {
	if len(m.secret) == 0 {
		return "", nil
	}
	claims["exp"] = time.Now().Add(m.ttl).Unix()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(m.secret)
}
