package wire

import (
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Texts sets whether the reasons in later answers have texts. The default is false.
func (s *Session) Texts(wanted bool) {
	s.named = nil
	s.out.text = nil
	if wanted {
		s.out.text = s.reasonText
	}
}

// reasonText puts a reason into words.
func (s *Session) reasonText(r *apportionv1.Reason) string {
	if s.named == nil {
		names := s.names()
		s.named = &names
	}
	return text.Reason(*s.named, r)
}
