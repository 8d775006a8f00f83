package service

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatLastsTooLongIsEndedOnTimeAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := overdue{limit: 10 * time.Second}
		began := time.Now()
		var mutex sync.Mutex
		ended := map[string][]time.Duration{}
		begin := func(name string) func() {
			e := o.begin(func() {
				mutex.Lock()
				defer mutex.Unlock()
				ended[name] = append(ended[name], time.Since(began))
			})
			return func() { o.done(e) }
		}
		// soFar returns the values that have ended, after all overdue ones have.
		soFar := func() map[string][]time.Duration {
			synctest.Wait()
			mutex.Lock()
			defer mutex.Unlock()
			return maps.Clone(ended)
		}
		first := begin("first")
		time.Sleep(3 * time.Second)
		late := begin("late")
		time.Sleep(time.Second)
		first()
		time.Sleep(time.Second)
		begin("later")
		time.Sleep(20 * time.Second)
		late()
		require.Equal(t, map[string][]time.Duration{"late": {13 * time.Second}, "later": {15 * time.Second}}, soFar())
		require.Zero(t, o.pending.Len())

		begin("after a pause")
		time.Sleep(20 * time.Second)
		require.Equal(t, []time.Duration{35 * time.Second}, soFar()["after a pause"])
	})
}
