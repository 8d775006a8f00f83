package service

// Spoil has all memory that is given back overwritten until the function that is returned is called. No server may run while either is
// called.
func Spoil(with func([]byte)) (end func()) {
	spoil = with
	return func() { spoil = nil }
}
