//go:build !linux

package conn

import "errors"

// poller is not available here: a session that rests keeps a small goroutine, see Session.await.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) add(*Session) error { return errors.ErrUnsupported }
func (*poller) forget(*Session)    {}
func (*poller) run(func())         {}
func (*poller) close()             {}
