package extender

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-faster/jx"
)

// The functions below read what Go's encoder wrote of Volcano's and Kubernetes' objects. null is the zero value everywhere, as it is for
// Go's decoder; a value of an unexpected type is an error, because it comes from another version of Volcano.

var errKind = errors.New("a value of a type that Volcano v1.15.1 does not send")

// object calls member for each member of an object. member must move behind the value; name is valid until it returns.
func object(d *jx.Decoder, member func(d *jx.Decoder, name []byte) error) error {
	switch d.Next() {
	case jx.Object:
		return d.ObjBytes(member)
	case jx.Null:
		return d.Null()
	case jx.Invalid, jx.String, jx.Number, jx.Bool, jx.Array:
	}
	return unexpected(d)
}

// member reads one member of an object and skips the others.
func member(d *jx.Decoder, name string, read func(d *jx.Decoder) error) error {
	return object(d, only(name, read))
}

// only reads a member that has the name, and skips others.
func only(name string, read func(d *jx.Decoder) error) func(d *jx.Decoder, found []byte) error {
	return func(d *jx.Decoder, found []byte) error {
		if string(found) != name {
			return d.Skip()
		}
		return read(d)
	}
}

// array calls element for each element of an array.
func array(d *jx.Decoder, element func(d *jx.Decoder) error) error {
	switch d.Next() {
	case jx.Array:
		return d.Arr(element)
	case jx.Null:
		return d.Null()
	case jx.Invalid, jx.String, jx.Number, jx.Bool, jx.Object:
	}
	return unexpected(d)
}

// unexpected returns errKind, or the decoder's error if the text is not JSON.
func unexpected(d *jx.Decoder) error {
	if err := d.Skip(); err != nil {
		return err
	}
	return errKind
}

// text reads a string.
func text(d *jx.Decoder) (string, error) {
	switch d.Next() {
	case jx.String:
		return d.Str()
	case jx.Null:
		return "", d.Null()
	case jx.Invalid, jx.Number, jx.Bool, jx.Array, jx.Object:
	}
	return "", unexpected(d)
}

// setText reads a string into *to.
func setText(d *jx.Decoder, to *string) error {
	s, err := text(d)
	*to = s
	return err
}

// setFlag reads a boolean into *to.
func setFlag(d *jx.Decoder, to *bool) error {
	switch d.Next() {
	case jx.Bool:
		flag, err := d.Bool()
		*to = flag
		return err
	case jx.Null:
		return d.Null()
	case jx.Invalid, jx.String, jx.Number, jx.Array, jx.Object:
	}
	return unexpected(d)
}

// number returns a number as text; empty for null.
func number(d *jx.Decoder) (string, error) {
	switch d.Next() {
	case jx.Number:
		n, err := d.Num()
		return string(n), err
	case jx.Null:
		return "", d.Null()
	case jx.Invalid, jx.String, jx.Bool, jx.Array, jx.Object:
	}
	return "", unexpected(d)
}

// float reads the float64 that Go's decoder reads.
func float(d *jx.Decoder) (float64, error) {
	written, err := number(d)
	if err != nil || written == "" {
		return 0, err
	}
	return strconv.ParseFloat(written, 64)
}

// setWhole reads an int32 into *to.
func setWhole(d *jx.Decoder, to *int32) error {
	written, err := number(d)
	if err != nil || written == "" {
		return err
	}
	n, err := strconv.ParseInt(written, 10, 32)
	*to = int32(n)
	return err
}

// setMoment reads a time in Unix nanoseconds. A time outside their range is 0, like an absent one.
func setMoment(d *jx.Decoder, to *int64) error {
	written, err := text(d)
	if err != nil || written == "" {
		return err
	}
	moment, err := time.Parse(time.RFC3339, written)
	if err != nil {
		return fmt.Errorf("a time: %w", err)
	}
	if seconds := moment.Unix(); seconds > math.MinInt64/int64(time.Second) && seconds < math.MaxInt64/int64(time.Second) {
		*to = moment.UnixNano()
	}
	return nil
}

// texts reads a list of strings.
func texts(d *jx.Decoder) ([]string, error) {
	var list []string
	err := array(d, func(d *jx.Decoder) error {
		s, err := text(d)
		list = append(list, s)
		return err
	})
	return list, err
}

// within adds a location to an error.
func within(place string, err error) error {
	if err == nil || place == "" {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}
