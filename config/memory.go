package config

// memory checks that what one call may have fits into its part of what there is for all.
func (c *checker) memory() {
	if len(c.faults) > 0 {
		return
	}
	if least := 2 * c.Limit.MessageBytes; c.Overload.Receiving < least {
		c.fail("overload.receiving", "the largest message could never be received: at least "+least.String()+
			" is expected, twice limit.message_bytes")
	}
	if least := 2 * c.Limit.AnswerBytes; c.Overload.Answers < least {
		c.fail("overload.answers", "the largest answer could never be sent: at least "+least.String()+
			" is expected, twice limit.answer_bytes")
	}
	if least := 2 * c.Limit.SnapshotBytes; c.Limit.ReceivingBytes < least {
		c.fail("limit.receiving_bytes", "the largest snapshot could never be received: at least "+least.String()+
			" is expected, twice limit.snapshot_bytes")
	}
}
