package redisstore

import (
	"testing"

	"go.uber.org/goleak"
)

// go-redis goes on trying to connect, each second, for some time after a pool whose server is gone was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
