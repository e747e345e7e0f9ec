//go:build !linux

package conn

import "errors"

// poller is not available here: every session keeps a goroutine.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.ErrUnsupported }

func (*poller) add(*Session) error { return errors.ErrUnsupported }
func (*poller) forget(*Session)    {}
func (*poller) run(func())         {}
func (*poller) close()             {}
