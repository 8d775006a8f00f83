package store

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/apportion/apportion/internal/test/raced"
)

var numbers = Options{Format: "numbers/1", Tables: []string{"number"}, Wait: 10 * time.Millisecond}

func number(n int) Entry {
	return Entry{"number", []byte(strconv.Itoa(n)), []byte("value " + strconv.Itoa(n))}
}

// made returns a file with some numbers.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store")
	s, err := Open(path, numbers)
	require.NoError(t, err)
	var entries []Entry
	for n := range 500 {
		entries = append(entries, number(n))
	}
	require.NoError(t, s.Write(entries))
	require.NoError(t, s.Write([]Entry{{"number", []byte("7"), nil}, {"number", []byte("none"), nil}}))
	require.NoError(t, s.Close())
	return path
}

// read opens a file and reads all of it.
func read(path string) (map[string]string, error) {
	s, err := Open(path, numbers)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	err = s.Each("number", func(key, value []byte) error {
		out[string(key)] = string(value)
		return nil
	})
	if failure := s.Close(); err == nil {
		err = failure
	}
	return out, err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	got, err := read(made(t))
	require.NoError(t, err)
	require.Len(t, got, 499)
	require.Equal(t, "value 12", got["12"])
}

// another returns a file of its own for data. A file may still be mapped when opening it has failed.
func another(t *testing.T, data []byte) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "store-")
	require.NoError(t, err)
	_, err = file.Write(data)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return file.Name()
}

func TestADamagedByteIsAnErrorOrChangesNothing(t *testing.T) {
	if raced.On {
		t.Skip("a goroutine of bbolt still walks a damaged file while its transaction ends")
	}
	path := made(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := read(path)
	require.NoError(t, err)
	noticed := 0
	for at := 0; at < len(whole); at += 61 {
		damaged := append([]byte{}, whole...)
		damaged[at] ^= 0x55
		got, err := read(another(t, damaged))
		if err != nil {
			noticed++
			require.ErrorContains(t, err, "store-")
			continue
		}
		require.True(t, maps.Equal(want, got), "byte %d", at)
	}
	require.Positive(t, noticed)
}

// TestADamagedPageDoesNotEndTheProcess damages the heads of pages, of which bbolt follows some in a goroutine of its own.
func TestADamagedPageDoesNotEndTheProcess(t *testing.T) {
	if raced.On {
		t.Skip("a goroutine of bbolt still walks a damaged file while its transaction ends")
	}
	const page, head = 4096, 80
	path := made(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := read(path)
	require.NoError(t, err)
	noticed := 0
	for at := range whole {
		if at%page >= head || whole[at] == 0xff {
			continue
		}
		damaged := slices.Clone(whole)
		damaged[at] = 0xff
		if got, err := read(another(t, damaged)); err != nil {
			noticed++
		} else {
			require.True(t, maps.Equal(want, got), "byte %d", at)
		}
	}
	require.Positive(t, noticed)
}

func TestAFileThatIsCutWhileItIsOpenIsDamagedFromThenOn(t *testing.T) {
	path := made(t)
	s, err := Open(path, numbers)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 0))
	for range 3 {
		require.ErrorIs(t, s.Write([]Entry{number(7)}), ErrDamaged)
	}
	require.NoError(t, s.Close())
}

func TestACutFileIsAnError(t *testing.T) {
	path := made(t)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for size := len(whole) - 1; size > 0; size -= 1000 {
		got, err := read(another(t, whole[:size]))
		if err == nil {
			require.Len(t, got, 499, "%d bytes: what is cut was free", size)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged)
	}
}

func TestAFileOfSomethingElseIsRefusedAndStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	text := []byte("Dear diary, this is not a database, but longer than a page would have to be.\n")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err := Open(path, numbers)
	require.ErrorIs(t, err, ErrDamaged)
	stayed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, stayed)

	other := filepath.Join(t.TempDir(), "other")
	db, err := bolt.Open(other, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("etcd"))
		return err
	}))
	require.NoError(t, db.Close())
	_, err = Open(other, numbers)
	require.EqualError(t, err, other+": it is a database of something else")

	newer := numbers
	newer.Format = "numbers/2"
	_, err = Open(made(t), newer)
	require.ErrorContains(t, err, `its format is "numbers/1", not "numbers/2"`)
	newer.ReadOnly = true
	_, err = Open(filepath.Join(t.TempDir(), "none"), newer)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// limited is set in the process whose files may not grow, cramped in the one whose files may have a page alone.
const limited, cramped = "APPORTION_STORE_LIMITED", "APPORTION_STORE_CRAMPED"

// TestMain writes to a store that cannot grow, or begins one that has no room, in the process that is limited.
func TestMain(m *testing.M) {
	if path := os.Getenv(cramped); path != "" {
		page := uint64(os.Getpagesize())
		err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: page, Max: page})
		if err == nil {
			_, err = Open(path, numbers)
		}
		fmt.Println(err) //nolint:forbidigo // The process speaks to the test.
		os.Exit(0)
	}
	path := os.Getenv(limited)
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := Open(path, numbers)
	if err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(s.Size()), Max: uint64(s.Size())})
	}
	if err == nil {
		err = s.Write([]Entry{number(7), {"number", []byte("large"), make([]byte, 4<<20)}})
	}
	if err == nil {
		os.Exit(1)
	}
	fmt.Println(err) //nolint:forbidigo // The process speaks to the test.
	if s.Write([]Entry{number(8)}) != nil || s.Close() != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

func TestAStoreThatBeginsOnAFullDiskBeginsOnceThereIsRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), cramped+"="+path)
	out, err := command.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "file too large")
	got, err := read(path)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestAFullDiskIsAnErrorAndWhatWasThereStays(t *testing.T) {
	path := made(t)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), limited+"="+path)
	out, err := command.Output()
	require.NoError(t, err, "the next, smaller write works")
	require.Contains(t, string(out), path)
	require.Contains(t, string(out), "file too large")
	got, err := read(path)
	require.NoError(t, err)
	require.Len(t, got, 499)
	require.NotContains(t, got, "7", "a write is whole, or not at all")
}
