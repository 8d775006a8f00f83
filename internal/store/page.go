package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Numbers of the database's file format, version 2. A page begins with its number (8 bytes), its kind (2), the number of its elements (2)
// and of the pages that continue it (4). Elements of 16 bytes follow, which point to their keys.
const (
	elementBytes      = 16
	branchPage        = 1
	leafPage          = 2
	bucketElement     = 1
	mostLevels        = 64
	bucketHeaderBytes = 16
)

// pages reads the pages of a database. The database reads them, too, to find those that are free, but in a goroutine whose panics end the
// process; and it reads on after the first fault, when its transaction may have ended. It never finds a fault where pages finds none.
type pages struct {
	from io.ReaderAt
	size int
	end  uint64
	seen map[uint64]bool
}

// wholeFile returns an error if a page of the file that the transaction reaches is damaged.
func wholeFile(tx *bolt.Tx, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	size := tx.DB().Info().PageSize
	p := &pages{f, size, uint64(tx.Size()) / uint64(size), map[uint64]bool{}}
	return p.page(uint64(tx.Cursor().Bucket().RootPage()), nil, nil, 0)
}

func damaged(id uint64, what string) error { return fmt.Errorf("%w: page %d %s", ErrDamaged, id, what) }

// page reads a page, whose keys are from low on and below high; nil: there is no bound.
func (p *pages) page(id uint64, low, high []byte, level int) error {
	head := make([]byte, elementBytes)
	if id < 2 || id >= p.end || level > mostLevels {
		return damaged(id, "is none of the tables")
	}
	if _, err := p.from.ReadAt(head, int64(id)*int64(p.size)); err != nil {
		return err
	}
	more := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || id+more >= p.end {
		return damaged(id, "has the head of another one")
	}
	for n := id; n <= id+more; n++ {
		if p.seen[n] {
			return damaged(n, "is used twice")
		}
		p.seen[n] = true
	}
	data := make([]byte, (int(more)+1)*p.size)
	if _, err := p.from.ReadAt(data, int64(id)*int64(p.size)); err != nil {
		return err
	}
	return p.elements(id, data, low, high, level)
}

// elements reads those of a page, or of a small bucket that stands in the page of its parent.
func (p *pages) elements(id uint64, data, low, high []byte, level int) error {
	kind, count := binary.NativeEndian.Uint16(data[8:]), int(binary.NativeEndian.Uint16(data[10:]))
	if kind != branchPage && kind != leafPage || kind == branchPage && count == 0 || elementBytes*(1+count) > len(data) {
		return damaged(id, "is of no known kind")
	}
	key := func(i int) []byte { // nil: it is not within the page.
		at := elementBytes * (1 + i)
		e := data[at : at+elementBytes]
		pos, length := binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:])
		if kind == leafPage {
			pos, length = length, binary.NativeEndian.Uint32(e[8:])
		}
		begin := uint64(at) + uint64(pos)
		if begin+uint64(length) > uint64(len(data)) {
			return nil
		}
		return data[begin : begin+uint64(length)]
	}
	for i := range count {
		k := key(i)
		if k == nil || bytes.Compare(k, low) < 0 || high != nil && bytes.Compare(k, high) >= 0 || i > 0 && bytes.Equal(k, low) {
			return damaged(id, "has keys that are not in order")
		}
		var err error
		if low = k; kind == leafPage {
			err = p.value(id, data, i, level)
		} else {
			above := high
			if i+1 < count {
				above = key(i + 1)
			}
			err = p.page(binary.NativeEndian.Uint64(data[elementBytes*(1+i)+8:]), k, above, level+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value reads the bucket that the value of an element is, if it is one.
func (p *pages) value(id uint64, data []byte, i, level int) error {
	at := elementBytes * (1 + i)
	e := data[at : at+elementBytes]
	begin := uint64(at) + uint64(binary.NativeEndian.Uint32(e[4:])) + uint64(binary.NativeEndian.Uint32(e[8:]))
	length := uint64(binary.NativeEndian.Uint32(e[12:]))
	if begin+length > uint64(len(data)) {
		return damaged(id, "has a value that is not within it")
	}
	if binary.NativeEndian.Uint32(e)&bucketElement == 0 {
		return nil
	}
	value := data[begin : begin+length]
	if len(value) < bucketHeaderBytes {
		return damaged(id, "has a table without a page")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return p.page(root, nil, nil, level+1)
	}
	if inline := value[bucketHeaderBytes:]; len(inline) >= elementBytes && level < mostLevels {
		return p.elements(id, inline, nil, nil, level+1)
	}
	return damaged(id, "has a table without a page")
}
