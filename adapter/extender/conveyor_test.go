package extender

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender/extendertest"
)

// counted counts the bytes that are read from it.
type counted struct {
	io.Reader

	read int
}

func (c *counted) Read(to []byte) (int, error) {
	n, err := c.Reader.Read(to)
	c.read += n
	return n, err
}

func TestAConveyorRunsAheadByWhatItHoldsAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const boxes = 3
		text := strings.Repeat("0123456789abcdef", 5*boxBytes/16) + "the end"
		source, c := &counted{Reader: strings.NewReader(text)}, newConveyor(t.Context(), boxes)
		filled := make(chan error, 1)
		go func() { filled <- c.fill(source) }()
		synctest.Wait()
		require.Equal(t, boxes*boxBytes, source.read, "without a reader, so much is held")
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoError(t, <-filled)
		require.Equal(t, boxes, c.made, "boxes are used again")
	})
}

func TestAConveyorTellsHowItsTextBreaksOff(t *testing.T) {
	broken := errors.New("broken")
	c := newConveyor(t.Context(), 4)
	require.ErrorIs(t, c.fill(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))), broken)
	got, err := io.ReadAll(c)
	require.ErrorIs(t, err, broken)
	require.Equal(t, "half", string(got))
}

func TestAConveyorWithoutAReaderLetsItsSourceGo(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	c := newConveyor(ctx, 2)
	filled := make(chan error, 1)
	go func() { filled <- c.fill(strings.NewReader(strings.Repeat("x", 5*boxBytes))) }()
	end(errOver)
	require.ErrorIs(t, <-filled, errOver)
	_, err := io.ReadAll(c)
	require.ErrorIs(t, err, errOver)
}

// lastByte waits before the last byte of a text.
type lastByte struct {
	text []byte
	wait func()
}

func (l *lastByte) Read(to []byte) (int, error) {
	switch len(l.text) {
	case 0:
		return 0, io.EOF
	case 1:
		l.wait()
	}
	n := copy(to, l.text[:max(1, len(l.text)-1)])
	l.text = l.text[n:]
	return n, nil
}

func TestAPushIsReadWhileItArrivesAndDecodedBehindItsLastByte(t *testing.T) {
	push := extendertest.Push(extendertest.Shape{Pods: 200})
	require.Greater(t, len(push), 2*boxBytes)
	h := &Handler{options: Options{BufferBytes: 1 << 30}}
	turn := (&scheduler{}).begin(t.Context())
	r, err := h.receive(turn, &limitedBody{from: &lastByte{push, func() {}}, left: 1 << 30})
	require.NoError(t, err)
	<-r.done
	require.NoError(t, r.err)
	plain, err := readPruned(bytes.NewReader(push), bound{})
	require.NoError(t, err)
	requireSamePush(t, plain, r.read)
	require.NoError(t, turn.ctx.Err(), "it can be decided about")
}

func TestWhatFollowsAPushIsReadAndForgotten(t *testing.T) {
	push := append(extendertest.Push(extendertest.Shape{Pods: 100}), bytes.Repeat([]byte(" x"), 20<<20)...)
	h := &Handler{options: Options{BufferBytes: 1 << 20}}
	r, err := h.receive((&scheduler{}).begin(t.Context()), &limitedBody{from: bytes.NewReader(push), left: 1 << 30})
	require.NoError(t, err)
	<-r.done
	require.NoError(t, r.err)
}

func TestTheSchedulerIsListenedToTheEndWhateverBecomesOfItsPush(t *testing.T) {
	spoilt := append([]byte(`{"Jobs":7,"Queues":"`), bytes.Repeat([]byte("x"), 40<<20)...)
	for name, end := range map[string]func(*turn){
		"what it sends cannot be read":      func(*turn) {},
		"it sends another one in the midst": func(t *turn) { t.over(errOver) },
	} {
		turn := (&scheduler{}).begin(t.Context())
		body := &counted{Reader: bytes.NewReader(spoilt)}
		end(turn)
		h := &Handler{options: Options{BufferBytes: 1 << 20}}
		_, err := h.receive(turn, &limitedBody{from: body, left: 1 << 30})
		require.Error(t, err, name)
		require.Equal(t, len(spoilt), body.read, name)
	}
}
