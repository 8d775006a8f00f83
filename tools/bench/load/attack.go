package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/apportion/apportion/internal/test/replica"
	"github.com/apportion/apportion/tools/bench/internal/peer"
	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// attack is one way to harm a server, or those who depend on it.
type attack struct {
	name string
	// does describes the attack, and bound the condition that must hold meanwhile.
	does, bound string
	measure     func(ctx context.Context, t target) (finding, error)
}

// target is the server under attack, and the scale of the attack.
type target struct {
	binary string
	// scale is the part of the calls, streams, connections and rounds of an attack that are made.
	scale    float64
	raceTime time.Duration
}

// finding is the result of an attack.
type finding struct {
	measured string
	held     bool
}

// attacks are all rows of the table.
var attacks = []attack{
	{
		"overload", "large calls come at ten times the rate that one processor can answer",
		"at least 0.9 of the peak of good answers, memory within its bound", overloaded,
	},
	{
		"explain", "200 callers of the Go client ask why 2,000 jobs wait",
		"at least 0.9 of the answers to 8 callers, no connection closed; small calls p50 at most 1.5, p99 at most 3 times idle ones",
		explaining,
	},
	{"tokenless", "calls without a token from the address of good callers", "0 failed calls of those during and after", tokenless},
	{"unread", "answers of 32 MB are never read", "0 failed calls of another caller, at most 2,560 MiB", besides(unreadAnswers, 2560)},
	{"watches", "40,000 health watches", "0 failed calls of another caller, at most 256 MiB", besides(watches, 256)},
	{"resets", "200,000 calls are reset at once", "0 failed calls of another caller, at most 256 MiB", besides(resets, 256)},
	{"connections", "10,000 idle connections", "0 failed calls of another caller, at most 512 MiB", besides(idleConnections, 512)},
	{"streams", "2,000 idle sessions and uploads", "0 failed calls of another caller, at most 512 MiB", besides(idleStreams, 512)},
	{
		"drip", "200 sessions whose answers are read a kilobyte a second", "0 failed calls of another caller, at most 1,024 MiB",
		besides(drips, 1024),
	},
	{
		"cancel", "20,000 questions are cancelled while they are worked on", "0 failed calls of another caller, at most 512 MiB",
		besides(cancellations, 512),
	},
	{"restart", "three replicas are restarted in turn", "0 failed decisions, also of plain gRPC", restarted},
	{"kill", "one of three replicas is killed, and starts again", "0 failed decisions of the Go client", killed},
	{
		"freeze", "one of three replicas is stopped by SIGSTOP",
		"0 failed decisions with a deadline of 3 s, throughput at least 0.6 of that before after 5 s", frozen,
	},
	{
		"objects", "hostile objects of tenants in the objects of a cluster", "the others are read, and what is left out is named",
		tested("Hostile|Faulty|LeftOut|Displace|OfATenant|ManyRules", "./adapter/volcano", "./cmd/apportion/internal/cluster"),
	},
	{
		"apiserver", "the API server that is followed drips, repeats its pages, and sends garbage",
		"each request ends, memory is bounded, and the fault is named",
		tested("HostileList|GarbageInAWatch|GrowsWhenDecompressed|EventOfAWatch", "./cmd/apportion/internal/cluster"),
	},
	{
		"ledger", "a disk is full or hangs, the clock jumps a year, a second process comes, and each job names an owner of its own",
		"versions go on, nothing is lost or counted twice, owners are bounded",
		tested("DiskHangs|AFailedWrite|SecondProcess|AKillAtAnyMoment|ClocksDiffer|OwnersWithoutEnd",
			"./ledger", "./ledger/file", "./cmd/apportion/internal/cluster"),
	},
	{
		"restricted", "callers that own some queues ask everything about all", "no name and no size of others",
		tested("OwnsSomeQueues|SizesOfSnapshots", "./service"),
	},
	{
		"fetches", "large snapshots are fetched and not read, and each version is fetched",
		"no more memory than is booked, versions of others stay",
		tested("SnapshotsThatAreNotRead|FetchesEachVersion", "./service"),
	},
	{
		"searches", "searches for victims in a deep tree of cohorts, which would take minutes",
		"each question ends when its work is spent, and leaves nothing assumed",
		tested("CostsMoreThanItMay", "./engine/policy/kueue"),
	},
	{
		"odds", "forecasts with a reservation for each of thousands of nodes and many kinds of past jobs, and questions that are cancelled",
		"each ends when its work is spent, or soon after it is cancelled; memory is bounded",
		tested("HostileForecast|AsksWhetherToStop", "./engine/forecast", "./engine/odds", "./internal/wire"),
	},
	{
		"rules", "objects of Kueue and rules on other pods that cost far more than their bytes: products of their lists",
		"each is refused before it is done, or answered; nothing is half done",
		tested("FarMoreThanItsBytes|QuestionOfKueue|NearEachOther", "./internal/wire"),
	},
	{
		"products", "objects of Kueue and rules on other pods whose memory is known only while they are worked on, and no memory left",
		"booked and taken memory differ by at most a factor of 1.5; without memory nothing is taken or changed",
		tested("WhatIsBookedForAQuestionOfKueue|MemoryThatIsNotThere|WhatMultiplies", "./internal/wire", "./service"),
	},
	{
		"servers", "hostile servers, against the Go client: repeated GoingAway notices, very long delays, endless frames without content",
		"no panic, bounded goroutines, the connection is closed",
		tested("ThatSendsWithoutEnd|AskToWait|ComeWithoutEnd", "./client"),
	},
	{
		"pins", "empty changes of kept versions, to hold them", "each is booked to those who hold it",
		tested("KeptSnapshotIsBooked", "./service"),
	},
	{
		"shapes", "thousands of snapshots and changes of 12 shapes", "booked and taken memory differ by at most a factor of 1.5",
		tested("WhatIsBookedForASnapshotIsWhatItTakes", "./service"),
	},
	{
		"bodies", "compressed and large documents over HTTP", "no more memory than is booked",
		tested("NoMoreThanIsBooked|TakesTooMuch|StayWithinWhatIsBooked", "./service/web"),
	},
	{
		"slow", "messages that do not come, and handshakes that do not end", "they hold no place, and end in time",
		tested("DoesNotCome|HoldNoPlace|HoldsNoPlace|HungUpOn", "./service", "./service/web", "./cmd/apportion/internal/daemon"),
	},
	{
		"malformed", "bytes that are no request, or a faulty one, at each listener", "each answers or hangs up, and goes on",
		tested("Malformed", "./cmd/apportion/internal/daemon"),
	},
	{
		"rebinding", "web pages ask under names that resolve to the server", "421 from each listener",
		tested("PagesOfOtherSites|RequestsForOtherNames", "./cmd/apportion/internal/daemon", "./internal/hostname"),
	},
	{
		"race", "all kinds of calls, changes and readers at a time, of a server built with the race detector",
		"0 data races, each kind answered", raced,
	},
}

var errBroke = errors.New("an attack broke its bound")

// runAttacks plays the attacks whose names match and prints one table. It returns an error if a bound did not hold.
func runAttacks(ctx context.Context, t target, wanted *regexp.Regexp) error {
	table, broke := sample.NewTable("attack", "what it does", "bound", "measured", "seconds", "result"), false
	for _, a := range attacks {
		if !wanted.MatchString(a.name) {
			continue
		}
		began := time.Now()
		fmt.Fprintln(os.Stderr, "attack:", a.name)
		found, err := a.measure(ctx, t)
		result := "held"
		if err != nil {
			found.held, found.measured = false, err.Error()
		}
		if !found.held {
			result, broke = "BROKE", true
		}
		table.Add(a.name, a.does, a.bound, found.measured, time.Since(began).Seconds(), result)
	}
	if _, err := table.WriteTo(os.Stdout); err != nil {
		return err
	}
	if broke {
		return errBroke
	}
	return nil
}

// serve starts a server as it is shipped, on a processor that it shares with the other servers of the attack, and returns what ends it.
// Where a server cannot be kept to a processor, it runs as much Go code at a time as one can.
func (t target) serve(ctx context.Context, arguments ...string) (server *replica.Replica, end func(), err error) {
	binary, keep := t.binary, func(*replica.Replica) {}
	if taskset, err := exec.LookPath(tasksetName); err == nil {
		binary, keep = taskset, func(r *replica.Replica) { r.Before, r.Processors = []string{"-c", "0", t.binary}, 0 }
	}
	servers, err := launch(ctx, binary, 1, keep, arguments...)
	if err != nil {
		return nil, nil, err
	}
	return servers[0], servers.kill, nil
}

// settle is the time for which the good caller continues after an attack, while its connections are still open.
const settle = 3 * time.Second

// play plays an attack on the server of an address, and says what became of it.
type play func(ctx context.Context, server string, scale float64) (string, error)

// besides lets a caller at another address ask small questions while an attack is played. The server may take so many MiB.
func besides(attack play, most int64) func(context.Context, target) (finding, error) {
	return func(ctx context.Context, t target) (f finding, err error) {
		ctx, done := context.WithCancel(ctx)
		defer done()
		server, end, err := t.serve(ctx)
		if err != nil {
			return f, err
		}
		defer end()
		var out string
		good, err := beside(ctx, server.Address, func() error {
			attacking, stop := context.WithCancel(ctx)
			defer stop()
			var err error
			out, err = attack(attacking, server.Address, t.scale)
			time.Sleep(settle)
			return err
		})
		if err != nil {
			return f, err
		}
		peak := peer.Peak(server.Process().Pid) >> 20
		f.measured = fmt.Sprintf("%s; of another caller %s; %d MiB", out, good.fate("calls"), peak)
		f.held = good.failed() == 0 && 0 < peak && peak <= most
		return f, nil
	}
}
