package service

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func key(identity, digest string) entryKey { return entryKey{identity, digest} }

func TestTheLeastRecentlyUsedSnapshotGoesFirst(t *testing.T) {
	evicted := 0
	c := newCache(300, 300, 2, func() { evicted++ })
	m := &model.Model{}
	for _, digest := range []string{"a", "b", "c"} {
		require.True(t, c.put(key("x", digest), m, "", 100, nil))
	}
	require.NotNil(t, c.find(key("x", "a")))
	require.True(t, c.put(key("x", "d"), m, "", 100, nil))
	require.NotNil(t, c.find(key("x", "a")))
	require.Nil(t, c.find(key("x", "b")))
	require.Equal(t, 1, evicted)
}

func TestWhatOneIdentityHoldsIsNoneOfAnothersBusiness(t *testing.T) {
	c := newCache(1000, 200, 2, func() {})
	m := &model.Model{}
	require.True(t, c.put(key("greedy", "a"), m, "", 150, nil))
	require.True(t, c.put(key("modest", "a"), m, "", 100, nil))
	require.Nil(t, c.find(key("nobody", "a")))
	require.True(t, c.put(key("greedy", "b"), m, "", 150, nil))
	require.Nil(t, c.find(key("greedy", "a")), "the quota makes the greedy one's own snapshots go")
	require.NotNil(t, c.find(key("modest", "a")))
	require.False(t, c.put(key("greedy", "huge"), m, "", 201, nil))
	require.NotNil(t, c.find(key("greedy", "b")), "what is refused makes nothing go")
}

func TestIdleSessionsCountAndAreBounded(t *testing.T) {
	c := newCache(1000, 1000, 2, func() {})
	require.True(t, c.put(key("x", "a"), &model.Model{}, "", 100, nil))
	h := c.find(key("x", "a"))
	for range 3 {
		c.give(h, "policy", &pooledSession{bytes: 10})
	}
	_, bytes := c.usage()
	require.Equal(t, int64(120), bytes)
	for i := range 40 {
		c.give(h, fmt.Sprint(i), &pooledSession{bytes: 1})
	}
	_, bytes = c.usage()
	require.Equal(t, int64(120+15), bytes, "sixteen policies at most have sessions waiting")
	require.NotNil(t, c.take(h, "policy"))
	require.NotNil(t, c.take(h, "policy"))
	require.Nil(t, c.take(h, "policy"))
	_, bytes = c.usage()
	require.Equal(t, int64(100+15), bytes)
}

func TestTheCacheKeepsItsBoundsAndItsBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(1000, 400, 2, func() {})
		identities, digests := rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		var out []*pooledSession
		var from []*entry
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := key(identities.Draw(t, "identity"), digests.Draw(t, "digest"))
			h := c.find(k)
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				size := rapid.Int64Range(0, 450).Draw(t, "size")
				require.Equal(t, size <= 400, c.put(k, &model.Model{}, "", size, nil))
			case 1:
				if h != nil {
					r := c.take(h, "p")
					if r == nil {
						r = &pooledSession{}
					}
					out, from = append(out, r), append(from, h)
				}
			default:
				if len(out) > 0 {
					out[0].bytes = rapid.Int64Range(0, 100).Draw(t, "grown")
					c.give(from[0], "p", out[0])
					out, from = out[1:], from[1:]
				}
			}
			total, sums := int64(0), map[string]int64{}
			for _, h := range c.snapshots {
				require.False(t, h.gone)
				bytes := h.bytes
				for _, sessions := range h.idle {
					for _, r := range sessions {
						bytes -= r.bytes
					}
				}
				require.GreaterOrEqual(t, bytes, int64(0))
				total += h.bytes
				sums[h.key.identity] += h.bytes
			}
			require.Len(t, c.snapshots, c.recent.Len())
			require.Equal(t, total, c.bytes)
			require.LessOrEqual(t, c.bytes, int64(1000))
			for identity, sum := range c.identities {
				require.LessOrEqual(t, sum, int64(400))
				require.Equal(t, sums[identity], sum)
			}
		}
	})
}

func TestWhatABaseTakesStaysBookedAsLongAsAResultIsHeld(t *testing.T) {
	c := newCache(300, 300, 2, func() {})
	m := &model.Model{}
	require.True(t, c.put(key("x", "base"), m, "", 100, nil))
	base := c.find(key("x", "base"))
	require.True(t, c.put(key("x", "filler"), m, "", 50, nil))
	require.True(t, c.put(key("x", "result"), m, "", 10, base))
	require.True(t, c.put(key("x", "other"), m, "", 150, nil))
	require.Nil(t, c.find(key("x", "base")), "the least recently used is let go, which gives nothing back")
	require.Nil(t, c.find(key("x", "filler")))
	_, bytes := c.usage()
	require.Equal(t, int64(100+10+150), bytes)
	result := c.find(key("x", "result"))
	require.False(t, c.put(key("x", "next"), m, "", 191, result), "a chain counts as a whole")
	require.True(t, c.put(key("x", "whole"), m, "", 300, nil))
	_, bytes = c.usage()
	require.Equal(t, int64(300), bytes, "all of the chain is given back")
	require.True(t, c.put(key("x", "late"), m, "", 10, result), "what was let go while a change was compiled is booked again")
	_, bytes = c.usage()
	require.Equal(t, int64(100+10+10), bytes)
}

func TestBookingsOfChainsComeToNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(1000, rapid.Int64Range(100, 1000).Draw(t, "quota"), 2, func() {})
		seen := []*entry{nil}
		for i := range rapid.IntRange(1, 40).Draw(t, "snapshots") {
			k := key(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "identity"), fmt.Sprint(i))
			base := rapid.SampledFrom(seen).Draw(t, "base")
			if base != nil && base.key.identity != k.identity {
				base = nil
			}
			c.put(k, &model.Model{}, "", rapid.Int64Range(1, 300).Draw(t, "bytes"), base)
			if e := c.find(k); e != nil {
				seen = append(seen, e)
			}
			held := map[*entry]bool{}
			for _, e := range c.snapshots {
				for ; e != nil; e = e.base {
					held[e] = true
				}
			}
			want := int64(0)
			for e := range held {
				want += e.own
			}
			_, bytes := c.usage()
			require.Equal(t, want, bytes)
			require.LessOrEqual(t, bytes, c.limit)
		}
	})
}

func TestAVersionOfAKeptSnapshotIsBookedToThoseWhoPinIt(t *testing.T) {
	c := newCache(10_000, 1000, 2, func() {})
	version := func(own int64) *entry {
		return &entry{own: own, bytes: own, gone: true, kept: "cluster", viewed: func() *apportionv1.SnapshotView { return nil }}
	}
	first := version(300)
	for _, identity := range []string{"x", "y"} {
		for _, digest := range []string{"a", "b"} {
			require.True(t, c.put(key(identity, digest), &model.Model{}, "", 10, first))
		}
		require.EqualValues(t, 320, c.identities[identity], "once, and what is its own")
	}
	_, bytes := c.usage()
	require.EqualValues(t, 640, bytes)
	require.EqualValues(t, 300, first.bytes)
	for i := range 20 {
		require.True(t, c.put(key("x", fmt.Sprint(i)), &model.Model{}, "", 1, version(300)))
		require.LessOrEqual(t, c.identities["x"], int64(1000))
	}
	require.Nil(t, c.find(key("x", "a")), "the oldest of x went")
	require.NotNil(t, c.find(key("y", "a")))
	require.Equal(t, map[string]int{"y": 2}, first.pinned)
	require.False(t, c.put(key("x", "large"), &model.Model{}, "", 1, version(1000)))
}
