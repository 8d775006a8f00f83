package connection

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Listener returns a listener whose connections belong to the pool.
func (p *Pool) Listener(l net.Listener) net.Listener {
	return &listener{Listener: l, pool: p, closed: make(chan struct{})}
}

type listener struct {
	net.Listener

	pool   *Pool
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a connection, and then for room in the pool. It closes connections that are refused or replaced.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if exhausted(err) && l.pool.giveWay() {
				continue
			}
			l.pool.failing.Store(!errors.Is(err, net.ErrClosed))
			return nil, err
		}
		l.pool.failing.Store(false)
		conn, err := l.take(raw)
		if conn != nil || err != nil {
			return conn, err
		}
	}
}

// take waits for room for a connection. It returns nil without an error if the connection was refused.
func (l *listener) take(raw net.Conn) (net.Conn, error) {
	for {
		o := l.pool.take(raw)
		if o.victim != nil {
			o.victim.discard()
		}
		if o.conn != nil {
			return o.conn, nil
		}
		if o.changed == nil {
			// The error is ignored, because the peer sees the end of the connection.
			_ = raw.Close()
			return nil, nil //nolint:nilnil // A connection that was refused is no error of the listener.
		}
		var later <-chan time.Time
		if o.after > 0 {
			later = time.After(o.after)
		}
		select {
		case <-o.changed:
		case <-later:
		case <-l.closed:
			return nil, errors.Join(net.ErrClosed, raw.Close())
		}
	}
}

// exhausted reports whether the process or the system has no file descriptors left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Close ends Accept.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
