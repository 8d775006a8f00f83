// Package admission decides which calls may begin, when their work has its turn, and how much memory they may hold.
//
// A Controller admits calls in three places, each before anything is spent on the next:
//
//	end, err := c.Begin(identity)        // the headers have come: count the call
//	arrived := c.Expect(identity)        // its message is being received
//	leave, err := c.Enter(ctx, work)     // the request is decoded: wait for a turn
//
// A Budget is memory that identities share: one may have half of it, two a third each, and something is always left for the next one.
// Bookings is what one call holds of a budget, and Counts counts what identities have open.
//
// Everything is fair by identity: the package does not know what an identity is, and its caller may pass an address for callers that have
// none. Refusals are *wire.Fault values with the code and the retry delay that the contract promises, and name the setting that bounds.
// All types are for any number of goroutines. Nothing here reads a request.
package admission
