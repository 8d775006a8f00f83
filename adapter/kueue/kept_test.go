package kueue

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// entitiesOf counts what a reader keeps.
func entitiesOf(r *reader) (n int) {
	for _, list := range reflect.ValueOf(r.entities).Fields() {
		n += list.Len()
	}
	return n
}

// TestEveryKindIsKeptBetweenSnapshots finds a kind that files have and a followed cluster loses, or of which it sees no change: each is
// listed in take and in Objects.hash.
func TestEveryKindIsKeptBetweenSnapshots(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			newest := kind.Newest()
			text := fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "metadata": {"name": "a", "namespace": "b", "labels": {"x": "y"}}}`,
				newest.Version, newest.Name)
			read := newReader(time.Time{}, nil)
			kinds.Each(read, []objects.Source{{Name: "f", Data: text}})
			require.Empty(t, read.Found.Listed)
			require.NotZero(t, entitiesOf(read))
			followed := NewObjects()
			object, err := followed.Read(newest, text)
			require.NoError(t, err)
			followed.Put(object)
			again := newReader(time.Time{}, nil)
			followed.View(func(list func(kind string) ([]*objects.Content, bool)) {
				held, _ := list(kind.Kind)
				for _, c := range held {
					again.take(c)
					require.NotEqual(t, followed.hash(&objects.Content{}), c.Sum)
				}
			})
			require.Equal(t, entitiesOf(read), entitiesOf(again))
		})
	}
}
