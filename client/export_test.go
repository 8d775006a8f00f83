package client

// Encode is what is sent of a State that is sent whole, and where its entities lie then.
func (s *State) Encode() ([]byte, *layout) { return s.encode() }

// Change is what is sent of a State that is sent as a change of another one.
func (s *State) Change(base *State, at *layout) []byte {
	data, _, _ := s.change(base, at)
	return data
}
