// Package admission decides which calls may begin, when their work runs, and how much memory they may hold.
//
// A Controller admits calls in three steps, each before resources are spent on the next:
//
//	end, err := c.Begin(identity)        // the headers have come: count the call
//	arrived := c.Receiving(identity)        // its message is being received
//	leave, err := c.Enter(ctx, work)     // the request is decoded: wait for a turn
//
// A Budget is memory shared by identities: one may have half of it, two a third each, and something is always left for the next one.
// Bookings is the part of a budget that one call holds, and Counts counts open objects by identity.
//
// All limits are fair by identity. The package does not interpret identities; an address may be used for callers without one. Refusals are
// *decode.Fault values with the code and the retry delay of the contract, and contain the name of the limiting setting. All types are safe
// for concurrent use. The package does not read requests.
package admission
